"""Write docs/algorithms/, a page for every algorithm and one that lists them: `python benchmarks/render_algorithms.py [--check] [FOLDER]`.

A page is the recipe's docstring, what the table of algorithms says about it, the newest kept results, and the names of its stories.
`--check` compares only, and names the pages that are not what they should be.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import render
from render import Row, interval, number, size, source

import semistream as ss
from semistream.algorithms.record import Algorithm
from semistream.bench.table import fastest_rival

ROOT = render.HERE.parent
FOLDER = ROOT / "docs" / "algorithms"
HEADLINE = "fixed-zipf1-buffered"  # the case whose rate stands in the list
NOTE = "<!-- Written by benchmarks/render_algorithms.py from {}: do not edit. -->"


def module_of(algorithm: Algorithm) -> ModuleType:
    """The recipe's file."""
    name = f"semistream.algorithms.{algorithm.name}"
    return importlib.import_module(name if importlib.util.find_spec(name) else algorithm.build.__module__)


def table(head: list[str], lines: Iterator[list[str]]) -> str:
    """A Markdown table."""
    rule = [":--"] * len(head)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


# ------------------------------------------------------------------------------------------------------------ one page


def prose(docstring: str) -> str:
    """A recipe's docstring as Markdown: drawings and examples in fences, the departures from the paper under a heading."""
    parts: list[str] = []
    previous = ""
    for paragraph in re.split(r"\n\s*\n", docstring.strip()):
        kind = "pycon" if paragraph.startswith(">>>") else "text" if paragraph.startswith("    ") else ""
        if kind and kind == previous:  # a drawing with an empty line in it
            parts[-1] = f"{parts[-1].removesuffix('```')}\n{paragraph}\n```"
        elif kind:
            parts += ["## Example"] if kind == "pycon" else []
            parts.append(f"```{kind}\n{paragraph}\n```")
        else:
            parts.append(re.sub(r"^(Departures from the print)\. ", r"## \1\n\n", paragraph))
        previous = kind
    return "\n\n".join(parts)


def facts(algorithm: Algorithm) -> str:
    """What the table of algorithms says."""
    can = algorithm.capabilities
    lines = {
        "name": f"`{algorithm.name}`",
        "next page": algorithm.next_page,
        "leaves": algorithm.leaves,
        "stays in memory": algorithm.keeps,
        "bound on waiting": algorithm.bound,
        "index": "needed" if can["index"] else "not needed",
        "layout": 'the rows must stand in key order (`layout="key"`)' if can["word_order"] else "any",
        "join types": ", ".join(f"`{how}`" for how in can["hows"]),
        "threads": str(can["threads"]),
        "presets": ", ".join(f"`{preset}`" for preset in can["presets"]),
    }
    return table(["decision or need", "answer"], ([name, text] for name, text in lines.items()))


def measured(name: str, kept: list[tuple[Path, Row]]) -> str:
    """The rates of an algorithm in the newest results that have it, losses included."""
    for path, found in reversed(kept):
        rows = [row for row in found["rows"] if row["system"] == name]
        if rows:
            lines = (rate_line(row, fastest_rival(found["rows"], row["case"])) for row in rows)
            head = ["case", "M tuples/s", "95 %", "ratio", "budget", "growth", "pages per 1000"]
            return f"{source(path, found['meta'])}\n\n{table(head, lines)}\n\n{READING}"
    return "No results are kept yet for this algorithm. To measure it: `semistream bench core --system " + name + "`."


READING = (
    "`ratio` compares with the faster of DuckDB and Polars, which hold the whole table in memory and use two cores: below 1 they are "
    "faster. The rules and the limits are in [benchmarks/README.md](../../benchmarks/README.md)."
)


def rate_line(row: Row, best: float | None) -> list[str]:
    """One case."""
    return [
        row["case"],
        number(row, lambda row: f"{row['rows_per_s'] / 1e6:.2f}"),
        number(row, interval),
        number(row, lambda row: f"{row['rows_per_s'] / best:.2f}" if best else "-"),
        size(row["memory_budget_bytes"]),
        size(row["peak_growth_bytes"]),
        number(row, lambda row: f"{row['pages_read'] * 1000 / row['rows_joined']:.1f}" if row["pages_read"] else "-"),
    ]


def stories(name: str) -> str:
    """The stories of an algorithm: their names say what it does."""
    names = [path.stem.replace("_", " ") for path in sorted((ROOT / "tests" / "stories" / name).glob("*.txt"))]
    if not names:
        return ""
    text = "\n".join(f"- {title}" for title in names)
    return f"## Stories\n\nStep by step, as tests, in [tests/stories/{name}](../../tests/stories/{name}):\n\n{text}\n"


def page(algorithm: Algorithm, kept: list[tuple[Path, Row]]) -> str:
    """The page of one algorithm."""
    module = module_of(algorithm)
    file = Path(inspect.getsourcefile(module) or "").relative_to(Path(ss.__file__).parents[1]).as_posix()
    parts = [
        f"# {algorithm.title}",
        NOTE.format(f"src/{file} and benchmarks/results"),
        prose(inspect.getdoc(module) or ""),
        f"## At a glance\n\n{facts(algorithm)}",
        f"## Measured\n\n{measured(algorithm.name, kept)}",
        stories(algorithm.name),
        f"The recipe: [src/{file}](../../src/{file}). [All algorithms](index.md).",
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


# ------------------------------------------------------------------------------------------------------------ the list


def rate(name: str, kept: list[tuple[Path, Row]]) -> str:
    """The newest rate of an algorithm in the case that stands for all."""
    for _, found in reversed(kept):
        for row in found["rows"]:
            if (row["system"], row["case"]) == (name, HEADLINE):
                return number(row, lambda row: f"{row['rows_per_s'] / 1e6:.2f}")
    return "-"


def index(algorithms: list[Algorithm], kept: list[tuple[Path, Row]]) -> str:
    """The list of all algorithms."""
    head = ["algorithm", "paper", "next page", "leaves", "stays in memory", "index", "M tuples/s"]
    lines = (
        [
            f"[{one.title}]({one.name}.md) `{one.name}`",
            one.paper,
            one.next_page,
            one.leaves,
            one.keeps,
            "needed" if one.needs_index else "not needed",
            rate(one.name, kept),
        ]
        for one in algorithms
    )
    names = "\n".join(one.name for one in algorithms)
    return f"""# Algorithms

{NOTE.format("the table of algorithms and benchmarks/results")}

They differ in three decisions: which page is read next, which tuples leave, what stays in memory. All give the same, exact answer: every
join type, every key type, many-to-many, within the budget. The last column is case `{HEADLINE}` of the newest
[benchmarks](../benchmarks.md), where `-` means that no result is kept. Words are explained in the [glossary](../glossary.md), papers are
listed in the [references](../references.md).

{table(head, lines)}

`ss.algorithms()` and `semistream algorithms --json` give the same as data.

```{{toctree}}
:hidden:

{names}
```
"""


def pages() -> dict[str, str]:
    """All pages by file name."""
    kept = [(path, json.loads(path.read_text())) for path in render.results("core")]
    return {"index.md": index(ss.algorithms(), kept)} | {f"{one.name}.md": page(one, kept) for one in ss.algorithms()}


if __name__ == "__main__":
    check, folder = "--check" in sys.argv, Path(next((word for word in sys.argv[1:] if word != "--check"), FOLDER))
    made = pages()
    there = {path.name: path.read_text() for path in folder.glob("*.md")}
    wrong = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    if check and wrong:
        sys.exit(f"{folder}: not up to date: {', '.join(wrong)}; run: python benchmarks/render_algorithms.py")
    for name in wrong:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(made[name]) if name in made else (folder / name).unlink()
