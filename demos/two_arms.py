"""Two arms hold one bar still and squeeze it: the grasp must report the squeeze that was chosen.

Torques come from virtual work, in Bullet's own inverse dynamics and Jacobians: each arm carries
its weight and its end of a wrench that is written down below. Then nothing may move, and the only
wrench that the weld can transmit is the chosen one. The arms fall into the pose first.
"""

import numpy as np
import pybullet
from _show import play, run, window
from numpy.typing import NDArray

import bulletbridge as bb

BAR_END, FLANGE = bb.Frame("bar", (0, 0, 0.4)), bb.Frame("right_7", (0, 0, 0.045))
SQUEEZE, BAR_WEIGHT = 20.0, 1.0 * 9.81  # [N], [N]: the right arm carries half of it
TWIST = (0.5, -1.0, 0.3)  # [N m]

Array = NDArray[np.float64]


def relative_pose(body: int, client: int, a: int, b: int) -> Array:
    """Position [m] and rotation of link b in link a, (12,), as Bullet sees them."""
    states = [pybullet.getLinkState(body, k, physicsClientId=client) for k in (a, b)]
    Ra, Rb = (np.reshape(pybullet.getMatrixFromQuaternion(s[1]), (3, 3)) for s in states)
    return np.concatenate([Ra.T @ np.subtract(states[1][0], states[0][0]), (Ra.T @ Rb).ravel()])


def measure(gui: bool = False) -> tuple[float, float, float]:
    """Error of the wrench [N or N m], speed after 0.2 s [rad/s], slip in the grasp [m or 1]."""
    with window(gui, "two_arms") as client:
        model = bb.load("two_arms", client, dt=1e-3)
        body, system = model.ids["robot"], model.system
        joints = pybullet.getNumJoints(body, client)
        named = [pybullet.getJointInfo(body, k, client)[12].decode() for k in range(joints)]
        bar, right = named.index(BAR_END.link), named.index(FLANGE.link)
        start = relative_pose(body, client, bar, right)
        play(system, 0.5, gui)

        q, rest = system.q.tolist(), [0.0] * system.mechanism.nv
        weight = pybullet.calculateInverseDynamics(body, q, rest, rest, physicsClientId=client)
        arms = [(bar, BAR_END.xyz), (right, FLANGE.xyz)]
        rows_bar, rows_right = (
            np.vstack(pybullet.calculateJacobian(body, link, at, q, rest, rest, client))
            for link, at in arms
        )
        along = system.kinematics().point(BAR_END).R_W[:, 2]
        force = SQUEEZE * along - [0.0, 0.0, BAR_WEIGHT / 2]  # on the right arm
        wrench = np.concatenate([force, TWIST])
        system.set_state(v=np.zeros(system.mechanism.nv))
        system.tau[:] = weight - (rows_right - rows_bar).T @ wrench
        grasp = system.reactions()["grasp"]
        error = float(np.abs(np.concatenate([grasp.force, grasp.torque]) - wrench).max())
        play(system, 0.2, gui)
        slip = float(np.abs(relative_pose(body, client, bar, right) - start).max())
    return error, float(np.abs(system.v).max()), slip


def main(gui: bool = False) -> float:
    """Fall for half a second, then hold; return the error of the grasp's wrench [N or N m]."""
    error, speed, slip = measure(gui)
    print(f"wrench {error:.0e} N from the chosen one, speed {speed:.0e} rad/s, slip {slip:.0e} m")
    return error


if __name__ == "__main__":
    run(main, __doc__)
