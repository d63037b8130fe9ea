"""Tiles: one pool of equal pieces of memory that pending tuples and cached rows share, so that either may grow at the other's cost.

    free ---> tile -> tile -> tile         every tile is in exactly one list: the free one, a bin's, or the cache's

A list is a chain of tile numbers through `link`; who holds the list keeps its ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import I32, I64

# positions in `state`
FREE_HEAD, FREE, AT, BYTES, KEPT_BACK = 0, 1, 2, 3, 4


class Tiles(NamedTuple):
    """The chains; where tile 0 begins in the slab, how long a tile is, and how many free ones are kept back from the bins."""

    link: I32
    state: I64


def reset(tiles: Tiles, at: int, tile_bytes: int, kept_back: int = 0) -> None:
    """All tiles are free."""
    count = tiles.link.size
    tiles.link[:] = np.arange(1, count + 1, dtype=np.int32)
    tiles.link[count - 1] = -1
    tiles.state[:] = (0, count, at, tile_bytes, kept_back)


@kernel
def take(tiles: Tiles) -> int:
    """A free tile, or -1."""
    tile = tiles.state[FREE_HEAD]
    if tile >= 0:
        tiles.state[FREE_HEAD] = tiles.link[tile]
        tiles.state[FREE] -= 1
        tiles.link[tile] = -1
    return np.int64(tile)


@kernel
def give(tiles: Tiles, tile: int) -> None:
    """Make a tile free again."""
    tiles.link[tile] = tiles.state[FREE_HEAD]
    tiles.state[FREE_HEAD] = tile
    tiles.state[FREE] += 1


@kernel
def place_of(tiles: Tiles, tile: int) -> int:
    """Where a tile begins in the slab."""
    return np.int64(tiles.state[AT] + tile * tiles.state[BYTES])
