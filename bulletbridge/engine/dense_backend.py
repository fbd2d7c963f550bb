"""Dense factors in joint coordinates as a backend, and the end of a step by them."""

from bulletbridge.engine.backend import KktBackend
from bulletbridge.engine.dense import (
    accelerate,
    accelerate_at,
    admissible_acceleration,
    bounded_correction,
    correction_step,
    energy_of,
    factor_at,
    factorise,
    factorise_apart,
    filter_velocity,
    is_unexplained,
    move_back,
    travelled,
    update_positions,
    update_positions_apart,
)
from bulletbridge.engine.plausible import find_least_dense
from bulletbridge.engine.records import BY_DENSE
from bulletbridge.engine.step_end import ending

DENSE = KktBackend(
    BY_DENSE, update_positions, update_positions_apart, factorise, factor_at,
    admissible_acceleration, accelerate, accelerate_at, correction_step, bounded_correction,
    move_back, filter_velocity, travelled, is_unexplained, energy_of, find_least_dense,
)  # fmt: skip
DENSE_END = ending(DENSE)
DENSE_APART = DENSE._replace(update_positions=update_positions_apart, factorise=factorise_apart)
"""The same out of line: steps with inequalities are long beside a call, and had four copies."""
