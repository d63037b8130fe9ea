"""What a run of the demo found: the verdict and the figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from semistream.demo.proof import Compared
from semistream.demo.streaming import StreamRun


@dataclass(frozen=True)
class DemoResult:
    """`verified` is the verdict, `exit_code` the same for a command."""

    folder: Path
    tables: list[Compared]
    stream: StreamRun

    @property
    def verified(self) -> bool:
        """Whether every table equals what the raw files say, and there is something in them."""
        return self.rows > 0 and all(table.equal for table in self.tables)

    @property
    def rows(self) -> int:
        """Rows that were compared, over all tables."""
        return sum(table.rows for table in self.tables)

    @property
    def exit_code(self) -> int:
        """0 if verified, else 1."""
        return 0 if self.verified else 1

    def to_dict(self) -> dict[str, Any]:
        """Plain data for machines."""
        return {"verified": self.verified, "rows": self.rows, **asdict(self), "folder": str(self.folder)}
