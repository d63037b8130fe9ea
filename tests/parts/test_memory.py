"""The slab and the compiler around the parts."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from semistream.parts import compiler, memory


def test_four_views_show_the_same_bytes():
    views = memory.view(np.arange(16, dtype=np.uint8))
    assert views.b8[1] == int.from_bytes(range(8, 16), "little")
    views.b4[2] = 0xFFFFFFFF
    assert views.b1[8:12].tolist() == [255] * 4
    assert views.b2[4:6].tolist() == [0xFFFF] * 2


def test_a_block_that_is_no_multiple_of_eight_is_refused():
    with pytest.raises(ValueError, match="divisor"):
        memory.view(np.zeros(12, np.uint8))


def test_kernels_are_kept_in_a_folder_named_after_all_their_sources():
    assert compiler.CACHE_FOLDER.name.startswith("kernels-")
    assert len(compiler.CACHE_FOLDER.name) == len("kernels-") + 16


def test_other_users_of_numba_keep_their_own_cache():
    before = numba.config.CACHE_DIR

    @compiler.kernel
    def one():
        return 1

    assert one() == 1
    assert before == numba.config.CACHE_DIR
