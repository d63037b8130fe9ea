"""A saved join as bytes, and back.

    name | format | checksum of all that follows | length of the head | head: JSON | blocks, each compressed

The head tells which join was saved, over which master and stream, and holds a snapshot's plain data (snapshot.py). Whatever does not fit is
refused before anything is built. Reading makes no object that the bytes name and calls nothing: forged bytes can give wrong rows or end the
process, as a forged master can, but run no code.
"""

from __future__ import annotations

import base64
import json
import pickle
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from semistream import __version__, snapshot
from semistream.budget import Slab
from semistream.errors import StateError
from semistream.protocols import Master
from semistream.sharing import Options
from semistream.snapshot import Snapshot, Unfit

FORMAT: Final = 1
_NAME: Final = b"semistream state"
_FRONT: Final = struct.Struct("<16sIQ")  # name, format, checksum
_LENGTH: Final = struct.Struct("<Q")
_CODEC: Final = next(name for name in ("lz4", "zstd", "gzip") if pa.Codec.is_available(name))  # the fastest there is
_AGAIN: Final = "take an intact copy, or read the stream again from where the join began"


class Saved(NamedTuple):
    """What is saved of a join that has seen a row."""

    schema: pa.Schema  # of the stream
    heap_bytes: float  # of its rows; the slab was shared out by that
    ledger: dict[str, int]
    snapshot: Snapshot


def _filter_of(where: pc.Expression | None) -> str:
    """Its text, and a digest, since the text leaves out the middle of a long list."""
    return "None" if where is None else f"{where} ({xxhash.xxh3_64_hexdigest(pickle.dumps(where))})"


def facts_of(master: Master, options: Options) -> dict[str, str]:
    """What must be the same when a saved join goes on."""
    return {
        "algorithm": repr(options.algorithm.name),
        "preset": repr(options.preset),
        "on": repr(options.stream_keys),
        "how": repr(options.how),
        "columns": repr(options.payload),
        "where": _filter_of(options.where),
        "null_safe": repr(options.null_safe),
        "ordered": repr(options.ordered),
        "match_column": repr(options.match_column),
        "max_wait": repr(options.wait),
        "memory": repr(options.memory_bytes),
        "threads": repr(options.threads),
        "overload": repr(options.overload.name),
        "master": master.fingerprint,
    }


def write(facts: dict[str, str], saved: Saved | None) -> bytes:
    """The bytes of a saved join; None: it has seen no row."""
    head: dict[str, Any] = {"semistream": __version__, "facts": facts, "codec": _CODEC, "stream": None}
    packed: list[pa.Buffer] = []
    if saved is not None:
        codec, sizes = pa.Codec(_CODEC), []
        for block in map(pa.py_buffer, saved.snapshot.blocks):
            packed.append(codec.compress(block))
            sizes.append((packed[-1].size, block.size))
        schema = base64.b64encode(saved.schema.serialize().to_pybytes()).decode("ascii")
        head["stream"] = {"schema": schema, "heap_bytes": saved.heap_bytes, "ledger": saved.ledger}
        head |= {"blocks": sizes, "data": saved.snapshot.data}
    text = json.dumps(head, separators=(",", ":")).encode()
    parts, checksum = [_LENGTH.pack(len(text)), text, *packed], xxhash.xxh3_64()
    for part in parts:
        checksum.update(part)
    return b"".join([_FRONT.pack(_NAME, FORMAT, checksum.intdigest()), *parts])


def read(state: Any, facts: dict[str, str]) -> Saved | None:
    """What was saved; `StateError` if it was not saved by a join with these facts."""
    if not isinstance(state, bytes | bytearray | memoryview):
        raise StateError(f"resume is a {type(state).__name__}: need the bytes that Join.save() gave")
    view = memoryview(state).cast("B")
    if view.nbytes < _FRONT.size or bytes(view[: len(_NAME)]) != _NAME:
        raise StateError(
            f"resume: these {view.nbytes} bytes are no saved join; need the bytes that Join.save() gave, all of them"
        )
    _, format_, checksum = _FRONT.unpack(view[: _FRONT.size])
    if format_ != FORMAT:
        raise StateError(
            f"resume: saved in format {format_}, this semistream has format {FORMAT}; go on with the version that saved it"
        )
    rest = view[_FRONT.size :]
    if xxhash.xxh3_64_intdigest(rest) != checksum:
        raise StateError(f"resume: the bytes are damaged, their checksum is not the one that was saved; {_AGAIN}")
    behind = _LENGTH.size + _LENGTH.unpack(rest[: _LENGTH.size])[0]
    head = json.loads(bytes(rest[_LENGTH.size : behind]))
    _compare(head, facts)
    stream = head["stream"]
    if stream is None:
        return None
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stream["schema"])))
    blocks = _Blocks(rest[behind:], head["blocks"], pa.Codec(head["codec"]))
    return Saved(schema, stream["heap_bytes"], stream["ledger"], Snapshot(head["data"], blocks))


def _compare(head: dict[str, Any], facts: dict[str, str]) -> None:
    """Refuse what another join saved, or another version."""
    if head["semistream"] != __version__:
        raise StateError(
            f"resume: saved by semistream {head['semistream']}, this is {__version__}; go on with the version that saved it, and change "
            "versions where a stream ends"
        )
    saved = head["facts"]
    other = [name for name in {**saved, **facts} if saved.get(name) != facts.get(name)]
    if not other:
        return
    differences = "; ".join(f"{name} was {saved.get(name)} and is {facts.get(name)}" for name in other)
    if other == ["master"]:
        raise StateError(
            f"resume: the master is not the one that tuples wait for: {differences}; open that version, as "
            "ss.open_master(path, version=...), or read the stream again from where the join began"
        )
    raise StateError(f"resume: saved by a join with other options: {differences}; give this join the same")


def restore(saved: Saved, things: Any, slab: Slab) -> Any:
    """Put what was saved into things that were just built; returns them as they were saved."""
    try:
        _compare_ledgers(saved.ledger, slab.bytes_by_part)
        return snapshot.put(saved.snapshot, things, slab)
    except Unfit as error:
        raise StateError(
            f"resume: saved by another build of semistream {__version__} ({error}); go on with that build"
        ) from error


def _compare_ledgers(was: dict[str, int], is_: dict[str, int]) -> None:
    if was != is_:
        raise Unfit(f"memory was shared out as {was}, now as {is_}")


class _Blocks(Sequence[Any]):
    """Compressed blocks, opened one at a time."""

    def __init__(self, packed: memoryview, sizes: list[tuple[int, int]], codec: pa.Codec) -> None:
        self._sizes, self._codec, self._parts = sizes, codec, []
        start = 0
        for size, _ in sizes:
            self._parts.append(packed[start : start + size])
            start += size

    def __len__(self) -> int:
        return len(self._sizes)

    def __getitem__(self, number: Any) -> Any:
        return self._codec.decompress(self._parts[number], self._sizes[number][1])
