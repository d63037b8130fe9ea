"""Who uses a master folder: one builder at a time, and any number of readers that pin the version they read.

Both claims are advisory locks (`flock`) on small files, because the kernel drops them when their process dies, however it dies. Where
there is no `flock` (Windows, some network file systems) the fallback is a lock file created with O_EXCL that names host and process:
a claim of a dead process of this host is then recognised by its process id.

A lock may not reach other hosts. So a reader's pin also says which host wrote it, and a pin of another host that cannot be tested is
believed for `LEASE_SECONDS` after it was last renewed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import socket
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from semistream.errors import MasterBusy, MasterCorrupt

if sys.platform == "win32":  # pragma: no cover - the named fallback
    fcntl = None
else:
    import fcntl

VERSION: Final = re.compile(r"v-(\d+)")
LOCK: Final = "lock"
PINS: Final = "_pins"
READERS: Final = "readers"
DRAFT: Final = "draft-"  # of a pin that is being written
LEASE_SECONDS: Final = 7 * 24 * 3600
_NO_FLOCK: Final = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}


@contextmanager
def builder_lock(folder: Path) -> Iterator[None]:
    """Hold the right to build in `folder`; raises MasterBusy at once when another process holds it."""
    path = folder / LOCK
    held = _flock_file(path)
    if held is None:
        with lock_by_file(path.with_suffix(".pid")):
            yield
        return
    try:
        with suppress(OSError):  # only for the text of MasterBusy; a full disk shall fail where it matters
            os.ftruncate(held, 0)
            os.pwrite(held, _me().encode(), 0)
        yield
    finally:
        os.close(held)


@contextmanager
def lock_by_file(path: Path) -> Iterator[None]:
    """The fallback without flock: whoever creates `path` holds the lock; a dead owner of this host is replaced."""
    for _attempt in range(2):
        try:
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError as exc:
            owner = _owner(path)
            if not _is_dead(owner):
                raise _busy(path.parent, owner) from exc
            path.unlink(missing_ok=True)
        else:
            os.write(fd, _me().encode())
            os.close(fd)
            break
    else:
        raise _busy(path.parent, _owner(path))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _flock_file(path: Path) -> int | None:
    """An open, exclusively locked `path`, or None where this file system has no flock."""
    if fcntl is None:  # pragma: no cover - Windows
        return None
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same_file(fd, path):  # else a failed first build removed it while we waited for the lock
                return fd
        except BlockingIOError as exc:
            owner = _owner(path)
            os.close(fd)
            raise _busy(path.parent, owner) from exc
        except OSError as exc:
            os.close(fd)
            if exc.errno in _NO_FLOCK:
                return None
            raise
        os.close(fd)


class Pin:
    """A reader's claim on one version: while it is held, `vacuum` leaves that version alone.

    A read-only folder cannot be written to, so there the pin is only a name and the retention time of `vacuum` protects the reader.
    """

    def __init__(self, folder: Path, version: str) -> None:
        self.version = version
        self.path: Path | None = folder / PINS / READERS / f"{version}.{socket.gethostname()}.{os.getpid()}.{_token()}"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fd = _locked_pin(self.path, f"{version}\n{_me()}")
        except OSError as exc:
            if exc.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            self.path, fd = None, -1
        self._finalizer = weakref.finalize(self, _let_go, self.path, fd, os.getpid())

    @property
    def held(self) -> bool:
        """Whether it was not released yet."""
        return self._finalizer.alive

    def renew(self) -> None:
        """Say to other hosts that this reader is still alive."""
        if self.path is not None:
            with suppress(OSError):
                os.utime(self.path)

    def release(self) -> None:
        """Give the version free; may be called twice."""
        self._finalizer()


def _locked_pin(path: Path, text: str) -> int:
    """A new pin file, locked for the life of this process; -1 where there is no flock to hold."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as exc:
            if exc.errno not in _NO_FLOCK | {errno.EAGAIN}:
                os.close(fd)
                raise
        os.pwrite(fd, text.encode(), 0)
        if _same_file(fd, path):  # a vacuum may have taken the file for a dead one before the lock was ours
            return fd
        os.close(fd)


def _let_go(path: Path | None, fd: int, pid: int) -> None:
    if fd >= 0:
        os.close(fd)
    if path is not None and os.getpid() == pid:  # a forked child must not drop its parent's pin
        with suppress(OSError):
            path.unlink()


def pinned_versions(folder: Path, *others: Path) -> dict[str, str]:
    """Versions that somebody still needs, each with the reason; pins of dead readers are removed on the way.

    Any file below `_pins/`, or below one of the `others`, counts: its first line is the version it needs, the second says who.
    Readers' own pins live in `_pins/readers/` and end with their process; others, of queries, count until their owner removes them.
    """
    needed: dict[str, str] = {}
    for root in (folder / PINS, *others):
        for path in sorted(root.rglob("*")):
            with suppress(FileNotFoundError):  # its reader has just ended
                if path.is_dir() or path.name.startswith(DRAFT):
                    continue
                reader = path.parent == folder / PINS / READERS
                if reader and _is_stale(path):
                    path.unlink()
                    continue
                version, owner = [*path.read_bytes().decode("utf-8", errors="replace").splitlines(), "", ""][:2]
                if not (reader or VERSION.fullmatch(version.strip())):
                    raise MasterCorrupt(
                        f"{path}: is not a whole pin, so nobody knows which version it needs; put that version's name back from a copy, "
                        "or remove the file if nobody needs one"
                    )
                needed[version.strip()] = f"pinned by {owner.strip() or path.relative_to(root)}"
    return needed


def _is_stale(path: Path) -> bool:
    """Whether the reader that wrote this pin is surely gone."""
    unheld = False
    if fcntl is not None:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unheld = True
        except BlockingIOError:
            return False
        except OSError as exc:
            if exc.errno not in _NO_FLOCK:
                raise
        finally:
            os.close(fd)
    owner = path.read_text().partition("\n")[2]
    if owner.startswith(f"{socket.gethostname()} "):
        return unheld or _is_dead(owner)
    return time.time() - path.stat().st_mtime > LEASE_SECONDS


def _same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _me() -> str:
    return f"{socket.gethostname()} process {os.getpid()}"


def _token() -> str:
    return secrets.token_hex(4)


def _owner(path: Path) -> str:
    with suppress(OSError):
        return path.read_text().strip()
    return ""


def _is_dead(owner: str) -> bool:
    """Whether `owner` ("host process 12") is a process of this host that is gone; an unreadable owner may be alive."""
    host, _, pid = owner.partition(" process ")
    if host != socket.gethostname() or not pid.isdigit() or sys.platform == "win32":
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _busy(folder: Path, owner: str) -> MasterBusy:
    return MasterBusy(
        f"{folder}: {owner or 'another process'} is building it; wait until that build ends, then try again"
    )
