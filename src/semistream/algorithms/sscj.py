"""SSCJ: CACHEJOIN whose full cache lets go of the rows that are asked for least.

Naeem, Weber, Dobbie, Lutteroth, DaWaK 2013; described in the SSBJ paper, section 2, and the priority queue paper, section 2.

Everything is as in CACHEJOIN but the victim: cached keys count their hits, and the keys with the fewest hits make room for those that
tuples wait for now. With a stream whose hot keys change slowly the cache ends up with the hottest ones, whatever came first.

    stream -> hot cache -- hit -> leaves at once, and is counted
                  | miss      ^ rows that many tuples wait for; coldest keys make room
                  v           |
              stream table + arrival queue -> leaves at its match        (HYBRIDJOIN)

Next page: that of the oldest waiting tuple. Leaves: tuples whose key is cached, at once; others when their key is complete. Stays in
memory: the rows of the hottest keys, and keys that are hot and absent from the master.

Departures from the print. Those of CACHEJOIN. Victims go many at a time, in order of hits a row, and the hits of all others are halved
then: counts that never fade keep what was hot long ago. Preset "published": the sizes of CACHEJOIN's.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="sscj", memory="1MB")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [3, 1, 9]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 3, 'colour': 'blue'}]
"""

from __future__ import annotations

from dataclasses import replace

from semistream.algorithms import cachejoin, hybridjoin
from semistream.algorithms.record import Parts
from semistream.hot_cache import ColdestVictim
from semistream.protocols import Recipe


def _build(parts: Parts) -> Recipe:
    return cachejoin.CacheJoin(parts, _disk_stage, ColdestVictim())


def _disk_stage(parts: Parts) -> Recipe:
    return hybridjoin.HybridJoin(parts, published_rows=cachejoin.PUBLISHED_ROWS)


ALGORITHM = replace(
    cachejoin.ALGORITHM,
    name="sscj",
    title="SSCJ",
    paper="Naeem, Weber, Dobbie, Lutteroth 2013",
    keeps="rows that many tuples wait for; those with the fewest hits make room",
    build=_build,
)
