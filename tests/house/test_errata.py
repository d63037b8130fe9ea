"""Every erratum names a test that shows it, and the test is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ERRATA = re.split(r"^### ", (ROOT / "docs" / "errata.md").read_text(), flags=re.MULTILINE)[1:]


def missing(text: str) -> list[str]:
    """Tests that a text names and that are not there; a text that names none misses one."""
    named = re.findall(r"^Test: `(tests/[^`:]+)(?:::(\w+))?`$", text, re.MULTILINE)
    if not named or len(named) != text.count("Test: "):
        return ["no test is named"]
    return [f"{path}::{name}" for path, name in named if not there(ROOT / path, name)]


def there(path: Path, name: str) -> bool:
    return path.is_file() and (path.suffix == ".txt" if not name else f"def {name}(" in path.read_text())


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda text: text.splitlines()[0])
def test_every_erratum_names_a_test_that_shows_it(erratum):
    assert missing(erratum) == []


def test_an_erratum_without_a_test_is_noticed():
    assert missing("Something\n\nPrinted: x.\n") == ["no test is named"]
    assert missing("Test: `tests/house/test_errata.py::test_of_something_else`\n") == [
        "tests/house/test_errata.py::test_of_something_else"
    ]
    assert missing("Test: `tests/house/test_errata.py`\n") == ["tests/house/test_errata.py::"]
