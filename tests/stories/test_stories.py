"""Stories: what algorithms do, step by step, as texts that a reader of the paper can follow.

`tests/stories/<algorithm>/<behaviour>.txt` is run as its lines say and must give exactly what it shows. After a change that is meant,
`UPDATE_STORIES=1 python -m pytest tests/stories` writes them again: read the difference before it is committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import semistream as ss
from semistream.pending import Pending
from tests.stories.printed.told import Told, mistakes
from tests.stories.script import parse, render
from tests.stories.teller import Teller

HERE = Path(__file__).parent
STORIES = sorted(HERE.glob("*/*.txt"))
UPDATE = os.environ.get("UPDATE_STORIES") == "1"

# Algorithms that may be in the table without a story. Only ever shorten this list.
UNTOLD: set[str] = set()


@pytest.mark.parametrize("path", STORIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_story_goes_as_told(path, tmp_path):
    written = path.read_text()
    goes = render(Teller(path.parent.name, tmp_path).tell(parse(written)))
    if UPDATE and goes != written:
        path.write_text(goes)
    assert goes == path.read_text()


def names_of(stories):
    return {path.parent.name for path in stories}


def test_every_algorithm_has_a_story_or_is_on_the_list_of_those_that_have_none():
    told = names_of(path for path in STORIES if "\n> join" in path.read_text())
    assert {algorithm.name for algorithm in ss.algorithms()} - told - UNTOLD == set()
    assert told & UNTOLD == set()


def test_every_story_belongs_to_an_algorithm_of_the_table_or_to_one_that_is_expected():
    assert names_of(STORIES) - {algorithm.name for algorithm in ss.algorithms()} - UNTOLD == set()


MASTER = "# A master.\n> master keys=1..8\npage 0: 1..4\npage 1: 5..8\n"


def goes(text, folder):
    return render(Teller("meshjoin", folder).tell(parse(text)))


def test_a_story_that_goes_another_way_is_noticed(tmp_path):
    assert goes(MASTER, tmp_path) == MASTER
    changed = MASTER.replace("page 1: 5..8", "page 1: 5..9")
    assert goes(changed, tmp_path / "more") != changed


def test_a_recipe_that_loses_a_tuple_ends_the_story(tmp_path, monkeypatch):
    text = f"{MASTER}\n# Join.\n> join\n\n# One tuple.\n> arrive a=7\n\n# A round.\n> nothing 2\n\n# End.\n> end\n"
    assert "out: a+7" in goes(text, tmp_path / "right")
    monkeypatch.setattr(Pending, "probe", lambda self, load: iter(()))
    with pytest.raises(AssertionError, match="1 missing"):
        goes(text, tmp_path / "wrong")


@pytest.mark.parametrize(
    "text",
    [
        "> master keys=1..8\n",
        "# A sentence without a command.\n",
        "output without a command\n",
        f"{MASTER}\n# And then?\n",
        f"{MASTER}\n# Join.\n> join\n",
        f"{MASTER}\n# Join.\n> join\n\n# Too early.\n> printed meshjoin\n",
    ],
)
def test_a_text_that_is_no_story_is_refused(text, tmp_path):
    with pytest.raises(SyntaxError):
        goes(text, tmp_path)


def test_the_answer_of_a_printed_form_is_laid_beside_the_right_one():
    pages, arrived = [[(1, "1"), (2, "2/1"), (2, "2/2")]], [("a", 1), ("b", 2), ("c", 3)]
    right = [("a", "1"), ("b", "2/2"), ("b", "2/1")]
    assert mistakes(pages, arrived, Told(pairs=right)) == ["printed and right answer are the same"]
    assert mistakes(pages, arrived, Told(pairs=[*right[:2], ("c", "1")], waiting=["c"])) == [
        "tuple  right    printed",
        "b      2/1 2/2  2/2",
        "c      nothing  1, and still waits",
    ]
