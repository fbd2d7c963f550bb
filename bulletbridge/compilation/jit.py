# ruff: noqa: F401
# pyright: reportUnusedImport=false
"""Decorators that make functions kernels, and what they are called by.

Where the package brings machine code of its kernels they are called there, and numba is imported
for those alone that it has none of (``late``); elsewhere numba compiles all of them (``by_numba``).
"""

import ctypes

from bulletbridge.compilation import objects

if objects.SHELF is None:
    with objects.compiling():
        from bulletbridge.compilation.blocks import (
            add_lines,
            clear_blocks,
            cosines_and_sines,
            eliminate_six,
            exchange_blocks,
            inner_blocks,
            inner_lines,
            multiply_blocks,
            scale_after,
            subtract_blocks,
            take_away_lines,
            take_lines,
            take_lines_down,
            take_lines_from,
        )
        from bulletbridge.compilation.by_numba import (
            assist,
            bundling,
            call_back,
            call_stored,
            caller,
            compiled,
            deferred,
            helper,
            is_cached,
            is_compiled,
            is_plain_python,
            kernel,
            leave,
            outlined,
            take_number,
        )
        from bulletbridge.compilation.sixes import (
            add_sixes,
            along_sixes,
            solve_six,
            take_columns,
            take_rows,
        )
        from bulletbridge.compilation.tiles import (
            add_tile,
            solve_down_by_units_tile,
            solve_down_tile,
            solve_up_tile,
        )
else:
    from bulletbridge.compilation.late import STAND_INS

    globals().update(STAND_INS)

Callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)
"""C signature of a Python function that a kernel calls back: one integer, the phase."""
