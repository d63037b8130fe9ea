"""CMESHJOIN: MESHJOIN behind a cache of the master rows that waiting tuples ask for most.

Naeem, Dobbie, Weber, CIKM 2013; described in the SSBJ paper, section 2.

A stream tuple first probes the cache and leaves at once if its key is there; only the others ride along with the scan. The scan fills the
cache: keys on which many tuples wait are copied as their rows pass by. MESHJOIN alone makes no use of skew; the cache does, and it needs
nothing from the disk phase, neither index nor order.

    stream -> hot cache -- hit -> leaves at once
                  | miss      ^ rows that many tuples wait for
                  v           |
              [chunk | chunk | ... k chunks] -> leaves after k reads      (MESHJOIN)

Next page: the next partition of the cycle. Leaves: tuples whose key is cached, at once; others with their chunk, after k reads. Stays in
memory: the rows of the hottest keys.

Departures from the print. A key is cached with all its rows or not at all. After a key is cached, the tuples that already wait for it
finish by the scan and younger ones hit the cache, so no pair comes twice. Where rows of a key lie strewn over the master they are
collected for a whole round before the key answers (`gathering.py`). The victims are those of SSCJ. There is no preset "published": we know
of no sizes of the paper's own runs.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="cmeshjoin", memory="1MB")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [3, 1, 9]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 3, 'colour': 'blue'}]
"""

from __future__ import annotations

from dataclasses import replace

from semistream.algorithms import cachejoin, meshjoin
from semistream.algorithms.admission import Admission
from semistream.algorithms.gathering import Gathering
from semistream.algorithms.record import Algorithm, Parts
from semistream.budget import Share
from semistream.hot_cache import ColdestVictim
from semistream.protocols import Reader, Recipe


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """What MESHJOIN asks for, and the cache."""
    return [*meshjoin.shares(reader, memory_bytes), cachejoin.cache_share(reader, memory_bytes)]


def _build(parts: Parts) -> Recipe:
    scan = meshjoin.MeshJoin if parts.reader.runs else _scan_strewn
    return cachejoin.CacheJoin(parts, inner=scan, eviction=ColdestVictim(), slots_per_tuple=1.0)


def _scan_strewn(parts: Parts) -> Recipe:
    assert isinstance(parts.keeper, Admission)
    gathering = Gathering(parts.keeper, parts.buffer())
    return meshjoin.MeshJoin(replace(parts, keeper=gathering, disk=gathering))


ALGORITHM = Algorithm(
    name="cmeshjoin",
    title="CMESHJOIN",
    paper="Naeem, Dobbie, Weber 2013",
    next_page="the next partition of a cyclic scan",
    leaves="tuples whose key is cached, at once; others with the chunk that has seen all partitions",
    keeps="rows that many tuples wait for; those with the fewest hits make room",
    bound="exactly k iterations, k = partitions of the master",
    needs_index=False,
    scans=True,
    build=_build,
    shares=shares,
)
