"""R-MESHJOIN: MESHJOIN whose disk buffer is probed in segments, so that how much is read does not fix how many come and go.

Naeem, Dobbie, Weber, Alam, DOLAP 2010; named in the papers of this family, section "related work", without equations.

In MESHJOIN one number is two: the size of a read, and through it the number of chunks that wait. Here a partition of the master is read
at once and probed in l segments. Every segment takes a chunk in and lets one go, so a chunk waits for k * l segments: one round.

    stream -> [chunk | chunk | ... k * l chunks] -> leaves after k * l segments
                 ^ every row of the segment probes all waiting tuples
    master -> partition 1 = segment 1.1, 1.2, ... 1.l, 2.1, ... -> disk buffer

Next page: the next segment of the cycle. Leaves: the chunk that has seen k * l segments. Stays in memory: nothing of the master.

Departures from the print. As in MESHJOIN, with which it shares all code: l = 1 is MESHJOIN. Segments are whole pages. The papers give no
values: reads are four times as long as MESHJOIN's and l = 4, so a chunk is as large as there.

>>> import pyarrow as pa, semistream as ss, tempfile
>>> folder = tempfile.mkdtemp() + "/colours.master"
>>> master = ss.build_master(folder, pa.table({"id": [1, 2, 3], "colour": ["red", "green", "blue"]}), key="id")
>>> join = ss.Join(master, on="id", algorithm="r_meshjoin", memory="1MB")
>>> pa.Table.from_batches(join([pa.record_batch({"id": [3, 1, 9]})])).sort_by("id").to_pylist()
[{'id': 1, 'colour': 'red'}, {'id': 3, 'colour': 'blue'}]
"""

from __future__ import annotations

from semistream.algorithms.meshjoin import MeshJoin
from semistream.algorithms.record import Algorithm, Parts
from semistream.budget import Share
from semistream.protocols import Reader

SEGMENTS = 4
_BUFFER_SHARE = 1 / 16
_BUFFER_MOST = 2 << 20  # of the four segments


def shares(reader: Reader, memory_bytes: int) -> list[Share]:
    """One partition at a time lies in memory; the rest is for waiting tuples."""
    least = reader.largest_page_bytes + 8192
    most = max(least, min(int(memory_bytes * _BUFFER_SHARE), _BUFFER_MOST) + 8192)
    return [Share("disk buffer", least, weight=1.0, most=most)]


def build(parts: Parts) -> MeshJoin:
    """R-MESHJOIN at work."""
    return MeshJoin(parts, segments=SEGMENTS)


ALGORITHM = Algorithm(
    name="r_meshjoin",
    title="R-MESHJOIN",
    paper="Naeem et al. 2010",
    next_page="the next segment of a cyclic scan",
    leaves="the chunk that has seen all segments",
    keeps="nothing of the master",
    bound="exactly k * l iterations, k = partitions of the master, l = segments of one",
    needs_index=False,
    scans=True,
    build=build,
    shares=shares,
)
