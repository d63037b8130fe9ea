"""Joins that look keys up, or serve blocks: INLJ, Derakhshan et al., SSIJ, Partitioned Join. The papers have no cost models but for INLJ.

INLJ, Derakhshan   a full table is answered in one pass over the pages that it needs
SSIJ               the same with blocks, some of which stay in memory
Partitioned Join   the range that most wait for makes room: every load answers equally many
"""

from __future__ import annotations

import numpy as np

from semistream.errors import UsageError
from semistream.models import choices
from semistream.models.costs import one_after_the_other
from semistream.models.memory import Form
from semistream.models.setting import Prediction, Setting
from semistream.parts.memory import F64


def inlj(setting: Setting, form: Form = "corrected") -> Prediction:
    """Printed: one look-up and one read for each tuple. Corrected: look-ups in batches, as every database does them."""
    costs = setting.costs
    if form == "corrected":
        needed = setting.demand.needed(setting.partition_rows)
        return _served("inlj", setting, 0.0, choices.all_at_once(needed, setting.slots))
    terms = {
        "read": costs.read(setting.load_bytes, scanning=False),
        "probe": costs.probe_s,
        "take": setting.take_s,
        "settle": setting.settle_s,
    }
    return Prediction("inlj", form, 1.0, one_after_the_other(0.0, 1.0, terms), 1.0)


def derakhshan(setting: Setting, form: Form = "corrected") -> Prediction:
    """A cache of the hottest rows, and a batch for the others."""
    _no_print("derakhshan", form)
    hit = setting.demand.hottest(setting.cached_rows)
    needed = setting.demand.needed(setting.partition_rows, setting.cached_rows)
    return _served("derakhshan", setting, hit, choices.all_at_once(needed, setting.slots))


def ssij(setting: Setting, form: Form = "corrected") -> Prediction:
    """Blocks that were asked for most stay, then a join phase for all who wait."""
    _no_print("ssij", form)
    needed, hit = _without_kept(setting)
    return _served("ssij", setting, hit, choices.all_at_once(needed, setting.slots))


def partitioned_join(setting: Setting, form: Form = "corrected") -> Prediction:
    """Ranges that were asked for most stay; of the others the fullest is served."""
    _no_print("partitioned_join", form)
    needed, hit = _without_kept(setting)
    return _served("partitioned_join", setting, hit, choices.fullest_first(needed, setting.slots))


def _without_kept(setting: Setting) -> tuple[F64, float]:
    """Partitions that are read, and the share of the stream that asks for those that stay in memory."""
    needed = np.sort(setting.demand.needed(setting.partition_rows))[::-1]
    kept = min(needed.size - 1, int(setting.cached_rows // setting.partition_rows))
    hit = float(needed[:kept].sum())
    return needed[kept:] / max(1e-12, 1 - hit), hit


def _served(name: str, setting: Setting, hit: float, answers: choices.Answers) -> Prediction:
    costs, misses = setting.costs, answers.per_load
    hits = misses * hit / max(1e-12, 1 - hit)
    both = hits + misses
    terms = {
        "read": costs.read(setting.load_bytes, scanning=False),
        "probe": setting.partition_rows * costs.probe_s,
        "probe cache": both * costs.cache_probe_s if setting.cached_rows else 0.0,
        "take": both * setting.take_s,
        "admit": misses * costs.admit_s,
        "leave": misses * costs.leave_s,
        "settle": both * setting.matches * setting.settle_s,
        "step": costs.step_s,
    }
    return Prediction(name, "corrected", setting.slots, one_after_the_other(hits, misses, terms), answers.age)


def _no_print(name: str, form: Form) -> None:
    if form == "published":
        raise UsageError(f'{name}: its paper has no cost model; use form="corrected"')
