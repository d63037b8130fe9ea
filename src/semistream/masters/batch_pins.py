"""Which version of a master each micro-batch of a streaming query uses: chosen once, by whichever task comes first.

    <pins>/<query>/<operator>/17       the version that micro-batch 17 reads, why, and a checksum

A pin is put only if it is not there: it is written under another name and then linked to its own, which the file system lets one writer
do. Whoever comes second reads what the first one chose. So tasks, retries, speculative copies and the whole batch replayed after a crash
agree, whatever was published in between. By default `<pins>` is the master's own `_pins/`, where `vacuum` looks for versions in use.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import xxhash

from semistream.errors import MasterCorrupt, UsageError
from semistream.masters.claims import DRAFT
from semistream.masters.folder import sync

_DRAFT_SECONDS: Final = 3600  # a draft so old was left by a writer that was killed
_NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


@dataclass(frozen=True)
class Choice:
    """What a pin says: the version, who needs it, for which join, and what the version's files sum to."""

    version: str
    owner: str
    join: str
    fingerprint: str

    def to_text(self) -> str:
        """The lines of the file; the first is the version, for `vacuum`, and the last a checksum of the others."""
        lines = f"{self.version}\n{self.owner}\n{self.join}\n{self.fingerprint}"
        return f"{lines}\n{xxhash.xxh3_64_hexdigest(lines.encode())}\n"


@dataclass(frozen=True)
class BatchPins:
    """The pins of one operator of one query."""

    folder: Path

    def read(self, batch: int) -> Choice | None:
        """What was chosen for a micro-batch, if anything was."""
        path = self.folder / str(batch)
        try:
            text = path.read_bytes().decode("utf-8", errors="replace")
        except FileNotFoundError:
            return None
        lines = text.splitlines()
        if len(lines) != 5 or Choice(*lines[:4]).to_text() != text:
            raise MasterCorrupt(
                f"{path}: is not a whole pin; it says which version of the master micro-batch {batch} uses. Put that version's name back "
                "from a copy, or remove the file to let the micro-batch use the current version"
            )
        return Choice(*lines[:4])

    def put(self, batch: int, choice: Choice) -> Choice:
        """Choose, unless somebody was faster; gives what holds from now on."""
        path, draft = self.folder / str(batch), self.folder / f"{DRAFT}{batch}-{secrets.token_hex(4)}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with draft.open("x", encoding="utf-8") as file:
                file.write(choice.to_text())
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                path.hardlink_to(draft)
            sync(self.folder)  # a replay after a power cut must find the name, too
        except OSError as exc:
            raise unwritable(self.folder, exc) from exc
        finally:
            with suppress(OSError):
                draft.unlink()
        return self.read(batch) or choice

    def before(self, batch: int) -> Choice | None:
        """The latest choice for an earlier micro-batch."""
        earlier = [number for number in self._batches() if number < batch]
        return self.read(max(earlier)) if earlier else None

    def forget(self, before: int) -> None:
        """Remove pins of micro-batches that are never replayed, and what killed writers left."""
        for number in self._batches():
            if number < before:
                (self.folder / str(number)).unlink(missing_ok=True)
        for draft in self.folder.glob(f"{DRAFT}*"):
            with suppress(FileNotFoundError):
                if time.time() - draft.stat().st_mtime > _DRAFT_SECONDS:
                    draft.unlink()

    def _batches(self) -> list[int]:
        return [int(path.name) for path in self.folder.iterdir() if path.name.isdigit()] if self.folder.is_dir() else []


def check_writable(folder: Path) -> None:
    """Refuse a place for pins in which none can be made, before a query relies on it."""
    draft = folder / f"{DRAFT}{secrets.token_hex(4)}"
    linked = draft.with_name(f"{draft.name}-linked")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft.touch()
        linked.hardlink_to(draft)
    except OSError as exc:
        raise unwritable(folder, exc) from exc
    finally:
        for file in (draft, linked):
            with suppress(OSError):
                file.unlink()


def unwritable(folder: Path, why: OSError) -> UsageError:
    """Pins cannot be kept in `folder`."""
    reason = "this file system has no hard links" if why.errno in _NO_LINKS else why.strerror or str(why)
    return UsageError(
        f"pins {folder}: {reason}; need a folder in which every executor can write which version of the master a micro-batch "
        "uses: give pins= another one, on a file system that they share"
    )
