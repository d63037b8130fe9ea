"""Lanes: strands are settled at the same time, and whatever ends one of them ends all."""

from __future__ import annotations

import gc
import threading

import pytest

from semistream.lanes import _QUEUED, Lanes
from semistream.settle import Counts

LONG = 30  # seconds: no test waits so long unless something is broken


class Plain:
    """A settler whose batches are what was found; None gives no batch."""

    def __init__(self):
        self.counts, self.threads = Counts(), set()

    def settle(self, found):
        self.threads.add(threading.current_thread())
        self.counts.finished += 1
        if found is not None:
            yield found

    def flush(self):
        return f"open {self.counts.finished}" if self.counts.finished else None


@pytest.fixture
def lanes(request):
    before = threading.active_count()
    made = Lanes([Plain() for _ in range(getattr(request, "param", 2))])
    yield made
    made.close()
    assert threading.active_count() == before, "a thread is left"


def strand(name, count, answer=None):
    for number in range(count):
        yield f"{name}{number}"
    return answer


def followed(lanes, strands):
    """All batches, and what the strands returned."""
    follower, batches = lanes.follow(strands), []
    while True:
        try:
            batches.append(next(follower))
        except StopIteration as end:
            return batches, end.value


def named(name, count):
    return [f"{name}{number}" for number in range(count)]


@pytest.mark.parametrize("lanes", [1, 2], indirect=True)
def test_one_strand_is_settled_by_the_caller_s_thread(lanes):
    assert followed(lanes, [strand("a", 3, "end")]) == (named("a", 3), ["end"])
    assert lanes.settlers[0].threads == {threading.current_thread()}


@pytest.mark.parametrize(
    ("lanes", "counts"), [(2, (0, 0)), (2, (0, 9)), (2, (9, 0)), (2, (20, 30)), (3, (5, 9, 7))], indirect=["lanes"]
)
def test_all_batches_of_all_strands_come_in_the_order_of_their_strand(lanes, counts):
    for _ in range(3):  # lanes are used again, step after step
        names = "abc"[: len(counts)]
        batches, returned = followed(lanes, [strand(name, n, name) for name, n in zip(names, counts, strict=True)])
        assert returned == list(names)
        for name, count in zip(names, counts, strict=True):
            assert [batch for batch in batches if batch[0] == name] == named(name, count)
    assert lanes.counts.finished == 3 * sum(counts)


def test_strands_run_at_the_same_time_each_with_its_own_settler(lanes):
    meeting = threading.Barrier(2, timeout=LONG)

    def waiting(name):
        yield f"{name}0"
        meeting.wait()
        yield f"{name}1"

    batches, _ = followed(lanes, [waiting("a"), waiting("b")])
    assert sorted(batches) == ["a0", "a1", "b0", "b1"]
    assert [len(settler.threads) for settler in lanes.settlers] == [1, 1]
    assert lanes.settlers[0].threads != lanes.settlers[1].threads


def test_an_error_in_another_thread_reaches_the_caller(lanes):
    def broken():
        yield "b0"
        raise OSError("the disk is gone")

    follower, came = lanes.follow([strand("a", 5), broken()]), []
    with pytest.raises(OSError, match="the disk is gone"):
        came.extend(follower)
    assert {"b0", *named("a", 5)} >= set(came)


def test_an_error_in_the_caller_s_thread_ends_the_others(lanes):
    running, ended = threading.Event(), threading.Event()

    def broken():
        assert running.wait(LONG)
        raise OSError("the disk is gone")
        yield

    def endless():
        try:
            while True:
                running.set()
                yield "b"
        finally:
            ended.set()

    with pytest.raises(OSError, match="the disk is gone"):
        list(lanes.follow([broken(), endless()]))
    gc.collect()
    assert ended.is_set()


@pytest.mark.parametrize("batch", ["b", None])
@pytest.mark.parametrize("taken", [1, 4])
def test_whoever_stops_early_ends_threads_and_strands_even_those_without_a_batch(lanes, taken, batch):
    running, ended = threading.Event(), []

    def endless(name, found):
        try:
            while True:
                if name == "b":
                    running.set()
                else:
                    assert running.wait(LONG)
                yield found
        finally:
            ended.append(name)

    follower = lanes.follow([endless("a", "a"), endless("b", batch)])
    for _ in range(taken):
        next(follower)
    follower.close()
    gc.collect()
    assert sorted(ended) == ["a", "b"]


def test_a_slow_caller_holds_other_threads_back(lanes):
    made, produced, taken, ahead = 12, threading.Semaphore(0), [0], []

    def counting():
        for number in range(made):
            ahead.append(number + 1 - taken[0])
            produced.release()
            yield f"b{number}"

    def patient():
        for number in range(made):
            if number < made - _QUEUED:  # the other thread is given all the time it wants
                assert produced.acquire(timeout=LONG)
            yield "a"

    for batch in lanes.follow([patient(), counting()]):
        taken[0] += batch != "a"
    assert taken == [made]
    assert max(ahead) <= _QUEUED + 2, "more batches exist than were charged"


def test_open_batches_of_all_lanes_are_handed_out(lanes):
    followed(lanes, [strand("a", 2), strand("b", 3)])
    assert list(lanes.flush()) == ["open 2", "open 3"]
    idle = Lanes([Plain(), Plain()])
    assert list(idle.flush()) == []
    idle.close()
