"""CACHEJOIN-LWF: a cache in front of HYBRIDJOIN-LWF. Ours.

CACHEJOIN is Naeem, Dobbie, Weber, DaWaK 2012; longest wait first is a broadcast scheduler (see hybridjoin_lwf.py).

What the cache answers no longer waits, so the pages' demand is what is left of it: less skewed, and still not even. The longest sum of
waits finds the best page for whatever distribution that is, and needs no parameter that would have to change with the cache.

    stream -> hot cache -- hit -> leaves at once
                  | miss      ^ rows that many tuples wait for
                  v           |
              stream table -> group of pages with the longest sum of waits -> all its tuples leave        (HYBRIDJOIN-LWF)

Next page: that with the longest sum of waits; that of the oldest tuple once 32 stream tables of tuples have entered after it. Leaves:
tuples whose key is cached, at once; others when their page is loaded. Stays in memory: the rows of hot keys, and keys that are hot and
absent from the master.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="cachejoin_lwf", memory="1MB")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [3, 1, 9]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 3, 'colour': 'blue'}]
"""

from __future__ import annotations

from dataclasses import replace

from semistream.algorithms import cachejoin, hybridjoin_lwf

ALGORITHM = replace(
    cachejoin.in_front_of(hybridjoin_lwf.ALGORITHM, lambda _preset: hybridjoin_lwf.LongestWait()),
    name="cachejoin_lwf",
    title="CACHEJOIN-LWF",
    leaves="tuples whose key is cached, at once; others when their page has been loaded",
)
