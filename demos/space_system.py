"""A station's boom carries a two-armed manipulator that takes a payload, docks it and lets go.

Nothing is read again when the connections change: the mount is in series with the boom, both grips
make a loop through the payload, the dock one through the station. Each connection is an impact at
what speed things happen to have; momentum, summed up from Bullet's link states, stays.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pybullet
from _show import play, run, window
from numpy.typing import NDArray

import bulletbridge as bb

Array = NDArray[np.float64]

MODEL = Path(__file__).parent / "space_system" / "space_system.loops.yaml"
WELD, HAND, DT = bb.JointModel.WELD, (0.0, 0.0, 0.2), 2.5e-3  # HAND [m], DT [s]
BOX = bb.Frame("payload/box")
LEFT, RIGHT, DOCK = (
    bb.LoopJoint("left", WELD, bb.Frame("manipulator/left_5", HAND), BOX),
    bb.LoopJoint("right", WELD, bb.Frame("manipulator/right_5", HAND), BOX),
    bb.LoopJoint("dock", WELD, bb.Frame("station/port", (1.7, 0.0, 0.0)), BOX),
)
PLAN = ((LEFT, 1.0), (RIGHT, 1.5), (DOCK, 1.0), ("right", 1.5))
"""What is connected, or let go, and for how long [s] the system then moves."""


class Seen(NamedTuple):
    """What happened along the way."""

    momentum: float  # largest change, relative to the largest of a link
    gap: float  # largest [m or rad]
    lost: list[float]  # kinetic energy of the impacts [J]
    freedoms: list[int]


def momentum(ids: list[int], client: int) -> tuple[Array, float]:
    """Angular about the origin and linear (6,), by Bullet; and the largest that a link has."""
    parts = list[Array]()
    for body in ids:
        position, turn = pybullet.getBasePositionAndOrientation(body, client)
        links = [(position, turn, *pybullet.getBaseVelocity(body, client))]
        for k in range(pybullet.getNumJoints(body, client)):
            state = pybullet.getLinkState(body, k, 1, 1, client)
            links.append((state[0], state[1], state[6], state[7]))
        for k, (position, turn, velocity, spin) in enumerate(links, -1):
            mass, _, moments, *_ = pybullet.getDynamicsInfo(body, k, client)
            R = np.reshape(pybullet.getMatrixFromQuaternion(turn), (3, 3))
            linear = mass * np.array(velocity)
            angular = R @ (moments * (R.T @ spin)) + np.cross(position, linear)
            parts.append(np.concatenate([angular, linear]))
    return np.sum(parts, axis=0), float(np.abs(parts).max())


def measure(gui: bool = False) -> Seen:
    """Carry out the plan, from a slow drift of everything."""
    with window(gui, str(MODEL)) as client:
        model = bb.load(MODEL, client, dt=DT, integrator="rk4")
        system, ids = model.system, list(model.ids.values())
        rng = np.random.default_rng(4)
        system.set_state(v=0.03 * rng.standard_normal(system.mechanism.nv))
        system.write()
        start, size = momentum(ids, client)
        changes, gaps, lost, freedoms = list[float](), list[float](), list[float](), [system.dof]

        def look() -> None:
            changes.append(float(np.abs(momentum(ids, client)[0] - start).max()) / size)
            gaps.extend(system.evaluate().largest(unit) for unit in ("metres", "radians"))

        play(system, 1.0, gui)
        for change, duration in PLAN:
            look()
            if isinstance(change, str):
                system.disconnect(change)
            else:
                lost.append(system.connect(change, as_is=True).energy_lost)
            look()
            freedoms.append(system.dof)
            play(system, duration, gui)
        look()
    return Seen(max(changes), max(gaps), lost, freedoms)


def main(gui: bool = False) -> float:
    """Grip, grip, dock and let go; return the relative change of momentum."""
    seen = measure(gui)
    joules = ", ".join(f"{1e3 * energy:.0f} mJ" for energy in seen.lost)
    print(
        f"momentum changes by {seen.momentum:.0e} of the largest of a link; gap {seen.gap:.0e}; "
        f"freedoms {', '.join(map(str, seen.freedoms))}; the impacts take {joules}"
    )
    return seen.momentum


if __name__ == "__main__":
    run(main, __doc__)
