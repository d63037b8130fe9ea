"""Serving one word by look-up, wherever its rows lie: what several recipes do for a key that a load alone cannot complete."""

from __future__ import annotations

from collections.abc import Iterator

from semistream.pending import Pending
from semistream.protocols import Buffer, Found, Load, Reader


class WordServer:
    """Looks words up and reads their pages, a buffer full at a time."""

    def __init__(self, reader: Reader, buffer: Buffer, pending: Pending, key_names: list[str]) -> None:
        self._reader, self._buffer, self._pending, self._key_names = reader, buffer, pending, key_names

    def pair(self, word: int) -> Iterator[Found]:
        """All rows of a word against the tuples that wait for it."""
        keys = self._pending.keys_of([word], self._key_names) if self._reader.wants_keys else []
        for first, stop in self._reader.look_up(word, keys):
            while first < stop:
                end = min(stop, self._buffer.stop_of(first))
                yield from self._pending.probe_word(self._buffer.read(first, end), word)
                first = end

    def serve(self, word: int) -> Iterator[Found]:
        """As `pair`; then they leave."""
        if self._pending.waits_for(word):
            yield from self.pair(word)
            yield from self._pending.leave_word(word)

    def serve_open(self, load: Load) -> Iterator[Found]:
        """Serve the words whose rows go on outside a load."""
        for flag, word in load.open_words.reshape(2, 2).tolist():
            if flag:
                yield from self.serve(word)
