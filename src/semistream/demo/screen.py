"""What the demo shows while it runs: stages, two bars, and the bursts as they come."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

_BLOCKS = " ▁▂▃▄▅▆▇█"
_PLAIN = " .:-=+*#%"
_WIDTH = 24


class Screen:
    """Lines for stages on any output; bars only where somebody can see them move."""

    def __init__(self, console: Console, live: bool | None) -> None:
        self.console = console
        self._live = console.is_terminal if live is None else live

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """A stage of the demo; shows how long it took."""
        start = time.monotonic()
        with self.console.status(title) if self._live else self._nothing():
            yield
        self.console.print(f"  {title}  [dim]{time.monotonic() - start:.1f} s[/dim]", highlight=False)

    @contextmanager
    def stream(self, orders: int) -> Iterator[StreamBars]:
        """The bars of the running stream."""
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description:<13}"),
            BarColumn(16),
            TextColumn("{task.fields[told]}"),
        )
        with Progress(*columns, console=self.console, transient=True, disable=not self._live) as progress:
            yield StreamBars(progress, orders, _PLAIN if self.console.encoding.lower() == "ascii" else _BLOCKS)

    @contextmanager
    def _nothing(self) -> Iterator[None]:
        yield


class StreamBars:
    """Orders that arrived, with the last bursts drawn, and orders that are in the warehouse."""

    def __init__(self, progress: Progress, orders: int, blocks: str) -> None:
        self._progress, self._blocks = progress, blocks
        self._arrived = progress.add_task("orders sent", total=orders, told="")
        self._stored = progress.add_task("in warehouse", total=orders, told="")
        self._bursts: deque[int] = deque([0] * _WIDTH, _WIDTH)
        self._orders, self._sent = orders, 0

    def show(self, sent: int, stored: int, rows_per_s: float) -> None:
        """Call it at a steady pace: every call is one column of the drawing."""
        if sent > self._sent or sent < self._orders:  # after the last order the drawing stands still
            self._bursts.append(sent - self._sent)
        self._sent = sent
        top = max(self._bursts) or 1
        drawn = "".join(self._blocks[burst * (len(self._blocks) - 1) // top] for burst in self._bursts)
        self._progress.update(self._arrived, completed=sent, told=f"{sent:>9,} {drawn}")
        told = f"{stored:>9,} {rows_per_s:,.0f} rows/s, {sent - stored:,} waiting"
        self._progress.update(self._stored, completed=stored, told=told)
