"""Sizes of the blocks in which short lines are worked on, for those who make room for them."""

LANES = 8
"""Numbers in a block, see ``blocks``."""
LINES = 4
"""Lines of a tile, see ``tiles``: with ``LANES`` columns it fits the registers of most
processors."""
SIX, TWO = 6, 2
"""Variables that ``blocks.eliminate_six`` eliminates, and blocks of its lines."""
MOST_TURNED = 2.0**19
"""Angle [rad] up to which ``blocks.cosines_and_sines`` knows quarter turns to the last digit."""


def in_blocks(n: int) -> int:
    """Room for n numbers in whole blocks."""
    return -(-n // LANES) * LANES
