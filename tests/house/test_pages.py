"""Documentation cannot rot: what README and docs show is run, and every option and error is in them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from semistream import errors
from semistream.cli import main
from tests.house.run_page import blocks, run_console

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
)


def commands(command: click.Command, name: str = "semistream") -> list[tuple[str, click.Command]]:
    inner = command.commands.items() if isinstance(command, click.Group) else []
    return [(name, command), *(found for sub, part in inner for found in commands(part, f"{name} {sub}"))]


COMMANDS = dict(commands(main))


def options(command: click.Command) -> list[click.Option]:
    return [option for option in command.params if isinstance(option, click.Option)]


def section(page: str, title: str) -> str:
    """The text under the heading `title`, up to the next heading."""
    found = re.search(rf"^(#+) `?{re.escape(title)}`?\s*$(.*?)(?=^#{{1,3}} |\Z)", page, re.MULTILINE | re.DOTALL)
    return found[2] if found else ""


def spark_mark(page: str) -> list[pytest.MarkDecorator]:
    return (
        [pytest.mark.spark]
        if re.search(r"^(from|import) (semistream\.spark|pyspark)", (ROOT / page).read_text(), re.MULTILINE)
        else []
    )


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=spark_mark(page)) for page in PAGES if list(blocks((ROOT / page).read_text()))]
)
def test_the_examples_of_a_page_run(page):
    environ = dict(os.environ)
    if spark_mark(page):
        from semistream.spark.java import prepare_environment

        prepare_environment(environ)
    runner = ROOT / "tests" / "house" / "run_page.py"
    done = subprocess.run(
        [sys.executable, runner, ROOT / page], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name):
    page = (ROOT / "docs" / "cli.md").read_text()
    command = COMMANDS[name]
    text = page if name == "semistream" else section(page, name)
    assert text, f"docs/cli.md has no section `{name}`"
    missing = [
        flag for option in options(command) for flag in option.opts if flag.startswith("--") and flag not in text
    ]
    assert not missing


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help_and_every_command_an_example(name):
    command = COMMANDS[name]
    assert command.help
    assert [option.name for option in options(command) if not option.help] == []
    if not isinstance(command, click.Group):
        assert "Example" in command.help
        assert f"{name} " in command.help or name in command.help


def test_every_error_is_documented():
    page = (ROOT / "docs" / "errors.md").read_text()
    names = [
        name for name, kind in vars(errors).items() if isinstance(kind, type) and kind.__module__ == errors.__name__
    ]
    assert "SemistreamError" in names
    assert [name for name in names if f"`{name}`" not in page] == []


def test_the_tree_in_the_errors_module_is_the_tree_of_classes():
    drawn = re.findall(r"^[ │├└─]*([A-Z]\w+)(?:$|  )", errors.__doc__ or "", re.MULTILINE)
    classes = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.SemistreamError)
    ]
    assert sorted(drawn) == sorted(classes)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("$ python -c 'print(1)'\n2\n", "the page shows"),
        ("$ python -c 'raise SystemExit(3)'\n", "ended with 3"),
        ("$ python -c 'print(1)'\nerror: no such thing\n", "ended with 0"),
    ],
)
def test_the_runner_of_examples_notices_a_wrong_page(text, fault):
    with pytest.raises(AssertionError, match=fault):
        run_console(text, "page")


def test_the_runner_of_examples_accepts_a_right_page():
    run_console("$ python -c 'print(list(range(30)))'\n[0, 1, ... 29]\n$ git push\n", "page")
