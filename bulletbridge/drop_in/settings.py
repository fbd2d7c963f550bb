"""Settings of all clients of the process, which a script runner may change."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Mode = Literal["filter", "exact", "native"]
"""Who advances bodies that constraints join: Bullet, then closed by us; we alone; Bullet alone."""


@dataclass
class Hooks:
    """Settings of the whole process.

    Attributes:
        mode: Of clients that are met for the first time.
        headless: Windows become DIRECT, sliders answer their start value, and real-time simulation
            advances by ``clock`` without a window too.
        after_step: Called after each step with the ``Session`` that made it.
        before_call: Called before any PyBullet function is looked up or called.
        clock: Seconds that real-time simulation goes by.
    """

    mode: Mode = "filter"
    headless: bool = False
    after_step: list[Callable[[Any], None]] = field(default_factory=lambda: [])
    before_call: list[Callable[[], None]] = field(default_factory=lambda: [])
    clock: Callable[[], float] = time.perf_counter


HOOKS = Hooks()
