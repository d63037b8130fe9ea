"""The table of algorithms: one recipe, one file. Deleting a file and its line here removes the algorithm.

Most of them differ in three decisions only: which page is next, which tuples leave, and what stays in memory.
"""

from __future__ import annotations

import sys
from types import ModuleType

from semistream.algorithms import hybridjoin, meshjoin
from semistream.algorithms.record import Algorithm

_MODULES = (meshjoin, hybridjoin)
TABLE: dict[str, Algorithm] = {module.ALGORITHM.name: module.ALGORITHM for module in _MODULES}


def algorithms() -> list[Algorithm]:
    """All algorithms, with what each can do.

    >>> [algorithm.name for algorithm in algorithms()]
    ['meshjoin', 'hybridjoin']
    """
    return list(TABLE.values())


class _CallablePackage(ModuleType):
    """`semistream.algorithms` is this package and `semistream.algorithms()` its table, whichever was imported first."""

    def __call__(self) -> list[Algorithm]:
        return algorithms()


sys.modules[__name__].__class__ = _CallablePackage
