"""How far configurations have joints beyond their limits."""

from bulletbridge.inequalities.motor_limit_rows import SHALLOW
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array


def joints_beyond(mechanism: Mechanism, q: Array) -> set[str]:
    """Hinges and sliders that a configuration (nq,) has beyond their limits."""
    return {name for name, far in crossings(mechanism, q).items() if far > SHALLOW}


def most_beyond(mechanism: Mechanism, q: Array) -> float:
    """How far beyond its limits a configuration (nq,) has a hinge or slider at most [rad or m]."""
    return max(crossings(mechanism, q).values(), default=0.0)


def crossings(mechanism: Mechanism, q: Array) -> dict[str, float]:
    """How far beyond its nearer limit each hinge and slider is [rad or m]; negative within."""
    ends = {n: (j.lower, j.upper, q[j.q.start]) for n, j in mechanism.joints.items() if j.is_single}
    return {n: float(max(low - x, x - high)) for n, (low, high, x) in ends.items()}
