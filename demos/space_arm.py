"""Free-floating station whose arm holds its own tip, tumbling for 80 s without loads or friction.

The joint angles are checked against a reference that was integrated by other software to twelve
digits. Momentum and energy stay, up to the integrator's error, although the gap is corrected in
every step: corrections in the metric of the mass matrix move the station too, and one filter
changes the momentum by round-off only. In the Euclidean metric it would change by thousands.
Source: Kövecses and Piedbœuf 2003.
"""

from typing import NamedTuple

import numpy as np
from _show import play, run, window
from numpy.typing import NDArray

import bulletbridge as bb

Array = NDArray[np.float64]

DURATION = 80.0  # [s]
SPIN = (-9.643542085776135e-05, 8.748626119397585e-05, -3.7429845037544046e-05)  # [rad/s]
DRIFT = (-0.0006783358920084068, -0.0009616476437209107, -0.0007832335499617266)  # [m/s]
RATES = (  # of the joints at the start [rad/s]
    *(-0.0157330637019561, -0.02504887965969071, -0.005237302450978268, -0.010891161811550386),
    *(0.05537539844584424, -0.4009888358052884, -0.097879328549042),
)
REFERENCE = np.array(  # joint angles after DURATION [rad]
    [
        *(-2.1940779162699102, -2.408049833121481, 0.48571567917312086, -2.024061694249442),
        *(-2.25449079215425, -32.41646699342493, -7.029288022785666),
    ]
)


class Errors(NamedTuple):
    """What is left after DURATION."""

    angles: float  # of the joints, from the reference [rad]
    momentum: float  # relative
    energy: float  # relative
    gap: float  # [m]


def tumble(dt: float, gui: bool = False) -> Errors:
    """Tumble with steps of ``dt`` [s]."""
    with window(gui, "space_arm") as client:
        model = bb.load("space_arm", client)
        body, loop = model.ids["robot"], model.spec.constraints
        system = bb.attach(body, loop, client, joint_damping=False, dt=dt, integrator="rk4")
        system.set_state(v=np.array([*SPIN, *DRIFT, *RATES]))
        start = system.evaluate()
        last = play(system, DURATION, gui)
        end = system.evaluate()
    angles = np.array([last.position(f"joint_{k}")[-1] for k in range(1, 8)])
    return Errors(
        float(np.abs(angles - REFERENCE).max()),
        change(start.momentum, end.momentum),
        abs(end.energy / start.energy - 1),
        end.largest("metres"),
    )


def change(before: Array, after: Array) -> float:
    """Largest change of angular or linear momentum, each relative to its own size."""
    parts = (slice(0, 3), slice(3, 6))
    return max(
        float(np.linalg.norm(after[p] - before[p]) / np.linalg.norm(before[p])) for p in parts
    )


def filter_change() -> float:
    """Relative change of momentum when one filter makes a random velocity admissible."""
    with bb.load("space_arm") as model:
        v = 0.01 * np.random.default_rng(1).standard_normal(model.system.mechanism.nv)
        before = model.system.evaluate(v=v)
        model.system.set_state(v=v)
        return change(before.momentum, model.system.evaluate().momentum)


def main(gui: bool = False) -> float:
    """Tumble for 80 s; return the largest error of a joint angle [rad]."""
    errors = tumble(0.05, gui)
    print(
        f"joint angles {errors.angles:.1e} rad from the reference; relative drift of momentum "
        f"{errors.momentum:.0e}, energy {errors.energy:.0e}, momentum by one filter "
        f"{filter_change():.0e}; gap {errors.gap:.0e} m"
    )
    return errors.angles


if __name__ == "__main__":
    run(main, __doc__)
