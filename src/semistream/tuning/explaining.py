"""`ss.explain()`: before a join runs, what every algorithm would do with a memory, or would need for a rate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from semistream.algorithms import TABLE
from semistream.errors import BudgetError, CapabilityError, UsageError
from semistream.masters.file_master import FileMaster
from semistream.models import MODELS, Prediction, Setting, UnitCosts, predict
from semistream.models.setting import Demand
from semistream.plan import check_open, parse_on
from semistream.protocols import Master
from semistream.tuning import demand as demands
from semistream.tuning.calibration import Calibration, load_calibration
from semistream.tuning.explanation import Explanation, Line, beside
from semistream.tuning.sizes import Sizes, sizes_of, splits
from semistream.units import format_bytes, parse_bytes

_TUPLE_BYTES = 20  # without a sample, the tuples of the papers
_FIRST_ROWS = ("x_hybridjoin", "optimised_x_hybridjoin")
_FINE = 1.05  # the memory for a rate is found to within this factor


@dataclass(frozen=True)
class Question:
    """What was asked, checked."""

    master: Master
    demand: Demand
    sample: pa.RecordBatch
    costs: UnitCosts
    row_bytes: float
    output_bytes: float
    is_sorted: bool


def explain(
    master: Master,
    stream: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch] | None = None,
    *,
    on: Any = None,
    exponent: float | None = None,
    memory: int | str | None = None,
    rate: float | None = None,
    algorithms: Sequence[str] | None = None,
    calibration: Calibration | None = None,
    report: Mapping[str, Any] | None = None,
) -> Explanation:
    """Rank the algorithms, fastest first, for a memory; or, least memory first, for a rate.

    stream       a sample of the stream, the more the better; or
    exponent     Zipf's exponent of its keys
    on           the stream's key, as for `Join`; only with a sample
    memory       the budget, in bytes or as text; or
    rate         tuples a second that are needed
    algorithms   names; None for all that can join this master
    calibration  unit costs; None for those that `calibrate` saved
    report       `join.report()` of a run, to stand beside what was predicted for it
    """
    check_open(master)
    if (stream is None) == (exponent is None):
        raise UsageError("explain: need a sample of the stream or exponent=, one of them; a sample says more")
    if (memory is None) == (rate is None):
        raise UsageError("explain: need memory= or rate=, one of them")
    if rate is not None and not (isinstance(rate, int | float) and 0 < rate < float("inf")):
        raise UsageError(f"rate={rate!r}: need tuples a second, more than 0")
    memory_bytes = None if memory is None else parse_bytes(memory)
    names = list(algorithms) if algorithms is not None else list(TABLE)
    for name in names:
        if name not in TABLE:
            raise UsageError(f"algorithm={name!r} is unknown; choose one of {', '.join(TABLE)}")
    question = _question(master, stream, on, exponent, calibration)
    if memory_bytes is not None:
        found, left_out = _for_memory(question, names, memory_bytes)
        found.sort(key=lambda line: -line.rate)
    else:
        assert rate is not None
        found, left_out = _for_rate(question, names, float(rate))
        found.sort(key=lambda line: line.memory_bytes)
    return Explanation(memory_bytes, rate, found, left_out, beside(found, report) if report is not None else [])


def _question(
    master: Master, stream: Any, on: Any, exponent: float | None, calibration: Calibration | None
) -> Question:
    manifest = master.manifest if isinstance(master, FileMaster) else None
    is_sorted = manifest is not None and manifest.layout == "frequency"
    if stream is None:
        assert exponent is not None
        keys = list(master.keys.fields)
        filled = pa.field("rest", pa.binary(_TUPLE_BYTES - 8), nullable=False)
        sample = pa.RecordBatch.from_pylist([], schema=pa.schema([*keys, filled]))
        demand = demands.from_exponent(master, exponent, sorted_master=is_sorted)
    else:
        names = parse_on(on if on is not None else [field.name for field in master.keys.fields], master)
        sample = demands.as_batch(stream)
        demand = demands.from_sample(master, sample, names, sorted_master=is_sorted)
    io = master.io if isinstance(master, FileMaster) else "buffered"
    costs = (calibration.check("calibration") if calibration is not None else load_calibration(io=io)).costs
    file_bytes = master.info()["bytes"] if isinstance(master, FileMaster) else master.rows * master.row_bytes
    tuple_bytes = sample.nbytes / sample.num_rows if sample.num_rows else _TUPLE_BYTES
    output_bytes = tuple_bytes + master.row_bytes - 8 * len(master.keys.fields)
    return Question(master, demand, sample, costs, file_bytes / max(1, master.rows), output_bytes, is_sorted)


def _for_memory(question: Question, names: Sequence[str], memory_bytes: int) -> tuple[list[Line], dict[str, str]]:
    lines, left_out = [], {}
    for name in names:
        try:
            sizes, predicted = _predict(question, name, memory_bytes)
            _, twice = _predict(question, name, 2 * memory_bytes)
        except (BudgetError, CapabilityError) as error:
            left_out[name] = str(error)
            continue
        lines.append(_line(name, memory_bytes, sizes, predicted, twice.rate))
    if not lines:
        raise UsageError(
            "explain: no algorithm can do this: " + "; ".join(f"{name}: {why}" for name, why in left_out.items())
        )
    return lines, left_out


def _for_rate(question: Question, names: Sequence[str], rate: float) -> tuple[list[Line], dict[str, str]]:
    """The least memory that carries the rate, looked for between the smallest budget and several times the master."""
    lines, left_out, best = [], {}, (0.0, "")
    most = int(8 * max(question.master.rows * question.row_bytes, 8 << 20))
    for name in names:
        try:
            _, limit = _predict(question, name, most)
            if limit.rate < rate:
                terms = limit.iteration.terms
                binds = max(terms, key=lambda term: terms[term])
                best = max(best, (limit.rate, f"{name}, bound by {binds!r}"))
                left_out[name] = (
                    f"reaches {limit.rate:,.0f} tuples/s in {format_bytes(most)}; {binds!r} takes most of the time"
                )
                continue
            low, high = _smallest(question, name), most
            while high > low * _FINE:
                middle = int((low * high) ** 0.5)
                low, high = (low, middle) if _predict(question, name, middle)[1].rate >= rate else (middle, high)
            sizes, predicted = _predict(question, name, high)
            lines.append(_line(name, high, sizes, predicted, _predict(question, name, 2 * high)[1].rate))
        except (BudgetError, CapabilityError) as error:
            left_out[name] = str(error)
    if not lines:
        raise UsageError(
            f"rate={rate:,.0f} tuples/s is more than this machine can do here: not more than {best[0]:,.0f} tuples/s ({best[1]}), with any "
            "memory; ask for less, or spread the stream over several machines"
        )
    return lines, left_out


def _smallest(question: Question, name: str) -> int:
    try:
        sizes_of(question.master, name, 1, question.sample)
    except BudgetError as error:
        return error.smallest_bytes
    return 1


def _predict(question: Question, name: str, memory_bytes: int) -> tuple[Sizes, Prediction]:
    """Sizes and prediction; where one pool serves waiting tuples and cached rows, with the best split, as the join will find it."""
    sizes = sizes_of(question.master, name, memory_bytes, question.sample)
    # what stands first in a master that is not sorted by popularity is asked for no more than anything else
    keeps = 0.0 if name in _FIRST_ROWS and not question.is_sorted else 1.0
    predicted = [
        predict(
            name if name in MODELS else "hybridjoin",
            Setting(
                demand=question.demand,
                rows=question.master.rows,
                slots=_at_once(question, sizes, slots, cached),
                partition_rows=max(1.0, sizes.partition_rows),
                costs=question.costs,
                row_bytes=question.row_bytes,
                cached_rows=cached * keeps,
                pinned_rows=sizes.pinned_rows * keeps,
                output_bytes=question.output_bytes,
                least_waiting=sizes.least_waiting,
                segments=sizes.segments,
                piece_rows=sizes.piece_rows,
            ),
        )
        for slots, cached in splits(sizes)
    ]
    return sizes, predicted[int(np.argmax([one.rate for one in predicted]))]


def _at_once(question: Question, sizes: Sizes, slots: float, cached: float) -> float:
    """Tuples that wait at once: no more than misses fit into what output in order may hold back."""
    if math.isinf(sizes.window):
        return slots
    return min(slots, max(1.0, sizes.window * (1 - question.demand.hottest(cached))))


def _line(name: str, memory_bytes: int, sizes: Sizes, predicted: Prediction, twice: float) -> Line:
    iteration = predicted.iteration
    pages = sizes.partition_pages if iteration.misses else 0.0
    return Line(
        algorithm=name,
        memory_bytes=memory_bytes,
        rate=predicted.rate,
        twice_memory_rate=twice,
        slots=predicted.slots,
        hits=iteration.hits * sizes.segments,
        misses=iteration.misses * sizes.segments,
        pages_per_tuple=pages / iteration.tuples / sizes.segments,
        wait_tuples=predicted.wait_tuples if iteration.misses else 0.0,
        wait_s=predicted.wait_s if iteration.misses else 0.0,
        bytes_by_part=sizes.bytes_by_part,
        terms={term: seconds / iteration.tuples for term, seconds in iteration.terms.items()},
    )
