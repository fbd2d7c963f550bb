"""Two arms carry one bar round a circle and squeeze it: motion and internal force apart.

The arms are two_arms of the bundled models: 14 motors, 8 freedoms, so that the six components of
the grasp's wrench can be chosen while they move. Where the bar is and whether the grasp slips is
read from Bullet's link states.
"""

from typing import NamedTuple

import numpy as np
import pybullet
from _path import closed_path
from _show import play, run, show, window
from numpy.typing import NDArray
from two_arms import BAR_END, BAR_WEIGHT, FLANGE, SQUEEZE, relative_pose

import bulletbridge as bb

MIDDLE = bb.Frame("bar", (0, 0, 0.2))
RADIUS, PERIOD = 0.05, 2.0  # [m], [s]
DT, DURATION, SETTLED = 2.5e-3, 2.5, 1.25  # [s]
K_P, K_D = 12.0, 30.0  # [1/s]

Array = NDArray[np.float64]


class Errors(NamedTuple):
    """Largest of each; the path's once the error of the start has decayed."""

    wrench: float  # [N or N m]
    path: float  # of the bar's middle [m]
    slip: float  # of the grasp [m or 1]


def measure(gui: bool = False, dt: float = DT) -> Errors:
    """Carry for a circle and a quarter, from rest."""
    wrenches, path, slip = list[float](), list[float](), list[float]()
    with window(gui, "two_arms") as client:
        model = bb.load("two_arms", client, dt=dt, integrator="semi_implicit_euler")
        body, system = model.ids["robot"], model.system
        show(system, gui)
        count = pybullet.getNumJoints(body, client)
        named = [pybullet.getJointInfo(body, k, client)[12].decode() for k in range(count)]
        bar, right = named.index("bar"), named.index(FLANGE.link)
        grasped = relative_pose(body, client, bar, right)
        start = system.kinematics().point(MIDDLE)

        def circle(t: float) -> Array:
            angle = 2 * np.pi * t / PERIOD
            return start.p_W + RADIUS * np.array([0.0, np.sin(angle), 1.0 - np.cos(angle)])

        def wanted() -> Array:  # on the right arm: the squeeze, and half of the bar
            force = SQUEEZE * system.kinematics().point(BAR_END).R_W[:, 2]
            return np.array([0.0, 0.0, 0.0, *(force - [0.0, 0.0, BAR_WEIGHT / 2])])

        still = ("left_3", "right_3")
        held = {name: float(system.q[system.mechanism.joint(name).q][0]) for name in still}
        motion = closed_path(system, MIDDLE, circle, start.R_W, held, PERIOD)
        law = bb.Tracking(
            bb.plant_of(system),
            motion,
            K_P,
            K_D,
            lambda t: bb.multipliers(system, {"grasp": wanted()}),
        )
        while system.t < DURATION:
            system.tau[:] = law(system.q, system.v, system.t)
            grasp = system.reactions()["grasp"]
            found = np.concatenate([grasp.torque, grasp.force])
            wrenches.append(float(np.abs(found - wanted()).max()))
            play(system, dt, gui)
            slip.append(float(np.abs(relative_pose(body, client, bar, right) - grasped).max()))
            if system.t > SETTLED:
                path.append(float(np.linalg.norm(middle(body, bar, client) - circle(system.t))))
    return Errors(max(wrenches), max(path), max(slip))


def middle(body: int, bar: int, client: int) -> Array:
    """Middle of the bar [m] as Bullet sees it: its centre of mass."""
    return np.array(pybullet.getLinkState(body, bar, physicsClientId=client)[0])


def main(gui: bool = False) -> float:
    """Carry the bar round; return the largest error of the grasp's wrench [N or N m]."""
    found = measure(gui)
    print(f"wrench {found.wrench:.0e} N, path {found.path:.1e} m, slip {found.slip:.0e} m")
    return found.wrench


if __name__ == "__main__":
    run(main, __doc__)
