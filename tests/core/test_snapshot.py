"""Snapshots: values go from one graph of objects into another that was built in the same way."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from semistream import snapshot
from semistream.budget import Slab
from semistream.snapshot import Snapshot, Unfit


class Pair(NamedTuple):
    """Some numbers of the slab, and others."""

    slab: np.ndarray
    other: np.ndarray


class Buffer:
    """A thing with an address, and with a handle that belongs to the run."""

    saved = ("at", "last")

    def __init__(self, at, handle):
        self.at, self.last, self.handle = at, (-1, -1), handle


class Thing:
    """Some of everything."""

    saved = ("pair", "buffers", "spare", "lock", "also", "words", "queue", "known", "held", "number", "me")

    def __init__(self, slab, handle):
        self.pair = Pair(slab.take("numbers", 8, np.int64), np.zeros(3))
        self.buffers = [Buffer(0, handle), Buffer(64, handle)]
        self.spare = Buffer(128, handle)
        self.lock, self.also, self.words = Lock(), self.buffers, {1}
        self.queue, self.known, self.held, self.number, self.me = deque(), {}, [], 0, self


def two():
    slabs = Slab(1 << 12), Slab(1 << 12)
    return [(Thing(slab, handle), slab) for slab, handle in zip(slabs, "ab", strict=True)]


def test_all_values_come_over_and_what_belongs_to_the_run_stays():
    (old, old_slab), (new, new_slab) = two()
    lock, before = new.lock, list(new.buffers)
    old.pair.slab[:] = range(8)
    old.pair.other[1] = 0.5
    old.pair = old.pair._replace(slab=old.pair.slab[2:6:2])
    old.queue.append((1, np.int64(2), "three", None))
    old.known = {5: np.array([7], np.uint8), (1, 2): 1e300}
    old.words = {1 << 62, -3}
    old.held.append(pa.record_batch({"a": [1, None], "b": pa.array(["x", "y"]).dictionary_encode()}))
    old.number = np.float64("inf")
    assert snapshot.put(snapshot.take(old, old_slab), new, new_slab) is new
    assert new.pair.slab.tolist() == [2, 4]
    new.pair.slab[0] = 99
    assert new_slab.memory.b8[2] == 99
    assert new.pair.other.tolist() == [0, 0.5, 0]
    assert new.queue == deque([(1, 2, "three", None)])
    assert new.known[5].tolist() == [7]
    assert new.known[1, 2] == 1e300
    assert new.words == old.words
    assert new.held[0].equals(old.held[0])
    assert new.number == float("inf")
    assert new.lock is lock
    assert new.me is new
    assert new.also is new.buffers
    assert [new.buffers[at] is before[at] for at in (0, 1)] == [True, True]


def test_objects_that_changed_places_keep_their_identity():
    """If they come first in an order that does not change: a reader knows its buffers as they were made."""
    (old, old_slab), (new, new_slab) = two()
    made, first = [[*thing.buffers, thing.spare] for thing in (old, new)], old.buffers[0]
    old.buffers[0], old.spare = old.spare, old.buffers[0]
    first.last = (4, 5)
    snapshot.put(snapshot.take([made[0], old], old_slab), [made[1], new], new_slab)
    assert (new.spare.at, new.spare.last, new.buffers[0].at) == (0, (4, 5), 128)
    assert len({id(one) for one in [*new.buffers, new.spare]}) == 3
    assert {one.handle for one in [*new.buffers, new.spare]} == {"b"}


@pytest.mark.parametrize("thing", [iter([1]), (n for n in [1]), np.array([{}]), object()])
def test_what_has_no_plain_form_is_refused(thing):
    with pytest.raises(Unfit, match="cannot be saved"):
        snapshot.take([thing], Slab(64))


@pytest.mark.parametrize(
    "data",
    [
        ["system", "true"],
        [],
        ["again", 5],
        ["object", 0, "Slab", {}],
        ["object", 0, "Thing", {"number": 1}],
        ["object", 0, "Thing", {"__class__": 1}],
        ["tuple", "Pair", [1, 2]],
        ["tuple", "system", [1]],
        ["array", 0, "|O", [1], 0],
        ["array", 0, "<i8", [2], 0],
        ["array", 0, "<i8", [1], 9],
        ["slab", 4090, "<i8", [1], [8]],
        ["slab", -8, "<i8", [1], [8]],
        ["slab", 0, "<i8", [4], [4096]],
        ["slab", 0, "|O", [1], [8]],
        ["batch", 0],
        ["dict", 0, [1], []],
        ["set", 0, [["list", 1, []]]],
    ],
)
def test_a_forged_snapshot_is_refused(data):
    (thing, slab), _ = two()
    with pytest.raises(Unfit):
        snapshot.put(Snapshot(data, [bytes(8)]), thing, slab)


def test_memory_that_is_set_aside_is_not_touched():
    """Only blocks that differ are written: what is charged and not used must not become real memory."""
    (old, old_slab), (new, new_slab) = two()
    taken = snapshot.take(old, old_slab)
    new_slab.memory.b1.flags.writeable = False
    snapshot.put(taken, new, new_slab)
