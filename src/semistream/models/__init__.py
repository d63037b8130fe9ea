"""Cost models: what every algorithm of the papers will do in a setting, as published and as corrected.

    popularity.py   who asks for what: any Zipf exponent, or counts of a sample
    memory.py       how many tuples wait in a budget, by the papers' charges
    choices.py      how many of them a load answers, by the choice of the page
    kept.py         what a cache holds when its victims are random
    costs.py        unit costs, and an iteration term by term
    queues.py  scans.py  parallel.py  batches.py      the algorithms, by family
    inequality.py   SSBJ: who is cached, and which rate a memory carries
    printed.py      the formulas that the corrected ones replace

>>> from semistream.models.popularity import zipf
>>> setting = Setting(demand=zipf(2_000_000, 1.0), rows=2e6, slots=256_710, partition_rows=500, costs=EXAMPLE)
>>> round(predict("hybridjoin", setting).iteration.misses), round(predict("hybridjoin", setting, form="published").iteration.misses)
(129, 64)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from semistream.errors import UsageError
from semistream.models import batches, choices, parallel, queues, scans
from semistream.models.costs import Iteration, UnitCosts
from semistream.models.memory import FORMS, Form, check_form
from semistream.models.setting import Prediction, Setting

__all__ = ["EXAMPLE", "FORMS", "MODELS", "Form", "Iteration", "Prediction", "Setting", "UnitCosts", "predict"]

Model: TypeAlias = Callable[[Setting, Form], Prediction]

MODELS: dict[str, Model] = {
    "inlj": batches.inlj,
    "meshjoin": scans.meshjoin,
    "r_meshjoin": scans.r_meshjoin,
    "partitioned_join": batches.partitioned_join,
    "ssij": batches.ssij,
    "hybridjoin": queues.hybridjoin,
    "x_hybridjoin": queues.x_hybridjoin,
    "optimised_x_hybridjoin": queues.cached("optimised_x_hybridjoin", checks=False),
    "cachejoin": queues.cached("cachejoin", checks=True),
    "sscj": queues.cached("sscj", checks=True),
    "cmeshjoin": scans.cmeshjoin,
    "p_cachejoin": parallel.p_cachejoin,
    "op_cachejoin": parallel.op_cachejoin,
    "hybridjoin_l": queues.chosen("hybridjoin_l", queues.fixed_place),
    "cachejoin_l": queues.chosen("cachejoin_l", queues.fixed_place, checks=True),
    "hybridjoin_pq": queues.chosen("hybridjoin_pq", queues.due_first),
    "cachejoin_pq": queues.chosen("cachejoin_pq", queues.due_first, checks=True),
    "ssbj": scans.ssbj,
    "derakhshan": batches.derakhshan,
    "hybridjoin_lwf": queues.chosen("hybridjoin_lwf", choices.longest_wait),
    "cachejoin_lwf": queues.chosen("cachejoin_lwf", choices.longest_wait, checks=True),
    "adaptive": queues.chosen("adaptive", choices.longest_wait, checks=True),
}

# a disk of 5 ms and 100 MB/s and look-ups of a tenth of a microsecond: for examples; `semistream calibrate` measures yours
EXAMPLE = UnitCosts(
    read_s=5e-3,
    read_byte_s=1e-8,
    scan_s=5e-4,
    scan_byte_s=1e-8,
    probe_s=1e-7,
    settle_s=1e-7,
    leave_s=1e-7,
    take_s=1e-7,
    admit_s=1e-7,
    check_s=1e-8,
    keep_s=1e-7,
    hand_over_s=1e-7,
)


def predict(algorithm: str, setting: Setting, form: Form = "corrected") -> Prediction:
    """What this algorithm will do in this setting, by the corrected model or by the paper's own."""
    check_form(form)
    if algorithm not in MODELS:
        raise UsageError(f"algorithm={algorithm!r} has no cost model; there are {', '.join(MODELS)}")
    return MODELS[algorithm](setting, form)
