"""The table of algorithms: one recipe, one file. Deleting a file and its line here removes the algorithm.

Most of them differ in three decisions only: which page is next, which tuples leave, and what stays in memory.
"""

from __future__ import annotations

import sys
from types import ModuleType

from semistream.algorithms import (
    adaptive,
    cachejoin,
    cachejoin_l,
    cachejoin_lwf,
    cachejoin_pq,
    cmeshjoin,
    derakhshan,
    hybridjoin,
    hybridjoin_l,
    hybridjoin_lwf,
    hybridjoin_pq,
    inlj,
    meshjoin,
    op_cachejoin,
    optimised_x_hybridjoin,
    p_cachejoin,
    partitioned_join,
    r_meshjoin,
    ssbj,
    sscj,
    ssij,
    x_hybridjoin,
)
from semistream.algorithms.record import Algorithm
from semistream.errors import CapabilityError, UsageError
from semistream.protocols import Master

_MODULES = (
    inlj,
    meshjoin,
    r_meshjoin,
    partitioned_join,
    ssij,
    hybridjoin,
    x_hybridjoin,
    optimised_x_hybridjoin,
    cachejoin,
    sscj,
    cmeshjoin,
    p_cachejoin,
    op_cachejoin,
    hybridjoin_l,
    hybridjoin_pq,
    hybridjoin_lwf,
    cachejoin_l,
    cachejoin_pq,
    cachejoin_lwf,
    derakhshan,
    ssbj,
    adaptive,
)
TABLE: dict[str, Algorithm] = {module.ALGORITHM.name: module.ALGORITHM for module in _MODULES}


def algorithms() -> list[Algorithm]:
    """All algorithms, with what each can do.

    >>> [algorithm.name for algorithm in algorithms()][:4]
    ['inlj', 'meshjoin', 'r_meshjoin', 'partitioned_join']
    """
    return list(TABLE.values())


def find_algorithm(name: str, master: Master, preset: str | None) -> Algorithm:
    """The algorithm of that name, if it can join this master."""
    if name not in TABLE:
        raise UsageError(f"algorithm={name!r} is unknown; choose one of {', '.join(TABLE)}")
    chosen = TABLE[name]
    if chosen.needs_index and not master.indexed:
        others = ", ".join(one.name for one in TABLE.values() if not one.needs_index)
        raise CapabilityError(
            f"algorithm={name!r} looks keys up, and master {master.name} has no index on its key; create one, or use a scanning "
            f"algorithm: {others}",
            algorithm=name,
            capability="index",
        )
    if chosen.needs_word_order and not master.word_order:
        others = ", ".join(one.name for one in TABLE.values() if not one.needs_word_order)
        raise CapabilityError(
            f"algorithm={name!r} finds the page of every waiting tuple in memory, and the rows of master {master.name} do not stand in "
            f'the order of their keys; build it with layout="key", or use another algorithm: {others}',
            algorithm=name,
            capability="word_order",
        )
    if preset is not None and preset not in chosen.presets:
        raise CapabilityError(
            f"algorithm={name!r} has no preset {preset!r}; it has {', '.join(chosen.presets)}",
            algorithm=name,
            capability="preset",
        )
    return chosen


class _CallablePackage(ModuleType):
    """`semistream.algorithms` is this package and `semistream.algorithms()` its table, whichever was imported first."""

    def __call__(self) -> list[Algorithm]:
        return algorithms()


sys.modules[__name__].__class__ = _CallablePackage
