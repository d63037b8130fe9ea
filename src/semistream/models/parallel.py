"""P-CACHEJOIN and OP-CACHEJOIN: CACHEJOIN's two phases in two threads, and loads by further threads.

Phases that overlap are not added up, as P-CACHEJOIN Eq. 2 does: the longer one counts. A miss is taken twice, from the stream buffer and
from the buffer between the threads; the print counts one of them. Two loaders halve the time of reading only if the device does two reads
at once, and only as far as reading was what took the time.

How many tuples a load answers is CACHEJOIN's: in OP-CACHEJOIN every second load is chosen by the newest tuple, which we have not modelled.
"""

from __future__ import annotations

from collections.abc import Mapping

from semistream.models import queues
from semistream.models.costs import Iteration, one_after_the_other
from semistream.models.memory import Form
from semistream.models.setting import Prediction, Setting

_CACHEJOIN = queues.cached("cachejoin", checks=True)
_OF_MASTER = ("read", "look up", "probe", "check", "keep", "admit", "leave", "step")


def p_cachejoin(setting: Setting, form: Form = "corrected") -> Prediction:
    """The stream is probed in one thread, the master in the other."""
    return _two_phases("p_cachejoin", setting, form, loaders=1)


def op_cachejoin(setting: Setting, form: Form = "corrected") -> Prediction:
    """And two threads load."""
    return _two_phases("op_cachejoin", setting, form, loaders=2)


def _two_phases(name: str, setting: Setting, form: Form, loaders: int) -> Prediction:
    plain, costs = _CACHEJOIN(setting, form), setting.costs
    hits, misses = plain.iteration.hits, plain.iteration.misses
    if form == "published":
        terms = plain.iteration.terms | {"hand over": misses * costs.hand_over_s}
        terms["read"] = terms.get("read", 0.0) / loaders
        return Prediction(name, form, setting.slots, one_after_the_other(hits, misses, terms), plain.age)
    both, own = hits + misses, plain.iteration.terms
    stream: dict[str, float] = {
        "take": both * setting.take_s,
        "probe cache": own.get("probe cache", 0.0),
        "settle": hits * setting.matches * setting.settle_s,
        "hand over": misses * costs.hand_over_s,
    }
    master: dict[str, float] = {name: own[name] for name in _OF_MASTER if name in own}
    master |= {"take": misses * setting.take_s, "settle": misses * setting.matches * setting.settle_s}
    phases: dict[str, Mapping[str, float]] = {"stream": stream, "master": master}
    if loaders > 1:
        phases["load"] = {"read": master.pop("read", 0.0) / min(loaders, max(1.0, setting.parallel_reads))}
    return Prediction(name, form, setting.slots, Iteration(hits, misses, phases), plain.age)
