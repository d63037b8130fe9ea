"""The pool of tiles: every tile is in exactly one list, whoever takes and gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.parts import tiles
from tests.parts.made import new_tiles


def free_ones(pool):
    """Tile numbers in the free list, first to last."""
    found, tile = [], int(pool.state[tiles.FREE_HEAD])
    while tile >= 0:
        found.append(tile)
        tile = int(pool.link[tile])
    return found


@given(count=st.integers(1, 6), verbs=st.lists(st.integers(-1, 5), max_size=40))
def test_every_tile_is_free_or_taken_and_never_both(count, verbs):
    """A number gives that taken tile back, -1 takes one."""
    pool, taken = new_tiles(count, 64), []
    for verb in verbs:
        if verb < 0:
            tile = tiles.take(pool)
            assert (tile == -1) == (len(taken) == count)
            if tile >= 0:
                assert pool.link[tile] == -1, "a tile begins as a list of its own"
                taken.append(tile)
        elif taken:
            tiles.give(pool, taken.pop(verb % len(taken)))
        free = free_ones(pool)
        assert sorted(free + taken) == list(range(count))
        assert int(pool.state[tiles.FREE]) == len(free)


@pytest.mark.parametrize("tile_bytes", [8, 24, 4096])
def test_tiles_lie_side_by_side_from_where_the_pool_begins(tile_bytes):
    pool = new_tiles(4, tile_bytes, at=128)
    assert [tiles.place_of(pool, np.int64(tile)) for tile in range(4)] == [128 + tile_bytes * n for n in range(4)]
