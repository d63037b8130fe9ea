"""Joins with an index and a queue: HYBRIDJOIN, its pinned and cached forms, other choices of pages.

The papers' equations for an iteration, corrected: a miss has been looked up in the cache, too; the index is looked up once a load; output
is paid for by the row. X-HYBRIDJOIN Eq. 2 and 5, Optimised X-HYBRIDJOIN Eq. 2, P-CACHEJOIN Eq. 2 without its threads (CACHEJOIN).
"""

from __future__ import annotations

from collections.abc import Callable

from semistream.errors import UsageError
from semistream.models import choices, kept, printed
from semistream.models.choices import Answers
from semistream.models.costs import one_after_the_other
from semistream.models.memory import Form
from semistream.models.setting import Prediction, Setting
from semistream.parts.memory import F64

# thresholds of the tuned recipes, in average loads; the paper gives no values
DUE, ENTRY = 6.0, 1.5
PLACE, PUBLISHED_PLACE = 0.7, 0.3
Choice = Callable[[F64, float], Answers]


def hybridjoin(setting: Setting, form: Form = "corrected") -> Prediction:
    """Oldest first, nothing kept."""
    if form == "published":
        split = printed.x_hybridjoin(setting.slots, setting.rows, setting.partition_rows, 0.0)
        return _priced("hybridjoin", setting, form, 0.0, split.misses, setting.slots)
    return chosen("hybridjoin", choices.oldest_first)(setting, form)


def x_hybridjoin(setting: Setting, form: Form = "corrected") -> Prediction:
    """Pinned rows probe in every iteration; who waits for them holds a slot meanwhile."""
    costs, pinned = setting.costs, setting.demand.hottest(setting.pinned_rows)
    if form == "published":
        split = printed.x_hybridjoin(setting.slots, setting.rows, setting.partition_rows, setting.pinned_rows)
        hits, misses, age = split.hits, split.misses, setting.slots
    else:
        needed = setting.demand.needed(setting.partition_rows, setting.pinned_rows)
        answers = choices.oldest_first(needed, setting.slots, pinned)
        hits, misses, age = answers.per_load * pinned / (1 - pinned), answers.per_load, answers.age
    both, output = hits + misses, setting.matches if form == "corrected" else 1.0
    terms = {
        "read": costs.read(setting.load_bytes, scanning=False),
        "look up": costs.look_up_s if form == "corrected" else 0.0,
        "probe": (setting.pinned_rows + setting.partition_rows) * costs.probe_s,
        "take": both * setting.take_s,
        "admit": both * costs.admit_s,
        "leave": both * costs.leave_s,
        "settle": both * output * setting.settle_s,
        "step": costs.step_s if form == "corrected" else 0.0,
    }
    return Prediction("x_hybridjoin", form, setting.slots, one_after_the_other(hits, misses, terms), age)


def cached(name: str, *, checks: bool) -> Callable[[Setting, Form], Prediction]:
    """A cache in front of HYBRIDJOIN; `checks`: rows of a load are examined for how many wait for them (CACHEJOIN and later)."""
    behind = chosen(name, choices.oldest_first, checks=checks)

    def model(setting: Setting, form: Form = "corrected") -> Prediction:
        if form == "corrected":
            return behind(setting, form)
        split = printed.optimised_x_hybridjoin(
            setting.slots, setting.rows, setting.partition_rows, max(1.0, setting.cached_rows)
        )
        return _priced(name, setting, form, split.hits, split.misses, setting.slots, checks=checks)

    return model


def chosen(name: str, choice: Choice, *, checks: bool = False) -> Callable[[Setting, Form], Prediction]:
    """HYBRIDJOIN with some choice of pages, behind a cache if rows are cached."""

    def model(setting: Setting, form: Form = "corrected") -> Prediction:
        if form == "published":
            raise UsageError(f'{name}: its paper has no formula for the tuples of an iteration; use form="corrected"')
        hit = setting.demand.hottest(setting.cached_rows)
        if hit >= 1.0:  # whatever is asked for is cached
            return _priced(name, setting, form, setting.slots, 0.0, 0.0, checks=checks)
        needed = setting.demand.needed(setting.partition_rows, setting.cached_rows)
        answers = choice(needed, setting.slots)
        if checks and setting.least_waiting and setting.cached_rows:
            chance = kept.by_chance(
                setting.demand, setting.partition_rows, setting.slots, setting.cached_rows, setting.least_waiting
            )
            # what random victims do to oldest first they do to other choices as well
            gain = chance.per_load / choices.oldest_first(needed, setting.slots).per_load
            hit, answers = chance.hit_share, answers._replace(per_load=answers.per_load * gain)
        hits = answers.per_load * hit / (1 - hit)
        return _priced(name, setting, form, hits, answers.per_load, answers.age, checks=checks)

    return model


def due_first(needed: F64, slots: float) -> Answers:
    """The queue of frequent pages with our thresholds."""
    return choices.due_first(needed, slots, DUE, ENTRY)


def fixed_place(needed: F64, slots: float) -> Answers:
    """The tuned place in the queue."""
    return choices.fixed_place(needed, slots, PLACE)


def _priced(
    name: str, setting: Setting, form: Form, hits: float, misses: float, age: float, *, checks: bool = False
) -> Prediction:
    costs, corrected = setting.costs, form == "corrected"
    both, output = hits + misses, setting.matches if corrected else 1.0
    has_cache = setting.cached_rows > 0
    in_cache = both if corrected else hits  # a miss was looked up as well
    loads = 1.0 if misses else 0.0
    terms = {
        "read": loads * costs.read(setting.load_bytes, scanning=False),
        "look up": loads * costs.look_up_s if corrected else 0.0,
        "probe": loads * setting.partition_rows * costs.probe_s,
        "probe cache": in_cache * costs.cache_probe_s if has_cache else 0.0,
        "check": loads * setting.partition_rows * costs.check_s if has_cache and checks else 0.0,
        "keep": setting.moved_rows * costs.keep_s if corrected else 0.0,
        "take": both * setting.take_s,
        "admit": misses * costs.admit_s,
        "leave": misses * costs.leave_s,
        "settle": both * output * setting.settle_s,
        "step": loads * costs.step_s if corrected else 0.0,
    }
    return Prediction(name, form, setting.slots, one_after_the_other(hits, misses, terms), age)
