"""A snapshot: all that a running join knows, as plain data and blocks of bytes.

The arrays of a recipe lie in the slab, and everything else is a small graph of objects. A resumed join builds the same graph afresh, from
the same options; a snapshot is the values in it, to be put into the fresh one. It says neither which class to make nor which function to
call, so that reading one can run nothing.

    None, True, 7, 0.5, "text"              themselves
    ["slab", at, type, shape, strides]      a view of the slab, whose bytes are kept once, as a whole
    ["array", n, type, shape, block]        another array
    ["list" | "deque" | "set", n, items]    and ["dict", n, keys, values]
    ["tuple", name, items]                  name: of a named tuple's class
    ["object", n, class, {name: value}]     one of ours
    ["batch", block]                        an Arrow batch
    ["again", n]                            the same as before
    ["own"]                                 what every run has of its own: locks, functions, schemas

A class whose objects hold things of the run, such as files, names the others in `saved`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from semistream.budget import Slab

_OWN: Final = (type(threading.Lock()), pa.Schema, pa.Field)
_KINDS: Final[dict[str, Any]] = {"list": list, "deque": deque, "set": set}
_NUMBERS: Final = "biuf"  # arrays of anything else hold addresses
_BLOCK_BYTES: Final = 1 << 20


class Snapshot(NamedTuple):
    """Plain data, and blocks of bytes: those of the slab, then those that the data speaks of. They are views, so use them at once."""

    data: Any
    blocks: Sequence[Any]


class Unfit(Exception):  # not for users: who reads a snapshot says what it means
    """A thing cannot be taken, or a snapshot does not fit the things it is to be put into."""


def take(thing: Any, slab: Slab) -> Snapshot:
    """A snapshot of a thing and of everything it refers to."""
    taker = _Taker(slab)
    return Snapshot(taker.take(thing), taker.blocks)


def put(snapshot: Snapshot, thing: Any, slab: Slab) -> Any:
    """Put a snapshot into a thing that was built in the same way, and into the slab; returns the thing as it was taken."""
    putter = _Putter(snapshot.blocks, slab)
    try:
        taken = putter.put(snapshot.data, thing)
        for block, bytes_ in zip(_blocks(slab), snapshot.blocks, strict=False):
            was = np.frombuffer(bytes_, np.uint8)
            if not np.array_equal(block, was):  # memory that is set aside and not used is not to be touched
                block[:] = was
    except (ArithmeticError, LookupError, TypeError, ValueError, pa.ArrowException) as error:
        raise Unfit(f"{type(error).__name__}: {error}") from error
    return taken


def _blocks(slab: Slab) -> Iterator[NDArray[np.uint8]]:
    for start in range(0, slab.used, _BLOCK_BYTES):
        yield slab.memory.b1[start : min(slab.used, start + _BLOCK_BYTES)]


def _names(thing: Any) -> list[str]:
    """What of an object is saved."""
    kind: Any = type(thing)
    if hasattr(kind, "saved"):
        return list(kind.saved)
    if not kind.__module__.startswith("semistream."):
        raise Unfit(f"a {kind.__module__}.{kind.__qualname__} cannot be saved")
    return list(vars(thing) if hasattr(thing, "__dict__") else kind.__slots__)


def _is_own(thing: Any) -> bool:
    settings = getattr(type(thing), "__dataclass_params__", None)
    return (settings is not None and settings.frozen) or callable(thing) or isinstance(thing, _OWN)


class _Taker:
    """Walks over things; every one that can change, or is referred to twice, gets a number."""

    def __init__(self, slab: Slab) -> None:
        self.blocks: list[Any] = list(_blocks(slab))
        self._begin, self._end = slab.memory.b1.ctypes.data, slab.memory.b1.ctypes.data + slab.memory.b1.nbytes
        self._numbers: dict[int, int] = {}
        self._seen: list[Any] = []  # as long as they live nobody else gets their id

    def take(self, thing: Any) -> Any:
        """The plain form of a thing."""
        if isinstance(thing, np.generic):
            return thing.item()
        if thing is None or isinstance(thing, bool | int | float | str):
            return thing
        if isinstance(thing, tuple):
            return ["tuple", type(thing).__name__, self._items(thing)]
        if isinstance(thing, pa.RecordBatch):
            return ["batch", self._block(_stream_of(thing))]
        if _is_own(thing):
            return ["own"]
        if isinstance(thing, np.ndarray) and self._begin <= thing.ctypes.data < self._end:
            return ["slab", thing.ctypes.data - self._begin, thing.dtype.str, list(thing.shape), list(thing.strides)]
        if id(thing) in self._numbers:
            return ["again", self._numbers[id(thing)]]
        self._numbers[id(thing)] = number = len(self._seen)
        self._seen.append(thing)
        return self._whole(thing, number)

    def _whole(self, thing: Any, number: int) -> Any:
        if isinstance(thing, np.ndarray):
            if thing.dtype.kind not in _NUMBERS:
                raise Unfit(f"an array of {thing.dtype} cannot be saved")
            return ["array", number, thing.dtype.str, list(thing.shape), self._block(thing.tobytes())]
        if isinstance(thing, dict):
            return ["dict", number, self._items(thing.keys()), self._items(thing.values())]
        for name, kind in _KINDS.items():
            if isinstance(thing, kind):
                return [name, number, self._items(thing)]
        return [
            "object",
            number,
            type(thing).__name__,
            {name: self.take(getattr(thing, name)) for name in _names(thing)},
        ]

    def _items(self, things: Iterable[Any]) -> list[Any]:
        return [self.take(item) for item in things]

    def _block(self, bytes_: Any) -> int:
        self.blocks.append(bytes_)
        return len(self.blocks) - 1


class _Putter:
    """Walks over a snapshot and the fresh things side by side. Objects are the fresh ones, wherever they stood; all else is made anew."""

    def __init__(self, blocks: Sequence[Any], slab: Slab) -> None:
        self._blocks, self._bytes = blocks, slab.memory.b1
        self._things: dict[int, Any] = {}
        self._filled: set[int] = set()

    def put(self, data: Any, fresh: Any) -> Any:
        """The thing that was taken; `fresh` stands at its place now."""
        if not isinstance(data, list):
            return data
        kind, *rest = data
        if kind == "own":
            return fresh
        if kind == "again":
            return self._things[rest[0]]
        if kind == "slab":
            at, dtype, shape, strides = rest
            return np.ndarray(shape, _number_type(dtype), self._bytes, at, strides)
        if kind == "tuple":
            return self._tuple(rest[0], rest[1], fresh)
        if kind == "batch":
            return _batch_of(self._blocks[rest[0]])
        if kind == "object":
            return self._object(rest[0], rest[1], rest[2], fresh)
        number, *rest = rest
        thing: Any
        if kind == "array":
            dtype, shape, block = rest
            thing = np.frombuffer(self._blocks[block], _number_type(dtype)).reshape(shape).copy()
        elif kind == "dict":
            keys = self._items(rest[0], ())
            held = fresh if isinstance(fresh, dict) else {}
            thing = dict(zip(keys, self._items(rest[1], [held.get(key) for key in keys]), strict=True))
        else:
            thing = _KINDS[kind](self._items(rest[0], fresh))
        self._things[number] = thing
        return thing

    def _tuple(self, name: str, items: list[Any], fresh: Any) -> Any:
        values = self._items(items, fresh)
        if name == "tuple":
            return tuple(values)
        if type(fresh).__name__ != name:
            raise Unfit(f"a {name} was saved where a {type(fresh).__name__} is now")
        return type(fresh)(*values)

    def _object(self, number: int, name: str, values: dict[str, Any], fresh: Any) -> Any:
        if type(fresh).__name__ != name or id(fresh) in self._filled:
            raise Unfit(f"a {name} was saved where a {type(fresh).__name__} is now")
        if list(values) != _names(fresh):
            raise Unfit(f"a {name} with {', '.join(values)} was saved, it has {', '.join(_names(fresh))} now")
        self._things[number] = fresh
        self._filled.add(id(fresh))
        for attribute, value in values.items():
            setattr(fresh, attribute, self.put(value, getattr(fresh, attribute)))
        return fresh

    def _items(self, items: list[Any], fresh: Any) -> list[Any]:
        held = list(fresh) if isinstance(fresh, list | tuple | deque) else []
        return [self.put(item, held[at] if at < len(held) else None) for at, item in enumerate(items)]


def _number_type(name: str) -> np.dtype[Any]:
    dtype = np.dtype(name)
    if dtype.kind not in _NUMBERS:
        raise Unfit(f"an array of {dtype} was saved")
    return dtype


def _stream_of(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()


def _batch_of(bytes_: Any) -> pa.RecordBatch:
    batch = pa.ipc.open_stream(bytes_).read_next_batch()
    batch.validate(full=True)
    return batch
