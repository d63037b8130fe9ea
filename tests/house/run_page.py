"""Run the examples of one page of documentation, in order, as a reader would: `python tests/house/run_page.py README.md`.

    ```python    blocks share one namespace; a block of `>>>` lines is a doctest
    ```console   lines that start with `$ ` and call semistream or python are run in the same folder;
                 what follows them is their output, where `...` stands for anything
    <!-- not run: reason -->   on the line before a block leaves that block out

Everything happens in a temporary folder. The page becomes a program with the same line numbers, so that a traceback points
into the page.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*$")
NOT_RUN = re.compile(r"<!-- *not run: *\S.*-->")
# set-up is run by hand or by `make`; demo and bench have tests of their own and take minutes
LEFT_OUT = re.compile(r"(semistream +(demo|bench)\b(?!.*--help))|(?!semistream\b|python\b)")
COMPILING = re.compile(r"^semistream: compiling .*\n", re.MULTILINE)  # said once per machine, so no page shows it
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass
class Block:
    """A fenced block: its language, the line its text starts at (from 1), and the text."""

    language: str
    line: int
    text: str


def blocks(page: str) -> Iterator[Block]:
    """Cut the blocks that are to be run out of a page."""
    lines = page.splitlines()
    start, fence, left_out = 0, None, False
    for number, line in enumerate(lines):
        found = FENCE.match(line)
        if found is None:
            continue
        if fence is None:
            before = next((text for text in reversed(lines[:number]) if text.strip()), "")
            start, fence, left_out = number + 1, found, NOT_RUN.search(before) is not None
        elif not found["language"]:
            text = "\n".join(text.removeprefix(fence["indent"]) for text in lines[start:number])
            if fence["language"] in {"python", "console"} and not left_out:
                yield Block(fence["language"], start + 1, text + "\n")
            fence = None


def run_page(path: Path) -> int:
    """Run every block of a page, give how many there were; the first failure ends it with an exception."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for count, block in enumerate(blocks(path.read_text()), 1):  # noqa: B007 - counts
        where = f"{path.name}, line {block.line}"
        if block.language == "console":
            run_console(block.text, where)
        elif block.text.lstrip().startswith(">>>"):
            run_session(block, where, namespace)
        else:
            program = "\n" * (block.line - 1) + block.text
            exec(compile(program, str(path), "exec"), namespace)
    return count


def run_session(block: Block, where: str, namespace: dict[str, Any]) -> None:
    """Run `>>>` lines and compare what they print."""
    example = doctest.DocTestParser().get_doctest(block.text, namespace, where, where, block.line)
    example.globs = namespace
    runner = doctest.DocTestRunner(optionflags=LOOSE, verbose=False)
    if runner.run(example, clear_globs=False).failed:
        raise AssertionError(f"{where}: the page shows other output")


def run_console(text: str, where: str) -> None:
    """Run the `$ ` lines and compare what they print, where the page shows it; a shown `error:` means the command must fail."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        if LEFT_OUT.match(command):
            continue
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        printed = COMPILING.sub("", done.stdout)
        if (done.returncode != 0) != ("error:" in shown):
            raise AssertionError(f"{where}: $ {command}\nended with {done.returncode}:\n{done.stdout}")
        if shown.strip() and not doctest.OutputChecker().check_output(shown, printed, LOOSE):
            raise AssertionError(f"{where}: $ {command}\nthe page shows:\n{shown}\nit prints:\n{printed}")


if __name__ == "__main__":
    page = Path(sys.argv[1]).resolve()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ.update(COLUMNS="120", NO_COLOR="1")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.stdout.write(f"{shlex.quote(page.name)}: {run_page(page)} blocks ran\n")
        os.chdir(page.parent)
