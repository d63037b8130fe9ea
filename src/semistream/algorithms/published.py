"""What `preset="published"` stands for: the sizes of the papers' own runs, and what they charged for a tuple.

Master rows have 120 bytes there, stream tuples 20, and a hash table takes eight times what lies in it. The constants of the published
programs fit these charges; the memory they name is reached with them, whatever a tuple really takes here.
"""

from __future__ import annotations

from semistream.algorithms.record import Parts, Shares
from semistream.budget import Share
from semistream.protocols import Reader

ROW_BYTES = 120
MESHJOIN_TUPLE_BYTES = 8 * 20 + 4  # a tuple in the hash table, and a pointer in the queue
HYBRIDJOIN_TUPLE_BYTES = 8 * (20 + 4) + 12  # the tuple with the place of its node, and the node


def buffer_of(rows: int) -> Shares:
    """A disk buffer of so many published rows, or of an eighth of the memory if that is less."""

    def shares(reader: Reader, memory_bytes: int) -> list[Share]:
        least = reader.largest_page_bytes + 8192
        most = max(least, min(rows * ROW_BYTES + 8192, memory_bytes // 8))
        return [Share("disk buffer", least, weight=1.0, most=most)]

    return shares


def buffer_bytes(parts: Parts, rows: int) -> int | None:
    """What so many rows really take in a disk buffer, for a recipe with the published preset; None: no limit of this kind."""
    return rows * (parts.master_codec.width + 8) if parts.preset == "published" else None


def slots_in(memory_bytes: int, rows: int, tuple_bytes: int) -> int:
    """How many tuples wait in what is left of a memory beside so many master rows, by the published charges."""
    return max(1, (memory_bytes - rows * ROW_BYTES) // tuple_bytes)


def slots(parts: Parts, rows: int, tuple_bytes: int) -> int | None:
    """As `slots_in` beside other parts, for a recipe with the published preset; None: no limit of this kind."""
    beside = ("hot cache", "intermediate buffer")
    memory_bytes = parts.slab.total_bytes - sum(parts.given.get(part, 0) for part in beside)
    return slots_in(memory_bytes, rows, tuple_bytes) if parts.preset == "published" else None
