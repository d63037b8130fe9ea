"""Experiments: small joins over a small master, each arranged so that one unit cost shows.

    take      tuples without a key: they match nothing and never wait
    admit     tuples that find room, until there is none
    hit       tuples that a full cache answers, without output (left anti)
    piece     the same in two memories, with few and with many tuples taken at once
    settle    the same with a row of output for each
    leave     tuples that meet their row and go, and
    step      what an iteration takes besides: joins in two memories, with few and with many tuples a load
    check     the same, with a cache that is shown the rows

Differences are taken between whole runs, so Python between the kernels is paid for by the verb that needs it. Every figure is the
least of some repetitions: whatever else the machine does can only add.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from semistream.join import Join
from semistream.masters.build import build_master
from semistream.masters.file_master import FileMaster, open_master
from semistream.parts.memory import I64
from semistream.records import RowCodec
from semistream.sharing import piece_rows
from semistream.stream_rows import StreamRows

ROWS, FEW_ROWS = 500_000, 2_000  # the large one is larger than a processor's cache
COLUMNS, NARROW = 14, ["c0", "c1"]
_KEPT_ROWS = 20_000  # a cache that does not lie in the processor's own
NARROW_BYTES = 20 + 16  # a tuple and these columns
_REPEATED = 4
BATCH = 16_384
_SEED = 7


class Run(NamedTuple):
    """A run: seconds for every item of the stream, and the report at the end."""

    item_s: list[float]
    report: dict[str, Any]

    @property
    def busy_s(self) -> float:
        """All of it."""
        return float(self.report["busy_s"])


class Ground:
    """Where experiments take place: a large master and a small one, with keys 0, 2, 4, ..., rows of 120 bytes, tuples of 20."""

    def __init__(self, folder: Path, io: str) -> None:
        for name, rows in (("large", ROWS), ("small", FEW_ROWS)):
            numbers = np.arange(rows, dtype=np.int64)
            columns = {"id": 2 * numbers} | {f"c{place}": numbers for place in range(COLUMNS)}
            build_master(folder / f"{name}.master", pa.table(columns), key="id").close()
        self.large, self.small = (
            cast(FileMaster, open_master(folder / f"{name}.master", io=io)) for name in ("large", "small")
        )
        self.random = np.random.default_rng(_SEED)

    def close(self) -> None:
        """Let go of the masters."""
        self.large.close()
        self.small.close()

    def keys(self, count: int, rows: int) -> I64:
        """Keys that are there."""
        return 2 * self.random.integers(0, rows, count)

    def run(
        self,
        master: FileMaster,
        algorithm: str,
        memory: int,
        keys: I64 | None,
        count: int = 0,
        how: str = "inner",
        wide: bool = False,
    ) -> Run:
        """Join a stream of these keys, or of `count` tuples without one."""
        columns = NARROW if how == "inner" and not wide else None
        join = Join(master, on="id", algorithm=algorithm, memory=memory, columns=columns, how=how)
        item_s: list[float] = []

        def stream() -> Iterator[pa.RecordBatch]:
            for batch in batches(keys, count):
                begun = time.perf_counter()
                yield batch
                item_s.append(time.perf_counter() - begun)

        for out in join(stream()):
            del out
        return Run(item_s, join.report())


def batches(keys: I64 | None, count: int) -> Iterator[pa.RecordBatch]:
    """A stream of 20 bytes a tuple."""
    total = count if keys is None else keys.size
    for start in range(0, total, BATCH):
        rows = min(BATCH, total - start)
        ids = pa.nulls(rows, pa.int64()) if keys is None else pa.array(keys[start : start + rows])
        filled = pa.array(np.zeros(rows, np.int32))
        yield pa.record_batch({"id": ids, "a": filled, "b": filled, "c": filled})


def least(measure: Callable[[], float]) -> float:
    """The least of some repetitions."""
    return min(measure() for _ in range(_REPEATED))


def take_s(ground: Ground) -> float:
    """Seconds to take a tuple from the stream and encode it."""
    return least(lambda: ground.run(ground.small, "hybridjoin", 32 << 20, None, 20 * BATCH).busy_s / (20 * BATCH))


def admit_s(ground: Ground, take: float) -> float:
    """Seconds to let a tuple wait: batches that find room, but for the first, which sets the join up."""
    keys = ground.keys(12 * BATCH, FEW_ROWS) + 1

    def measure() -> float:
        return float(np.mean(ground.run(ground.small, "hybridjoin", 64 << 20, keys).item_s[1:])) / BATCH - take

    return max(0.0, least(measure))


def hit_and_settle_s(ground: Ground, take: float) -> tuple[float, float, float]:
    """Seconds for a tuple to be found in the cache, to write a row of output, and a byte of it."""
    keys = ground.keys(30 * BATCH, _KEPT_ROWS)

    def measure(how: str, *, wide: bool = False) -> float:
        run = ground.run(ground.large, "optimised_x_hybridjoin", 24 << 20, keys, how=how, wide=wide)
        return float(np.mean(run.item_s[1:])) / BATCH

    found, narrow = least(lambda: measure("left_anti")), least(lambda: measure("inner"))
    byte = max(0.0, least(lambda: measure("inner", wide=True)) - narrow) / (8 * (COLUMNS - len(NARROW)))
    return max(0.0, found - take), max(0.0, narrow - found - NARROW_BYTES * byte), byte


def taken_at_once(memory: int) -> int:
    """Tuples that are taken from the experiments' stream at once."""
    schema = next(batches(np.zeros(1, np.int64), 0)).schema
    return min(BATCH, piece_rows(memory, StreamRows(RowCodec(schema), 0.0)))


def piece_s(ground: Ground) -> float:
    """Seconds for what is taken from the stream at once, however much it is: tuples that are found in a cache, in two memories.

    Output leaves in batches of about as many rows as a piece has, and what a batch costs by itself is in it.
    """
    keys = ground.keys(30 * BATCH, 500)

    def measure(memory: int) -> tuple[float, float]:
        run = ground.run(ground.small, "optimised_x_hybridjoin", memory, keys, wide=True)
        return float(np.mean(run.item_s[1:])) / BATCH, 1 / taken_at_once(memory)

    (small_s, small), (large_s, large) = (
        min(measure(memory) for _ in range(_REPEATED)) for memory in (1 << 20, 32 << 20)
    )
    return max(0.0, (small_s - large_s) / (small - large))


def leave_and_step_s(
    ground: Ground, before: Callable[[int], float], load_s: Callable[[float], float], row_s: float
) -> tuple[float, float]:
    """Seconds for a tuple that waits to meet its row and go, and of an iteration whatever it does: what two memories differ by.

    `before` is what a tuple costs otherwise in a memory, its output included, `row_s` what a row does that is probed.
    """
    (few_s, few_loads), (many_s, many_loads) = (
        min(_left_a_tuple(ground, "hybridjoin", memory, before, load_s, row_s) for _ in range(_REPEATED))
        for memory in (1 << 20, 12 << 20)
    )
    step = max(
        0.0, (few_s - many_s) / (few_loads - many_loads)
    )  # seconds a tuple = leave + loads a tuple * step, for both
    return max(0.0, many_s - many_loads * step), step


def check_s(
    ground: Ground, before: Callable[[int], float], load_s: Callable[[float], float], row_s: float, step: float
) -> float:
    """Seconds of showing a row to a cache; `before` is all that a tuple costs in a memory."""
    rows_a_load = _rows_a_load(ground)
    left, loads = min(_left_a_tuple(ground, "cachejoin", 1 << 20, before, load_s, row_s) for _ in range(_REPEATED))
    return max(0.0, (left / loads - step) / rows_a_load)


def _left_a_tuple(
    ground: Ground,
    algorithm: str,
    memory: int,
    before: Callable[[int], float],
    load_s: Callable[[float], float],
    row_s: float,
) -> tuple[float, float]:
    """Seconds a tuple that nothing has paid for yet, and loads a tuple."""
    keys = ground.keys(16 * BATCH, ROWS)
    run = ground.run(ground.large, algorithm, memory, keys)
    loads, read = run.report["loads"], run.report["bytes_read"]
    rows = read / (ground.large.info()["bytes"] / ROWS)
    left = run.busy_s - keys.size * before(memory) - loads * load_s(read / loads) - rows * row_s
    return left / keys.size, loads / keys.size


def _rows_a_load(ground: Ground) -> float:
    keys = ground.keys(BATCH, ROWS)
    report = ground.run(ground.large, "cachejoin", 1 << 20, keys).report
    return float(report["bytes_read"] / (ground.large.info()["bytes"] / ROWS) / report["loads"])
