"""`kernel`: numba's compiler with a cache that cannot go stale.

numba stamps a cached kernel with the content of its own file only: after an edit in a file it calls, the old code keeps running.
Therefore the cache folder is named by a digest of every source in this package, of numba, Python and the bounds-check switch (which
numba leaves out of its cache key). A folder that cannot be written costs a compilation per process, nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_names: list[str] = []  # of all kernels, to say how many there are to compile


def _digest() -> str:
    """Name of the cache folder: changes whenever any kernel's machine code could."""
    seen = hashlib.sha256(f"{numba.__version__} {sys.version} {numba.config.BOUNDSCHECK}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        seen.update(source.read_bytes())
    return seen.hexdigest()[:16]


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _cache_folder() -> Path:
    """`$SEMISTREAM_KERNEL_CACHE`, else the user's cache folder, else a private folder under the temporary one."""
    chosen = os.environ.get("SEMISTREAM_KERNEL_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    bases = (
        [Path(chosen)] if chosen else [home / "semistream", Path(tempfile.gettempdir()) / f"semistream-{os.getuid()}"]
    )
    name = f"kernels-{_digest()}"
    return next((base / name for base in bases if _writable(base / name)), bases[-1] / name)


CACHE_FOLDER = _cache_folder()


def kernel(function: Kernel) -> Kernel:
    """Compile `function` on first use, to run without the GIL; cached on disk under the digest of all kernel sources."""
    return _compiled(function, nogil=True)


def quick_kernel(function: Kernel) -> Kernel:
    """As `kernel`, but keeping the GIL: for loops of a few microseconds.

    To take the GIL back from another thread costs 50 microseconds and more on a virtual machine. With all kernels letting go of it, two
    threads together were slower than one.
    """
    return _compiled(function, nogil=False)


def _compiled(function: Kernel, *, nogil: bool) -> Kernel:
    _names.append(function.__name__)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CACHE_FOLDER)  # read by numba while it decorates; other users of numba keep their own
    try:
        return cast(Kernel, numba.njit(cache=True, nogil=nogil, error_model="numpy")(function))
    except RuntimeError:  # numba found no folder it may write to, not even this one
        return cast(Kernel, numba.njit(nogil=nogil, error_model="numpy")(function))
    finally:
        numba.config.CACHE_DIR = before


def announce_compilation() -> None:
    """Say once per machine and version that the first join compiles its kernels: silence for seconds looks like a hang."""
    if numba.config.DISABLE_JIT:
        return
    marker = CACHE_FOLDER / "announced"
    if marker.exists():
        return
    sys.stderr.write(
        f"semistream: compiling {len(_names)} kernels for this machine (once; about 20 s; kept in {CACHE_FOLDER})\n"
    )
    with contextlib.suppress(OSError):  # a read-only folder: every process compiles, and every process says so
        marker.touch()
