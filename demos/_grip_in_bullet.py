"""The hand of demos/gripper.py in Bullet alone, closed by Bullet's own constraints."""

import math

import numpy as np
import pybullet
from numpy.typing import NDArray

from bulletbridge.models.load import LoadedModel

Array = NDArray[np.float64]
MU, G = 0.5, 9.81  # between pads and bolt; [m/s²]
SPRING_TIP, PIN = (-0.0376, 0.0, 0.043), (0.0179, 0.0, 0.0065)  # ends of a loop, as in its file [m]


def set_friction(client: int) -> None:
    """Coefficients whose products are MU."""
    for n in range(pybullet.getNumBodies(client)):
        body = pybullet.getBodyUniqueId(n, client)
        for k in range(-1, pybullet.getNumJoints(body, client)):
            pybullet.changeDynamics(body, k, lateralFriction=math.sqrt(MU), physicsClientId=client)


def links_of(body: int, client: int) -> dict[str, int]:
    """Bullet's numbers of links by name."""
    count = pybullet.getNumJoints(body, client)
    return {pybullet.getJointInfo(body, k, client)[12].decode(): k for k in range(count)}


def creep_in_bullet(
    model: LoadedModel, torque: float, duration: float, iterations: int = 50
) -> tuple[float, float]:
    """How far the bolt moves in Bullet alone from where we hold it, and how far its loops open [m].

    As PyBullet's users build it: a fixed hand, point constraints, a gear and one motor. Bullet
    takes 50 iterations unless told otherwise.
    """
    ours, client = model.client, pybullet.connect(pybullet.DIRECT)
    try:
        pybullet.setGravity(0, 0, -G, physicsClientId=client)
        pybullet.setTimeStep(model.system.dt, physicsClientId=client)
        pybullet.setPhysicsEngineParameter(numSolverIterations=iterations, physicsClientId=client)
        ids = dict[str, int]()
        for spec in model.spec.bodies:
            ids[spec.name] = pybullet.loadURDF(
                str(spec.urdf),
                useFixedBase=spec.name != "bolt",
                flags=pybullet.URDF_USE_INERTIA_FROM_FILE,
                physicsClientId=client,
            )
            at = pybullet.getBasePositionAndOrientation(model.ids[spec.name], ours)
            pybullet.resetBasePositionAndOrientation(ids[spec.name], *at, client)
        hand, bolt = ids["hand"], ids["bolt"]
        for k in range(pybullet.getNumJoints(hand, client)):
            angle = pybullet.getJointState(model.ids["hand"], k, ours)[0]
            pybullet.resetJointState(hand, k, angle, physicsClientId=client)
            pybullet.setJointMotorControl2(
                hand, k, pybullet.VELOCITY_CONTROL, force=0, physicsClientId=client
            )
        set_friction(client)
        close_in_bullet(hand, client)
        driver = links_of(hand, client)["left_driver"]
        before, gap = pybullet.getBasePositionAndOrientation(bolt, client)[0], 0.0
        for _ in range(round(duration / model.system.dt)):
            pybullet.setJointMotorControl2(
                hand,
                driver,
                pybullet.VELOCITY_CONTROL,
                targetVelocity=1.0,
                force=torque,
                physicsClientId=client,
            )
            pybullet.stepSimulation(physicsClientId=client)
            gap = max(gap, gap_in_bullet(hand, client))
        after = pybullet.getBasePositionAndOrientation(bolt, client)[0]
        return float(np.linalg.norm(np.subtract(after, before))), gap
    finally:
        pybullet.disconnect(client)


def close_in_bullet(hand: int, client: int) -> None:
    """Bullet's own constraints for the two loops and the gears."""
    names = links_of(hand, client)
    for side in ("left", "right"):
        ends = names[f"{side}_spring_link"], names[f"{side}_finger"]
        points = list[list[float]]()
        for point, k in zip((SPRING_TIP, PIN), ends, strict=True):
            centre, axes = pybullet.getDynamicsInfo(hand, k, client)[3:5]  # Bullet counts in these
            R = np.reshape(pybullet.getMatrixFromQuaternion(axes), (3, 3))
            points.append((R.T @ np.subtract(point, centre)).tolist())
        pybullet.createConstraint(
            hand,
            ends[0],
            hand,
            ends[1],
            pybullet.JOINT_POINT2POINT,
            (0, 0, 0),
            *points,
            physicsClientId=client,
        )
    gear = pybullet.createConstraint(
        hand,
        names["left_driver"],
        hand,
        names["right_driver"],
        pybullet.JOINT_GEAR,
        (0, 1, 0),
        (0, 0, 0),
        (0, 0, 0),
        physicsClientId=client,
    )
    pybullet.changeConstraint(gear, gearRatio=-1, erp=0.8, maxForce=1e4, physicsClientId=client)


def gap_in_bullet(hand: int, client: int) -> float:
    """Largest distance of the ends of a loop [m]."""
    names, gaps = links_of(hand, client), list[float]()
    for side in ("left", "right"):
        ends = list[Array]()
        for name, point in (("spring_link", SPRING_TIP), ("finger", PIN)):
            k = names[f"{side}_{name}"]
            found = pybullet.getLinkState(
                hand, k, computeForwardKinematics=True, physicsClientId=client
            )
            R = np.reshape(pybullet.getMatrixFromQuaternion(found[5]), (3, 3))
            ends.append(found[4] + R @ np.array(point))
        gaps.append(float(np.linalg.norm(ends[1] - ends[0])))
    return max(gaps)
