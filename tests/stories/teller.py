"""The commands of a story, performed on the real thing: a master on disk, `ss.Join`, and its recipe on a stage.

    master keys=1..12 rows_per_page=4    build a master and show its pages (also layout=heap; page_bytes=4096 lets a load have 3 pages)
    join how=left                        a join in the smallest budget that works; every setting of `ss.Join` may be given, and
                                         `spare_bytes=50000` for that many more than the smallest budget
    arrive a=3 b=1                       a batch arrives: tuple a has key 3, b has key 1; `none` is a null key
    nothing, nothing 3                   nothing has arrived, once or three times: the join takes a step each time
    flow 5 x=7*2                         five times: a batch of two tuples with key 7 arrives, then nothing; they are called x1, x2, ... x10
    end                                  the stream ends; the whole answer is compared with the oracle's
    printed hybridjoin slots=4           the printed pseudo-code on the same pages and arrivals, and where its answer is wrong; `since=9`
                                         leaves the first iterations out of the text

The algorithm is the folder that the story lies in. A join pulls its stream, so from `join` to `end` a story *is* the stream: what the
join does before it asks for the next item is what the command gives. A story without `join` is about the printed form only.
"""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import semistream as ss
from semistream.algorithms.kept_blocks import KeptBlocks
from semistream.budget import Slab
from semistream.hot_cache import HotCache
from semistream.parts import page, tile_cache
from semistream.parts.hot_cache import NOBODY, ROWS
from semistream.tile_front import TileFront
from tests.contract.harness import smallest_bytes
from tests.reference import reference_join, same_multiset
from tests.stories.printed.told import Moment, Pages, Told, mistakes
from tests.stories.script import Step, arrivals, shorten, spread
from tests.stories.stage import Diary, watch

STREAM = pa.schema([("key", pa.int64()), ("tuple", pa.int64())])
PAGE_BYTES = 16384  # the smallest disk buffers hold one page of this size, so that a load is a page
ROW_OVERHEAD_BYTES = 32  # of a row beside its text: the key's word, two cells, flags


def hot_keys(cache: HotCache) -> str:
    """The keys of a hot cache, by their number of rows, and those whose rows are being collected. A key is its own word."""
    kept, said = cache.kept, []
    rows = kept.records[:, ROWS]
    for count in sorted(set(rows[rows >= 0].tolist())):
        keys = shorten(map(str, sorted(kept.record_word[rows == count].tolist())))
        said.append(f"{keys} ({'no row' if count == 0 else 'a row' if count == 1 else f'{count} rows'})")
    if coming := sorted(kept.record_word[(rows < 0) & (rows > NOBODY)].tolist()):
        said.append(f"on the way {shorten(map(str, coming))}")
    return ", ".join(said) or "nothing"


def tile_keys(front: TileFront) -> str:
    """The keys in the tiles of an adaptive join, and those it knows to be absent."""
    cache, said = front.cache, []
    entries = cache.entry[cache.tag != 0]
    rows = entries[:, tile_cache.WHAT] >> 16 & tile_cache.ROWS_MOST
    for there, what in ((rows > 0, "kept"), (rows == 0, "absent")):
        if keys := sorted(entries[there, tile_cache.WORD].tolist()):
            said.append(f"{shorten(map(str, keys))} ({what})")
    return "all of the master" if front.complete else ", ".join(said) or "nothing"


def kept_ranges(kept: KeptBlocks) -> str:
    """The pages of the blocks that lie in memory."""
    pages = [number for block in kept.held() for number in range(*kept.bounds[block : block + 2])]
    return f"page {shorten(map(str, sorted(pages)))}" if pages else "nothing"


# What a recipe keeps of the master, for algorithms that keep something: shown as `keeps: ...` after every command.
KEEPS: dict[str, Callable[[Any], str]] = {
    name: lambda recipe: hot_keys(recipe.front)
    for name in ("cachejoin", "sscj", "cmeshjoin", "cachejoin_l", "cachejoin_pq", "cachejoin_lwf", "ssbj")
} | {
    "p_cachejoin": lambda recipe: hot_keys(recipe.front.cache),
    "op_cachejoin": lambda recipe: hot_keys(recipe.front.cache),
    "derakhshan": lambda recipe: hot_keys(recipe._cache),
    "optimised_x_hybridjoin": lambda recipe: hot_keys(recipe.front),
    "adaptive": lambda recipe: tile_keys(recipe._cache),
    "partitioned_join": lambda recipe: kept_ranges(recipe._blocks.kept),
    "ssij": lambda recipe: kept_ranges(recipe._plan.kept),
    "x_hybridjoin": lambda recipe: f"page {recipe._place}",
}

IN_LINE = (
    "p_cachejoin",
    "op_cachejoin",
)  # shown as `in line: ...`: who of those who wait is still in the intermediate buffer


def in_line(recipe: Any) -> list[int]:
    """Stream positions of the tuples in an intermediate buffer."""
    line = recipe._line
    numbers = np.arange(line._head, line._tail) % line.slots
    return [int(stamp) >> 1 for stamp in line._records[numbers, 1]]


class Teller:
    """One story being performed."""

    def __init__(self, algorithm: str, folder: Path) -> None:
        self._algorithm, self._folder = algorithm, folder
        self._pages: Pages = []
        self._arrived: Moment = []
        self._moments: list[Moment] = [[]]  # what came before every rest of the stream
        self._came: list[pa.RecordBatch] = []
        self._shown = 0  # rows of the answer that have been told
        self._how = "inner"

    def tell(self, steps: list[Step]) -> list[Step]:
        """The steps with what they give now."""
        rest = iter(steps)
        self._told = [Step(step.sentences, step.command) for step in steps]
        self._place = 0
        try:
            for step in rest:
                getattr(self, f"_do_{step.verb}")(step, rest)
        finally:
            if self._pages:
                self._master.close()
        return self._told

    def _gives(self, lines: list[str]) -> None:
        """The output of the next command of the story."""
        self._told[self._place].lines = lines
        self._place += 1

    # ------------------------------------------------------------------------------------------------------- setting up

    def _do_master(self, step: Step, rest: Iterator[Step]) -> None:
        settings = step.settings
        keys = [None if key == "none" else int(key) for key in spread(settings["keys"])]
        words = ["none" if key is None else str(key) for key in keys]
        labels = [
            word if words.count(word) == 1 else f"{word}/{words[: number + 1].count(word)}"
            for number, word in enumerate(words)
        ]
        page_bytes, rows_per_page = int(settings.get("page_bytes", PAGE_BYTES)), int(settings.get("rows_per_page", "4"))
        room = (page_bytes - page.HEADER_BYTES) // rows_per_page - ROW_OVERHEAD_BYTES
        wide = [bytes(room // 8 * 8 - len(label)) for label in labels]  # all rows have one size
        self._table = pa.table({"key": pa.array(keys, pa.int64()), "row": labels, "wide": pa.array(wide, pa.binary())})
        self._master = ss.build_master(
            self._folder / "story.master",
            self._table,
            key="key",
            layout=settings.get("layout", "key"),
            page_bytes=page_bytes,
        )
        self._pages = read_pages(self._master)
        held = len(self._pages[0])
        assert held == min(rows_per_page, len(keys)), (
            f"pages of {page_bytes} bytes hold {held} such rows; say that instead"
        )
        self._diary = Diary([[label for _, label in rows] for rows in self._pages])
        self._gives([f"page {number}: {shorten(rows)}" for number, rows in enumerate(self._diary.pages)])

    def _do_join(self, step: Step, rest: Iterator[Step]) -> None:
        """Open the join and let it pull the steps that follow, up to `end`."""
        options: dict[str, Any] = {"on": "key", "columns": ["row"], "algorithm": self._algorithm} | step.settings
        self._how = options.get("how", "inner")
        if self._how in ("left_semi", "left_anti"):
            del options["columns"]
        options |= {name: options[name] == "yes" for name in ("ordered", "null_safe") if name in options}
        if options.get("max_wait", "").isdigit():
            options["max_wait"] = int(options["max_wait"])
        trial = self._batch([("trial", 0)])
        spare_bytes = int(options.pop("spare_bytes", 0))
        options.setdefault("memory", smallest_bytes(self._master, trial, **options) + spare_bytes)
        join = ss.Join(self._master, **options)
        list(join(iter([trial])))
        slots = join.report()["stream_slots"]
        watch(join, self._diary)
        self._gives([f"{slots} tuples may wait"])
        for batch in join(self._stream(rest)):
            self._came.append(batch)
        self._gives(self._happened())
        stream = pa.Table.from_batches([self._batch(self._arrived)])
        columns = ["row"] if self._how in ("inner", "left") else None
        null_safe = options.get("null_safe", False)
        same_multiset(self._came, reference_join(stream, self._table, "key", self._how, columns, null_safe=null_safe))

    def _batch(self, tuples: Moment, position: int = 0) -> pa.RecordBatch:
        places = range(position, position + len(tuples))
        columns = [pa.array([key for _, key in tuples], pa.int64()), pa.array(places, pa.int64())]
        return pa.record_batch(columns, schema=STREAM)

    # --------------------------------------------------------------------------------------------------------- the stream

    def _stream(self, rest: Iterator[Step]) -> Iterator[pa.RecordBatch | None]:
        """The items of the steps up to `end`; the join asks for the next one when it is done with the last."""
        for step in rest:
            if step.verb == "end":
                return
            for moment in self._moments_of(step):
                yield self._batch(moment, len(self._arrived) - len(moment)) if moment else None
            self._gives(self._happened())
        raise SyntaxError("a story that joins needs `end`")

    def _moments_of(self, step: Step) -> Iterator[Moment]:
        """What arrives in a step, item by item."""
        if step.verb == "arrive":
            tuples = arrivals(step.command.split()[1:])
            self._diary.names += [name for name, _ in tuples]
            moments = [tuples]
        elif step.verb == "flow":
            times, (name, _, keys) = int(step.words[0]), step.command.split()[2].partition("=")
            held = [int(key) for key in spread(keys)]
            names = [f"{name}{number}" for number in range(1, times * len(held) + 1)]
            self._diary.names += names
            tuples = list(zip(names, held * times, strict=True))
            moments = [part for start in range(0, len(tuples), len(held)) for part in (tuples[start:][: len(held)], [])]
        elif step.verb == "nothing":
            moments = [[]] * int(step.words[0] if step.words else 1)
        else:
            raise SyntaxError(f"`{step.verb}` between `join` and `end`")
        for moment in moments:
            self._arrived += moment
            self._moments[-1] += moment
            if not moment:
                self._moments.append([])
            yield moment

    def _do_arrive(self, step: Step, rest: Iterator[Step]) -> None:
        """Nobody joins in this story: the arrivals are for the printed form."""
        for _ in self._moments_of(step):
            pass
        self._gives([])

    _do_nothing = _do_flow = _do_arrive

    def _happened(self) -> list[str]:
        """What the join did since it was asked last, what came out, who waits, and what is kept."""
        lines = self._diary.read()
        rows = [row for batch in self._came for row in batch.to_pylist()]
        out = [self._answer(row) for row in rows[self._shown :]]
        self._shown = len(rows)
        lines += textwrap.wrap(f"out: {' '.join(out)}", 120, subsequent_indent="     ") if out else []
        lines.append(f"waiting: {self._diary.called(self._diary.waiting) or 'nobody'}")
        if self._algorithm in IN_LINE and self._diary.recipe is not None:
            lines.append(f"in line: {self._diary.called(in_line(self._diary.recipe)) or 'nobody'}")
        if self._algorithm in KEEPS and self._diary.recipe is not None:
            lines.append(f"keeps: {KEEPS[self._algorithm](self._diary.recipe)}")
        return lines

    def _answer(self, row: dict[str, Any]) -> str:
        name = self._diary.names[row["tuple"]]
        return f"{name}+{row['row'] or 'nothing'}" if "row" in row else name

    # -------------------------------------------------------------------------------------------------- the printed form

    def _do_printed(self, step: Step, rest: Iterator[Step]) -> None:
        """Run a printed form on the same pages and arrivals, and lay its answer beside the right one."""
        printed = importlib.import_module(f"tests.stories.printed.{step.words[0]}")
        settings = {name: int(value) if value.isdigit() else value for name, value in step.settings.items()}
        since = settings.pop("since", 1)
        moments = self._moments if self._moments[-1] else self._moments[:-1]
        told: Told = printed.run(self._pages, moments, **settings)
        self._gives([*told.lines(since), *mistakes(self._pages, self._arrived, told)])


def read_pages(master: Any) -> Pages:
    """Key and label of every row, page by page, as a reader brings them."""
    reader = master.reader()
    try:
        slab = Slab(1 << 20)
        reader.attach(slab)
        buffer = reader.buffer(slab, "disk buffer", reader.largest_page_bytes + page.ALIGNMENT)
        found = []
        for number in range(reader.pages):
            load = buffer.read(number, number + 1)
            rows = page.count_rows(slab.memory.b4, load.page_at)
            row_at, heap_at, words = (np.empty(rows, np.int64) for _ in range(3))
            page.row_places(slab.memory, load.page_at, master.codec.width, row_at, heap_at, words)
            labels = master.codec.unpack(slab.memory, row_at, heap_at, ["row"])[0].to_pylist()
            found.append([(None if label.startswith("none") else int(label.split("/")[0]), label) for label in labels])
        return found
    finally:
        reader.close()
