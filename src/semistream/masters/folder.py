"""The folder of a master on disk: immutable versions, and a name that says which one is current.

    products.master/
      CURRENT          "v-2"; replaced by one atomic rename
      v-1/ v-2/        a version: manifest.json, page file, index; never changed once it has this name
      tmp-v-3/         being built, or left by a builder that was killed; the next builder removes it
      lock  _pins/     who builds, who reads (claims.py), which version a micro-batch uses (batch_pins.py)

A version is written under its temporary name, synced to disk, renamed, and only then does CURRENT move. So a crash at any moment leaves
either the old version or the new one, never half of one, and readers never wait for a builder.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from semistream.errors import BuildFailed, MasterCorrupt, MasterError, MasterNotFound, UsageError
from semistream.masters.claims import LOCK, PINS, VERSION, Pin, builder_lock, pinned_versions
from semistream.masters.manifest import MANIFEST, Manifest
from semistream.masters.sums import file_sum
from semistream.units import parse_seconds

CURRENT: Final = "CURRENT"
RETENTION: Final = "1h"
_TEMPORARY: Final = "tmp-"


def current_version(folder: Path) -> str:
    """The name of the version that readers get now."""
    try:
        name = (folder / CURRENT).read_text("utf-8").strip()
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise MasterNotFound(f"{folder}: {_why_no_master(folder)}; build one with semistream.build_master") from exc
    except UnicodeDecodeError as exc:
        raise MasterCorrupt(f"{folder / CURRENT}: is not text; write the name of a version folder into it") from exc
    if not VERSION.fullmatch(name):
        raise MasterCorrupt(f"{folder / CURRENT}: need the name of a version such as v-1, got {name[:40]!r}")
    if not (folder / name).is_dir():
        raise MasterNotFound(f"{folder}: CURRENT names {name}, which is missing; build the master again")
    return name


def _why_no_master(folder: Path) -> str:
    if not folder.exists():
        return "does not exist"
    if not folder.is_dir():
        return "is a file, a master is a folder"
    if any(path.name.startswith(_TEMPORARY) or VERSION.fullmatch(path.name) for path in folder.iterdir()):
        return "holds only an unfinished build"
    return "is a folder without a master in it"


def pin_current(folder: Path) -> Pin:
    """Pin the current version: `vacuum` leaves it alone until the pin is released."""
    for _attempt in range(8):
        pin = Pin(folder, current_version(folder))
        if (folder / pin.version).is_dir():  # else replaced and vacuumed between the two lines above
            return pin
        pin.release()
    raise MasterError(
        f"{folder}: versions are replaced and vacuumed faster than they can be opened; give vacuum older_than="
    )


def pin_version(folder: Path, version: str) -> Pin:
    """Pin a version by its name, current or not."""
    gone = MasterNotFound(f"{folder}: has no version {version}, or no longer; open the current one")
    if not (folder / version).is_dir():
        raise gone
    pin = Pin(folder, version)
    if not (folder / version).is_dir():  # a vacuum was faster than the pin
        pin.release()
        raise gone
    return pin


def versions(folder: Path) -> list[str]:
    """Names of the versions in the folder, oldest first."""
    names = [path.name for path in folder.iterdir() if VERSION.fullmatch(path.name)]
    return sorted(names, key=_number)


def _number(version: str) -> int:
    return int(version.removeprefix("v-"))


@contextmanager
def new_version(folder: Path) -> Iterator[Path]:
    """A temporary folder to write a version into; it becomes the current version if the block ends well.

    If it ends in an error every temporary file is removed and the version before stays current. Errors of the file system, such as a
    full disk, come out as BuildFailed.
    """
    had_version = (folder / CURRENT).exists()
    try:
        _make_folder(folder)
        with builder_lock(folder):
            number = _sweep(folder) + 1
            draft = folder / f"{_TEMPORARY}v-{number}"
            try:
                draft.mkdir()
                yield draft
                _publish(folder, draft, f"v-{number}")
            except BaseException:
                _sweep(folder)
                if not had_version:
                    _remove_empty(folder)
                raise
    except OSError as exc:
        if isinstance(exc, MasterError):
            raise
        kept = "the version before it is still in use" if had_version else "nothing was left behind"
        raise BuildFailed(f"{folder}: build stopped, {kept}: {exc.strerror or exc}") from exc


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; a master is a folder, give another path")
    if folder.is_dir() and not (folder / CURRENT).exists():
        for path in folder.iterdir():
            ours = (
                path.name in (LOCK, "lock.pid", PINS)
                or path.name.startswith(_TEMPORARY)
                or VERSION.fullmatch(path.name)
            )
            if not ours:
                raise UsageError(f"{folder}: holds other files ({path.name}); give a new or empty folder, or a master")
    folder.mkdir(parents=True, exist_ok=True)


def _sweep(folder: Path) -> int:
    """Remove what killed builders left (the caller holds the lock); gives the number of the current version, 0 for none."""
    current = _number(current_version(folder)) if (folder / CURRENT).exists() else 0
    for path in folder.iterdir():
        unpublished = VERSION.fullmatch(path.name) and _number(path.name) > current
        if path.is_dir() and (unpublished or path.name.startswith(_TEMPORARY)):
            shutil.rmtree(path)
        elif path.name.startswith(_TEMPORARY):
            path.unlink()
    return current


def _remove_empty(folder: Path) -> None:
    """After a failed first build: leave no trace (a folder that is not empty holds something of the user's and stays)."""
    for name in (LOCK, "lock.pid"):
        (folder / name).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _publish(folder: Path, draft: Path, version: str) -> None:
    for path in draft.iterdir():
        sync(path)
    sync(draft)
    draft.rename(folder / version)
    sync(folder)
    name = folder / f"{_TEMPORARY}{CURRENT}"
    name.write_text(version + "\n", "utf-8")
    sync(name)
    name.replace(folder / CURRENT)
    sync(folder)


def sync(path: Path) -> None:
    """Make the bytes of a file, or the names in a folder, survive a power cut."""
    if os.name == "nt" and path.is_dir():  # pragma: no cover - Windows cannot sync folders
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def seal(draft: Path, manifest: Manifest, sums: dict[str, dict[str, Any]] | None = None) -> None:
    """Write the manifest of a finished draft, with the sums of its files (those that are known already are given)."""
    known = sums or {}
    files = {path.name: known.get(path.name) or file_sum(path) for path in sorted(draft.iterdir())}
    (draft / MANIFEST).write_text(replace(manifest, files=files).to_json(), "utf-8")


@dataclass
class VacuumReport:
    """What a vacuum did: versions removed, versions left with the reason, bytes given back."""

    removed: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    freed_bytes: int = 0


def vacuum(
    folder: Path,
    *,
    keep: int = 1,
    older_than: str | float | timedelta = RETENTION,
    pins: Sequence[str | os.PathLike[str]] = (),
) -> VacuumReport:
    """Remove old versions that nobody can be reading.

    Stays: the `keep` newest, every pinned one, and one that stopped being current less than `older_than` ago, because a reader on
    another host may be unable to write a pin here. `pins` are folders outside of the master in which queries keep their pins. Raises
    MasterBusy while somebody builds.
    """
    if keep < 1:
        raise UsageError(f"keep={keep}: the current version always stays, give 1 or more")
    retention = parse_seconds(older_than, "older_than")
    report, elsewhere = VacuumReport(), [Path(one) for one in pins]
    if gone := [str(one) for one in elsewhere if not one.is_dir()]:
        raise UsageError(f"pins: {gone[0]} is not a folder; name the folders that queries were given as pins=")
    current_version(folder)
    with builder_lock(folder):
        _sweep(folder)
        names = versions(folder)
        for version, successor in pairwise(names[: max(0, len(names) - keep + 1)]):
            age = time.time() - (folder / successor / MANIFEST).stat().st_mtime
            if age < retention:
                report.kept[version] = f"replaced {age:.0f} s ago, less than {retention:.0f} s"
            else:
                _remove_version(folder, version, report, elsewhere)
        report.kept.update(dict.fromkeys(names[-keep:], f"among the {keep} newest"))
    return report


def _remove_version(folder: Path, version: str, report: VacuumReport, pins: Sequence[Path]) -> None:
    """Take the version's name away, then look for pins again: a reader either pinned in time or no longer finds the name."""
    path, gone = folder / version, folder / f"{_TEMPORARY}{version}"
    reason = pinned_versions(folder, *pins).get(version)
    if reason is None:
        path.rename(gone)
        reason = pinned_versions(folder, *pins).get(version)
        if reason is not None:
            gone.rename(path)
    if reason is not None:
        report.kept[version] = reason
        return
    report.freed_bytes += sum(file.stat().st_size for file in gone.rglob("*") if file.is_file())
    shutil.rmtree(gone)
    report.removed.append(version)
