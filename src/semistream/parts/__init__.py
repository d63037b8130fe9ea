"""Parts: plain arrays and the kernels that loop over them.

A part is a NamedTuple of numpy arrays plus free functions. The arrays are handed out once, by the budget ledger; the functions are
compiled by numba, hold the only loops over tuples in the project, and know nothing of Arrow, files or policies. Recipes in
`semistream.algorithms` own parts and decide, per batch or per page, which function runs next.

    memory.py        the slab: one block of bytes, seen as 1-, 2-, 4- and 8-byte words
    rows.py          rows of bytes <-> columns
    cells.py         nested values as byte strings
    words.py         64-bit key words and the byte hash
    page.py          what a page of master rows looks like in memory
    slots.py         one record for each pending stream tuple, and the arrival queue through them
    stamps.py        position of a tuple, and whether it has matched
    stream_table.py  pending stream tuples by key word
    probing.py       the rows of a load against the stream table
    row_heap.py      what pending tuples carry in values of variable length
    waits.py         how long tuples waited, as a histogram
    order.py         which prefix of the stream is finished
    compiler.py      how all of it is compiled
"""
