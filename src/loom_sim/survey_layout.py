"""The array that a survey fills, for Python and compiled code.

hulls    for each space and kind of access the lowest and highest byte touched
pieces   where the caller gives room for them: runs of bytes with the command and the place on the divided axis,
         of the accesses that come into the space's contested range
"""

from __future__ import annotations

from typing import Final

BOXES: Final = 0  # address of BOXES_WORDS words for the boxes of a command
HULLS: Final = 1  # address of the hulls, KINDS * HULL_WORDS a space
NANOSECONDS: Final = 2  # an estimate, for a host of today
PIECES: Final = 3  # address of the pieces, PIECE_WORDS each; 0 where none are wanted
PIECE_LIMIT: Final = 4
PIECE_COUNT: Final = 5  # all, kept or not
CONTESTED: Final = 6  # address of lo, hi a space; accesses outside leave no pieces
AXIS_COUNTER: Final = 7  # the word of the state with the counter of the loop over the divided axis
ABSOLUTE: Final = 8  # 1: all spaces count as space 1, their bytes by host address, because they may overlap
ORDER_FREE: Final = 9  # address of a word a SCE opcode: 1 where the order of such atomics does not matter
BY_PLACE: Final = 10  # address of the nanoseconds of each program of the part along the divided axis
PLACES: Final = 11  # and how many there are
FIRST_PLACE: Final = 12
WORDS: Final = 13

READ, WRITE, ATOMIC = range(3)
KINDS: Final = 3
LOW, HIGH, KIND_OF_ATOMIC, LAST_WORD = range(4)
HULL_WORDS: Final = 4
EMPTY_LOW: Final = 1 << 62
MIXED: Final = -1  # KIND_OF_ATOMIC: 0 for none, one more than the opcode times 4 plus log2 of the bytes, or this

PIECE_WORDS: Final = 5  # 2 * space + kind, first byte, one past the last, word of the command, place on the axis

BOXES_WORDS: Final = 1024
