"""Every error semistream raises on purpose. One sentence of cause, one of cure; `retry` says whether trying again can help.

SemistreamError
├── UsageError              the call is wrong; nothing was read or written
│   ├── ColumnError         a column is missing, ambiguous or clashes
│   ├── KeyTypeError        the two key types cannot be compared without loss
│   ├── BudgetError         the byte budget cannot hold the smallest working set
│   └── CapabilityError     this algorithm cannot do what was asked
├── SourceError             a source of rows cannot be read
├── MasterError             something about a master table on disk
│   ├── MasterNotFound      there is no finished master at that place
│   ├── MasterCorrupt       bytes on disk are not the bytes that were written
│   ├── MasterFormat        written by a newer semistream
│   ├── MasterBusy          another process is writing it (retry helps)
│   └── BuildFailed         a build stopped; the old version is still in use
├── CalibrationError        unit costs are missing, or are another machine's or version's
├── StateError              a saved join or a query cannot be gone on with: other options, another master, or damaged
└── NoProgress              a recipe stopped moving: a bug in semistream, please report it
"""

from __future__ import annotations


class SemistreamError(Exception):
    """Base of every error that semistream raises on purpose."""

    retry = False


class UsageError(SemistreamError, ValueError):
    """The call is wrong; nothing was read or written."""


class ColumnError(UsageError):
    """A column is missing, ambiguous or clashes with another."""


class KeyTypeError(UsageError):
    """The stream's and the master's key types cannot be compared without loss."""


class BudgetError(UsageError):
    """The byte budget cannot hold the smallest working set."""

    def __init__(self, message: str, *, part: str, needed_bytes: int, smallest_bytes: int) -> None:
        super().__init__(message)
        self.part = part
        self.needed_bytes = needed_bytes
        self.smallest_bytes = smallest_bytes


class CapabilityError(UsageError):
    """This algorithm cannot do what was asked; `ss.algorithms()` lists what each can do."""

    def __init__(self, message: str, *, algorithm: str, capability: str) -> None:
        super().__init__(message)
        self.algorithm = algorithm
        self.capability = capability


class SourceError(SemistreamError):
    """A source of rows cannot be read."""


class MasterError(SemistreamError):
    """Something about a master table on disk."""


class MasterNotFound(MasterError, FileNotFoundError):
    """There is no finished master at that place."""


class MasterCorrupt(MasterError):
    """Bytes on disk are not the bytes that were written."""


class MasterFormat(MasterError):
    """The master was written by a newer semistream."""


class MasterBusy(MasterError):
    """Another process is writing this master; try again when it is done."""

    retry = True


class BuildFailed(MasterError):
    """A build stopped before its end; the previous version, if any, is still in use."""


class StateError(SemistreamError):
    """A saved join or a query cannot be gone on with: its state is damaged, or is that of another join or master."""


class CalibrationError(SemistreamError):
    """Unit costs are missing, damaged, or were measured on another machine or with another version."""


class NoProgress(SemistreamError):
    """A recipe stopped moving: a bug in semistream, please report it."""
