"""Beside: steps run in a thread of their own, which stands still when nobody waits, and whatever ends it reaches the caller."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import pytest

from semistream.beside import _READY, Beside
from semistream.settle import Counts

LONG = 30  # seconds: no test waits so long unless something is broken


class Plain:
    """A settler whose batches are what was found, as far as they are text; numbers are collected until it is flushed."""

    def __init__(self):
        self.counts, self.open, self.threads = Counts(), 0, set()

    def settle(self, found):
        self.threads.add(threading.current_thread())
        self.counts.finished += 1
        if isinstance(found, str):
            yield found
        else:
            self.open += found

    def flush(self):
        self.threads.add(threading.current_thread())
        total, self.open = self.open, 0
        return f"{total} open" if total else None


class Scripted:
    """A recipe whose steps find what they are told; everything in a step is found, then nobody of that step waits any more."""

    def __init__(self):
        self.area, self.waiting, self.steps, self.scripts = self, 0, 0, []
        self.began, self.go_on = threading.Semaphore(0), threading.Semaphore(0)

    def admit(self, *found):
        self.scripts.append(found)
        self.waiting += 1

    def step(self):
        self.steps += 1
        self.began.release()
        for found in self.scripts.pop(0):
            if found == "stand still":
                assert self.go_on.acquire(timeout=LONG)
            elif isinstance(found, Exception):
                raise found
            else:
                yield found
        self.waiting -= 1


@pytest.fixture
def recipe():
    return Scripted()


@pytest.fixture
def beside(recipe):
    before = threading.active_count()
    made = Beside(Plain(), recipe)
    yield made
    for _ in range(20):
        recipe.go_on.release()
    made.close()
    assert threading.active_count() == before, "a thread is left"


def admit(beside, recipe, *found):
    recipe.admit(*found)
    beside.wake()


def test_steps_run_while_the_caller_does_something_else(beside, recipe):
    admit(beside, recipe, "a", "b")
    assert recipe.began.acquire(timeout=LONG)  # nobody has asked for it
    assert list(beside.step()) == ["a", "b"]
    assert beside.counts.finished == 2
    assert threading.current_thread() not in beside._settler.threads


def test_nothing_runs_while_nobody_waits(beside, recipe):
    for _ in range(3):
        assert list(beside.step()) == []
        assert list(beside.flush()) == []
        beside.wake()
    assert recipe.steps == 0
    admit(beside, recipe, "a")
    assert list(beside.step()) == ["a"]
    assert (recipe.steps, beside.begun) == (1, 1)


def test_a_step_that_is_asked_for_begins_and_ends_after_that(beside, recipe):
    """Else nobody could tell from it whether steps let anybody leave."""
    admit(beside, recipe, "stand still", "a")
    assert recipe.began.acquire(timeout=LONG)
    admit(beside, recipe, "b", "c")
    admit(beside, recipe, "stand still")
    step = beside.step()
    recipe.go_on.release()
    assert [next(step) for _ in range(3)] == ["a", "b", "c"]
    recipe.go_on.release()
    assert list(step) == []
    assert beside.begun >= 2


def test_an_open_batch_is_handed_out_whether_steps_stand_still_or_not(beside, recipe):
    admit(beside, recipe, 3, 4)
    assert list(beside.step()) == []
    assert list(beside.flush()) == ["7 open"]
    admit(beside, recipe, 1, "stand still", 2)
    assert recipe.began.acquire(timeout=LONG)
    assert recipe.began.acquire(timeout=LONG)
    recipe.go_on.release()
    assert sum(int(batch.split()[0]) for _ in range(2) for batch in [*beside.flush(), *beside.step()]) == 3


def test_a_slow_caller_holds_steps_back(beside, recipe):
    made = [f"b{number}" for number in range(12)]
    admit(beside, recipe, *made)
    came = []
    for batch in beside.step():
        assert beside.counts.finished - len(came) <= _READY + 2, "more batches exist than were charged"
        came.append(batch)
    assert came == made


def test_what_is_finished_is_taken_without_waiting_for_more(beside, recipe):
    admit(beside, recipe, "a", "stand still", "b")
    assert list(beside.finished()) in ([], ["a"])  # and it comes back, though the step stands still


def test_an_error_of_a_step_reaches_the_caller_after_what_was_found_before_and_stays(beside, recipe):
    admit(beside, recipe, "a", OSError("the disk is gone"))
    came = []
    with pytest.raises(OSError, match="the disk is gone"):
        came.extend(beside.step())
    assert came == ["a"]
    with pytest.raises(OSError, match="the disk is gone"), beside.resting():
        pass  # whoever catches that and goes on must not wait for a thread that has ended
    with pytest.raises(OSError, match="the disk is gone"):
        list(beside.flush())


@pytest.mark.parametrize(
    "found", [("stand still",), ("a",) * 9, ("stand still", OSError("nobody is there to hear it"))]
)
def test_whoever_stops_early_ends_the_thread(found):
    recipe, before = Scripted(), threading.active_count()
    beside = Beside(Plain(), recipe)
    admit(beside, recipe, *found)
    assert recipe.began.acquire(timeout=LONG)
    recipe.go_on.release()
    beside.close()
    beside.close()
    assert threading.active_count() == before


def test_a_join_that_nobody_closes_does_not_keep_the_process_from_ending():
    program = """
        from tests.core.test_beside import Beside, Plain, Scripted
        recipe = Scripted()
        beside = Beside(Plain(), recipe)
        recipe.admit(*"abcdefgh")
        beside.wake()
        print(next(beside.step()))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=LONG, check=True
    )
    assert (done.stdout, done.stderr) == ("a\n", "")
