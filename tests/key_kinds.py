"""Key types and the key values that are known to break joins, as pools to draw row numbers from.

A pool is a pair of aligned Arrow arrays: place i of the stream's and of the master's pool is the same key, up to
`shared`; what lies behind exists on one side only. A key column is then `pool.take(places)`, and None gives a null key.
"""

from __future__ import annotations

import decimal
import functools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

NULL_WORD = 0x6E756C6C  # how the library writes a missing key: as a key of its own it must be nothing special
NAN = float("nan")
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
LONG = "long " * 300


@dataclass(frozen=True)
class KeyKind:
    """One key type (stream and master may differ by a lossless cast), its special values and its ordinary ones."""

    stream: pa.DataType
    master: pa.DataType
    special: tuple[Any, ...]
    ordinary: Callable[[int], Any]
    ordinary_count: int = 3000
    beyond: tuple[Any, ...] = ()  # values that only the wider of the two types can hold

    @property
    def narrow(self) -> pa.DataType:
        """The type that the other one can hold without loss."""
        return self.master if _fits(self.master, self.stream) else self.stream

    def pools(self) -> tuple[pa.Array, pa.Array, int]:
        """The stream's pool, the master's pool, and how many places they share."""
        values = [*self.special, *(self.ordinary(number) for number in range(self.ordinary_count))]
        shared = array(values, self.narrow)
        sides = []
        for side in (self.stream, self.master):
            extra = array([] if side == self.narrow else self.beyond, side)
            sides.append(pa.concat_arrays([shared if side == self.narrow else shared.cast(side), extra]))
        return sides[0], sides[1], len(values)


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array; dates and times are given as counts of their unit, so that no calendar limits them."""
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return pa.array(values, kind)


def taken(pool: pa.Array, places: Sequence[int | None]) -> pa.Array:
    """The values at these places, modulo the pool's length; None gives null. Text views are the one type Arrow cannot take from."""
    picks = pa.array([None if place is None else place % len(pool) for place in places], pa.int64())
    if pa.types.is_string_view(pool.type):
        return pool.cast(pa.string()).take(picks).cast(pool.type)
    return pool.take(picks)


def _fits(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Whether the first type is the smaller of a pair."""
    if pa.types.is_timestamp(narrow) and pa.types.is_timestamp(wide):
        order = ["s", "ms", "us", "ns"]
        return order.index(narrow.unit) <= order.index(wide.unit)
    if pa.types.is_decimal(narrow) and pa.types.is_decimal(wide):
        return narrow.precision <= wide.precision
    if pa.types.is_string(narrow) or pa.types.is_binary(narrow):
        return True
    if pa.types.is_large_string(narrow) or pa.types.is_large_binary(narrow):
        return narrow == wide
    return narrow == wide or (pa.types.is_primitive(narrow) and narrow.bit_width < wide.bit_width)


def same(kind: pa.DataType, special: tuple[Any, ...], ordinary: Callable[[int], Any], count: int = 3000) -> KeyKind:
    """A kind whose type is the same on both sides."""
    return KeyKind(kind, kind, special, ordinary, count)


def _integers() -> dict[str, KeyKind]:
    kinds = {}
    for bits in (8, 16, 32, 64):
        top = 2 ** (bits - 1)
        signed, unsigned = getattr(pa, f"int{bits}")(), getattr(pa, f"uint{bits}")()
        count = min(3000, top - 10)
        word = (NULL_WORD,) if bits > 16 else ()
        kinds[f"int{bits}"] = same(signed, (-1, 0, -top, top - 1, -2, *word), lambda n: n + 1, count)
        specials = (0, top, top - 1, 2 * top - 1, top + 1, *word)
        kinds[f"uint{bits}"] = same(unsigned, specials, lambda n: n + 1, count)
    return kinds


def _decimal(number: int, scale: int) -> decimal.Decimal:
    return decimal.Decimal(number).scaleb(-scale, decimal.Context(prec=80))


def _decimals() -> dict[str, KeyKind]:
    kinds = {}
    for name, kind in (
        ("decimal(9,2)", pa.decimal128(9, 2)),
        ("decimal(18,0)", pa.decimal128(18, 0)),
        ("decimal(38,10)", pa.decimal128(38, 10)),
        ("decimal256(60,5)", pa.decimal256(60, 5)),
    ):
        top = 10**kind.precision - 1
        special = tuple(_decimal(number, kind.scale) for number in (0, -1, top, -top, 10 ** (kind.precision - 1)))
        kinds[name] = same(kind, special, lambda n, scale=kind.scale: _decimal(n + 1, scale))
    return kinds


def _times() -> dict[str, KeyKind]:
    kinds = {
        "date32": same(pa.date32(), (0, -1, 2_932_896, -719_162, NULL_WORD), lambda n: n + 1),
        "date64": same(pa.date64(), (0, -86_400_000), lambda n: (n + 1) * 86_400_000),
        "time64[us]": same(pa.time64("us"), (0, 86_399_999_999), lambda n: n + 1),
        "duration[ms]": same(pa.duration("ms"), (0, -1, 2**62), lambda n: n + 1),
    }
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "Europe/Berlin"):
            special = (0, -1, 2**62, -(2**62), NULL_WORD)
            kinds[f"timestamp[{unit}{', zone' if zone else ''}]"] = same(
                pa.timestamp(unit, zone), special, lambda n: 86_400 * n + 1
            )
    return kinds


def _texts() -> dict[str, KeyKind]:
    words = ("", "\0", "a", "a\0", "a\0b", "é", "🜁", LONG, LONG + "x")
    octets = (b"", b"\0", b"\0\0", b"a\0b", b"\xff\xfe", LONG.encode(), LONG.encode() + b"\0")
    return {
        "string": same(pa.string(), words, lambda n: f"key-{n}"),
        "large_string": same(pa.large_string(), words, lambda n: f"key-{n}"),
        "binary": same(pa.binary(), octets, lambda n: b"key-%d" % n),
        "large_binary": same(pa.large_binary(), octets, lambda n: b"key-%d" % n),
        "fixed_binary": same(pa.binary(4), (b"\0\0\0\0", b"\0\0\0a", b"\xff\xff\xff\xff"), lambda n: b"%4d" % n),
    }


def _floats() -> dict[str, KeyKind]:
    special = (0.0, -0.0, NAN, OTHER_NAN, float("inf"), float("-inf"), -1.0)
    return {
        "float32": same(pa.float32(), special, lambda n: n + 0.5),
        "float64": same(pa.float64(), (*special, 5e-324, 1e308), lambda n: n + 0.1),
    }


def _widening() -> dict[str, KeyKind]:
    """Stream and master types that differ, and one holds every value of the other."""
    money, finer = pa.decimal128(7, 2), pa.decimal128(20, 4)
    return {
        "int32 to int64": KeyKind(pa.int32(), pa.int64(), (-1, 0, -(2**31)), lambda n: n + 1, 500, (2**32, 2**33 - 1)),
        "int64 to int8": KeyKind(pa.int64(), pa.int8(), (-1, 0, -128, 127), lambda n: n + 1, 60, (255, 256, INT64_MIN)),
        "uint32 to int64": KeyKind(pa.uint32(), pa.int64(), (0, 2**32 - 1), lambda n: n + 1, 500, (-1, 2**32)),
        "uint64 to uint8": KeyKind(pa.uint64(), pa.uint8(), (0, 255), lambda n: n + 1, 60, (2**64 - 1, 256)),
        "string to large": KeyKind(pa.string(), pa.large_string(), ("", "a\0", LONG), lambda n: f"key-{n}"),
        "view to string": KeyKind(pa.string_view(), pa.string(), ("", "a\0", LONG), lambda n: f"key-{n}"),
        "coded to string": KeyKind(pa.dictionary(pa.int32(), pa.string()), pa.string(), ("", "b"), lambda n: f"key-{n}"),
        "large to binary": KeyKind(pa.large_binary(), pa.binary(), (b"", b"a\0"), lambda n: b"key-%d" % n),
        "float32 to float64": KeyKind(pa.float32(), pa.float64(), (NAN, -0.0, 0.5), lambda n: n + 1.5, 500, (0.1,)),
        "seconds to microseconds": KeyKind(
            pa.timestamp("s"), pa.timestamp("us"), (0, -1), lambda n: n + 1, 500, (1, 1_500_000)
        ),
        "milliseconds to nanoseconds": KeyKind(
            pa.timestamp("ms", "UTC"), pa.timestamp("ns", "Asia/Tokyo"), (0, -1), lambda n: n + 1, 500, (1, 1_500_000)
        ),
        "decimal to finer": KeyKind(
            money, finer, (_decimal(-1, 2), _decimal(0, 2)), lambda n: _decimal(n + 1, 2), 500, (_decimal(1, 4),)
        ),
    }  # fmt: skip


KEY_KINDS: dict[str, KeyKind] = {
    **_integers(),
    **_texts(),
    "bool": same(pa.bool_(), (False, True), bool, 0),
    **_times(),
    **_decimals(),
    **_floats(),
    **_widening(),
}
SQL_KEY_KINDS = ("int64", "string", "binary", "float64")


@functools.cache
def pools(name: str) -> tuple[pa.Array, pa.Array, int]:
    """The pools of one kind, made once."""
    return KEY_KINDS[name].pools()
