"""`SharedMemory`: one budget for several joins of one query."""

from __future__ import annotations

from semistream.errors import UsageError
from semistream.units import parse_bytes


class SharedMemory:
    """The budget of an executor, to be shared evenly by `joins` calls of `enrich`.

        memory = SharedMemory("256MB", joins=2)
        named = enrich(orders, "products.master", on="product_id", memory=memory)
        placed = enrich(named, "customers.master", on="customer_id", memory=memory)

    Spark runs the joins of a chain at the same time, each in a Python process of its own, so every one has a part of its own.

    >>> SharedMemory("64MB", joins=2).share_bytes
    33554432
    """

    def __init__(self, memory: int | str, joins: int) -> None:
        if joins < 1:
            raise UsageError(f"SharedMemory: joins={joins}: need the number of enrich calls that share it, 1 or more")
        self.memory_bytes, self.joins = parse_bytes(memory), joins
        self._joins: set[str] = set()

    @property
    def share_bytes(self) -> int:
        """The part of each join."""
        return self.memory_bytes // self.joins

    def take(self, join: str) -> None:
        """Give a join its part; the same join may come again, as in every call of `foreachBatch`."""
        if join not in self._joins and len(self._joins) == self.joins:
            raise UsageError(
                f"SharedMemory: joins={self.joins}, and here is one more; say how many there are, or make it another budget"
            )
        self._joins.add(join)
