"""How many waiting tuples a load answers, by the choice of the partition that is read next.

`needed` is the share of each partition among the tuples that enter the stream table (it adds up to 1), `slots` how many can wait. Time is
counted in tuples that enter. In steady state partition i is loaded r_i times for each of them, and a load answers 1 / sum(r_i).
Between two loads of a partition its tuples gather, and what is occupied by all partitions together must be the stream table:
that one condition fixes everything.

The papers' equations are replaced by these; `printed.py` has the old ones, docs/errata.md tells why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semistream.parts.memory import F64


class Answers(NamedTuple):
    """A choice in steady state: tuples that a load answers, and how old the oldest tuple is when its partition is loaded."""

    per_load: float
    age: float


def oldest_first(needed: F64, slots: float, pinned: float = 0.0) -> Answers:
    """The partition of the oldest tuple: HYBRIDJOIN and all that keep its queue (renewal argument).

    A partition that was loaded is empty until its first tuple comes, 1/q later on average, and is loaded T after that. So a load answers
    1 + q T, r = q / (1 + q T), and its tuples occupy r (T + q T^2 / 2). Half of what a load answers is empty on average.
    `pinned`: the share of the stream that waits for pinned rows, for one iteration (X-HYBRIDJOIN).
    """

    def occupied(age: float) -> float:
        loads = needed / (1 + needed * age)
        per_load = 1 / loads.sum()
        riding = per_load * pinned / (1 - pinned)  # w_N tuples come with every w_S and hold slots as well
        return float((loads * (age + needed * age**2 / 2)).sum() + per_load / 2 + riding)

    age = _solve(occupied, slots)
    return Answers(float(1 / (needed / (1 + needed * age)).sum()), age)


def longest_wait(needed: F64, slots: float) -> Answers:
    """Square-root rule: partition i every T_i ~ 1 / sqrt(q_i). No choice of pages can answer more; LWF and RxW come within some percent."""
    root = np.sqrt(needed)
    least = needed[needed > 0].min() ** 0.5
    return Answers(float(2 * slots / root.sum() ** 2), float(2 * slots / root.sum() / least))


def fullest_first(needed: F64, slots: float) -> Answers:
    """Every load answers equally many: no better than oldest first, from the other side."""
    used = int((needed > 0).sum())
    return Answers(2 * slots / used, float(2 * slots / used / needed[needed > 0].min()))


def due_first(needed: F64, slots: float, threshold: float, entry: float) -> Answers:
    """Partitions needed `entry` times more than average are read when `threshold` average loads wait for them, if not sooner by age.

    It is oldest first with a limit to what a load of a frequent partition answers (our derivation; the papers give none).
    """
    limit = max(2.0, threshold * 2 * slots / needed.size)
    frequent = needed * needed.size >= entry

    def loads_at(age: float) -> tuple[F64, npt.NDArray[np.bool_]]:
        due = frequent & (1 + needed * age > limit)
        return np.where(due, needed / limit, needed / (1 + needed * age)), due

    def occupied(age: float) -> float:
        loads, due = loads_at(age)
        held = np.where(due, limit / 2, loads * (age + needed * age**2 / 2))
        return float(held.sum() + 0.5 / loads.sum())

    age = _solve(occupied, slots)
    return Answers(float(1 / loads_at(age)[0].sum()), age)


def fixed_place(needed: F64, slots: float, place: float) -> Answers:
    """The tuple at a fixed place of the queue, `place` of it from the young end (our derivation; the papers give none).

    A load lets many tuples pass the mark and serves one. So each that reaches the mark, at age A, chooses with a chance s. A partition is
    loaded A after its first chosen tuple came: r = s q / (1 + s q A). All tuples must fill the stream table, those younger than A its
    `place`. No age limit is assumed: tuples behind the mark wait until somebody else needs their partition.
    """

    def young(age: float, chance: float) -> float:
        loads = chance * needed / (1 + chance * needed * age)
        return float((loads * (needed * age**2 / 2 + age / chance)).sum())

    def chance_at(age: float) -> float:
        """Tuples younger than A are more, the later their partition is loaded."""
        return _solve(lambda inverse: young(age, 1 / inverse), place * slots, 1.0, 1e9)

    def all_of(age: float) -> float:
        chance = 1 / chance_at(age)
        loads = chance * needed / (1 + chance * needed * age)
        passed = needed * (1 - chance) * _gap(chance * needed, age)
        return float((loads * (passed + age + needed * age**2 / 2)).sum())

    # the younger tuples reach the mark, the fewer of them choose: at A = place * slots nobody ever does
    age = -_solve(lambda minus: all_of(-minus), slots, -2 * slots, -place * slots * (1 + 1e-9))
    chance = 1 / chance_at(age)
    return Answers(float(1 / (chance * needed / (1 + chance * needed * age)).sum()), age)


def _gap(rate: F64, age: float) -> F64:
    """What tuples that did not choose wait, added up, for one of them a unit of time: E^2 / 2 + E A, E exponential."""
    with np.errstate(divide="ignore"):
        return np.where(rate > 0, 1 / rate**2 + age / rate, 0.0)


def all_at_once(needed: F64, slots: float) -> Answers:
    """A full stream table is answered in one pass over the partitions that anybody in it needs, then it fills again."""
    return Answers(float(slots / (1 - np.exp(-needed * slots)).sum()), slots)


def _solve(rising: Callable[[float], float], wanted: float, low: float = 0.0, high: float | None = None) -> float:
    """Where a rising function reaches a value."""
    high = 1e4 * wanted if high is None else high
    for _ in range(100):
        middle = (low + high) / 2
        if rising(middle) < wanted:
            low = middle
        else:
            high = middle
        if high - low <= 1e-12 * abs(high):
            break
    return (low + high) / 2
