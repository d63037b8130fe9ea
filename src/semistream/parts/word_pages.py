"""Pages of words, for masters in word order: which pages may hold rows of a word, by search in the first words of all pages.

page      0        1        2        3                       word 5 stands in page 1, word 7 in pages 1 to 3, word 8 in page 3
words     2 3 3    5 6 7    7 7 7    7 8 9
first     2        5        7        7
continues 0        0        1        1      the page before ends with the same word
"""

from __future__ import annotations

import numpy as np

from semistream.parts.compiler import kernel
from semistream.parts.memory import I64, U8
from semistream.parts.stream_table import StreamTable


@kernel
def last_page(first_words: I64, word: int) -> int:
    """The last page that may hold rows of a word; -1 if the word comes before the first page."""
    low, high = np.int64(0), np.int64(first_words.size)
    while low < high:
        middle = (low + high) >> 1
        if first_words[middle] <= word:
            low = middle + 1
        else:
            high = middle
    return low - 1


@kernel
def first_page(first_words: I64, continues: U8, word: int, last: int) -> int:
    """The first page that may hold rows of a word whose last page is known."""
    page = last
    while page >= 0 and first_words[page] == word and continues[page]:
        page -= 1
    return page


@kernel
def mark_pages(table: StreamTable, first_words: I64, continues: U8, marks: U8) -> None:
    """Mark every page that may hold rows of a word somebody waits for."""
    for entry in range(table.tag.size):
        if table.tag[entry] != 0:
            word = table.entry_word[entry]
            last = last_page(first_words, word)
            if last >= 0:
                for page in range(first_page(first_words, continues, word, last), last + 1):
                    marks[page] = 1
