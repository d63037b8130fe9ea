"""semistream: lookup joins for streams against master tables far bigger than memory, within a byte budget, exactly.

    import semistream as ss
    master = ss.build_master("products.master", "products.parquet", key="product_id")
    join = ss.Join(master, on="product_id", memory="64MB")
    for batch in join(stream_batches): ...

Names are loaded on first use, so that `import semistream` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semistream.algorithms import algorithms
    from semistream.errors import (
        BudgetError,
        BuildFailed,
        CalibrationError,
        CapabilityError,
        ColumnError,
        KeyTypeError,
        MasterBusy,
        MasterCorrupt,
        MasterError,
        MasterFormat,
        MasterNotFound,
        NoProgress,
        SemistreamError,
        SourceError,
        StateError,
        UsageError,
    )
    from semistream.join import Join
    from semistream.masters.build import build_master
    from semistream.masters.file_master import open_master
    from semistream.tuning.calibrate import calibrate
    from semistream.tuning.explaining import explain

try:
    __version__ = version("semistream")
except PackageNotFoundError:  # running from a source tree that was never installed
    __version__ = "0+unknown"

_HOMES = {
    "Join": "semistream.join",
    "algorithms": "semistream.algorithms",
    "build_master": "semistream.masters.build",
    "calibrate": "semistream.tuning.calibrate",
    "explain": "semistream.tuning.explaining",
    "open_master": "semistream.masters.file_master",
}

__all__ = [
    "BudgetError",
    "BuildFailed",
    "CalibrationError",
    "CapabilityError",
    "ColumnError",
    "Join",
    "KeyTypeError",
    "MasterBusy",
    "MasterCorrupt",
    "MasterError",
    "MasterFormat",
    "MasterNotFound",
    "NoProgress",
    "SemistreamError",
    "SourceError",
    "StateError",
    "UsageError",
    "algorithms",
    "build_master",
    "calibrate",
    "explain",
    "open_master",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'semistream' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "semistream.errors")), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
