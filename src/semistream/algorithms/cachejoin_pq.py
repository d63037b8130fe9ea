"""CACHEJOIN-PQ: CACHEJOIN that loads frequent pages when they are due.

Naeem et al., the paper that gives HYBRIDJOIN and CACHEJOIN a priority queue of frequent pages, section 4.

Three stages for three degrees of demand. Rows of hot keys lie in the cache and answer at once. Pages whose other keys are asked for often
enough are loaded at their time, when enough tuples can be expected to wait for them. All else is looked up for the oldest tuple.

    stream -> hot cache -- hit -> leaves at once
                  | miss      ^ rows that many tuples wait for
                  v           |
              stream table + arrival queue -> leaves at its match        (HYBRIDJOIN-PQ)
                            ^ due page, else the oldest key's

Next page: the frequent page that is due, else that of the oldest waiting tuple. Leaves: tuples whose key is cached, at once; others when
their key is complete. Stays in memory: the rows of hot keys, keys that are hot and absent from the master, and which pages are frequent.

Departures from the print. Those of CACHEJOIN and of HYBRIDJOIN-PQ. Once its hottest rows are cached a page answers fewer tuples than
before: the gliding average notices. Preset "published": as HYBRIDJOIN-PQ, with the cache of the published CACHEJOIN.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="cachejoin_pq", memory="1MB")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [3, 1, 9]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 3, 'colour': 'blue'}]
"""

from __future__ import annotations

from dataclasses import replace

from semistream.algorithms import cachejoin, hybridjoin_pq

ALGORITHM = replace(
    cachejoin.in_front_of(hybridjoin_pq.ALGORITHM, hybridjoin_pq.choice, hybridjoin_pq.PUBLISHED_ROWS),
    name="cachejoin_pq",
    title="CACHEJOIN-PQ",
    keeps="rows that many tuples wait for, random ones make room; and which pages are frequent",
)
