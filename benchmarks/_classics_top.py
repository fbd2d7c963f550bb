"""Long runs of the spinning top on charts, for benchmarks/classics.py."""

from typing import NamedTuple

import numpy as np

from bulletbridge.errors import StepError
from bulletbridge.formulations.chart import ITERATIONS, Iterations
from bulletbridge.formulations.charts import TILT, ChartMotion, Rule
from bulletbridge.formulations.classics.top import Top, start
from bulletbridge.numerics.records import Array


class TopRun(NamedTuple):
    """What a run of the top showed.

    Attributes:
        changes: Charts after the first.
        retries: Steps repeated on a new chart.
        error: Largest violations (3,) of the three levels.
        energy: Largest change of energy, relative.
        away: Largest horizontal distance of the centre of mass [m].
        end: Time reached [s].
    """

    changes: int
    retries: int
    error: Array
    energy: float
    away: float
    end: float


def top_run(
    spin: float,
    duration: float,
    across: float = 1e-12,
    h: float = 1e-3,
    rule: Rule = TILT,
    iterations: Iterations = ITERATIONS,
) -> TopRun:
    """Run the upright top; a step that no chart carries or an energy off by 2 % ends the run."""
    top = Top(alpha=0.0)
    motion = ChartMotion(top, *start(across, spin), rule=rule, iterations=iterations)
    first, energy, away = top.energy(motion.q, motion.v), 0.0, 0.0
    for _ in range(round(duration / h)):
        try:
            motion.step(h)
        except StepError:
            break
        energy = max(energy, abs(top.energy(motion.q, motion.v) / first - 1.0))
        away = max(away, float(np.hypot(*motion.q[:2])))
        if not energy < 2e-2:
            break
    return TopRun(motion.changes, motion.retries, motion.error, energy, away, motion.t)
