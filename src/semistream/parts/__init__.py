"""Parts: plain arrays and the kernels that loop over them.

A part is a NamedTuple of numpy arrays plus free functions. The arrays are handed out once, by the budget ledger; the functions are
compiled by numba, hold the only loops over tuples in the project, and know nothing of Arrow, files or policies. Recipes in
`semistream.algorithms` own parts and decide, per batch or per page, which function runs next.

    memory.py        the slab: one block of bytes, seen as 1-, 2-, 4- and 8-byte words
    rows.py          rows of bytes <-> columns
    words.py         64-bit key words and the byte hash
    page.py          what a page of master rows looks like in memory
    stream_table.py  pending stream tuples by key word, and what they carry
    arrival_queue.py pending stream tuples by age
    waits.py         how long tuples waited, as a histogram
"""
