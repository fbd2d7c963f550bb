"""Programs as users of PyBullet write them: an arm with a gripper, a Stewart platform, a delta.

Each runs on Bullet alone, in filter mode and in exact mode. What a height and a force should be
follows from geometry and from virtual work.
"""

from typing import NamedTuple
from xml.etree import ElementTree as Xml

import numpy as np
import pybullet
import pytest
from pybullet_utils.bullet_client import BulletClient as Native
from scipy.spatial.transform import Rotation
from support.grippers import FOLLOWERS

import bulletbridge as bb
from bulletbridge.models.bundled import find

G, DT = 9.81, 1 / 240
FLAGS = pybullet.URDF_USE_INERTIA_FROM_FILE
MODES = (None, "filter", "exact")
POINT, GEAR = pybullet.JOINT_POINT2POINT, pybullet.JOINT_GEAR
CLOSED = 1e-12


def connected(mode):
    """A client of a mode, or Bullet's own."""
    client = (
        Native(pybullet.DIRECT) if mode is None else bb.BulletClient(pybullet.DIRECT, mode=mode)
    )
    client.setTimeStep(DT)
    client.setGravity(0, 0, -G)
    return client


def numbered(client, body):
    """Joints by name; a link goes by the number of its joint."""
    return {client.getJointInfo(body, k)[1].decode(): k for k in range(client.getNumJoints(body))}


def in_inertial(client, body, link, point):
    """A point of a link's frame in its inertial one, where createConstraint wants it."""
    info = client.getDynamicsInfo(body, link)
    return Rotation.from_quat(info[4]).inv().apply(np.array(point) - info[3]).tolist()


def world_point(client, body, link, point):
    """Where a point of a link's inertial frame is, in double precision."""
    state = client.getLinkState(body, link, computeForwardKinematics=1)
    return np.array(state[0]) + Rotation.from_quat(state[1]).apply(point)


def potential(client, body):
    """Energy [J] of a robot's weight."""
    total = 0.0
    for link in range(client.getNumJoints(body)):
        mass = client.getDynamicsInfo(body, link)[0]
        total += mass * G * client.getLinkState(body, link, computeForwardKinematics=1)[0][2]
    return total


class Loop(NamedTuple):
    """A point of one link on a point of another, in their inertial frames."""

    number: int
    parent: int
    child: int
    pivots: tuple[list[float], list[float]]


class Machine:
    """A parallel robot closed by createConstraint, its drives held by position control."""

    def __init__(self, mode, model, joined, drives, force):
        self.p = connected(mode)
        self.p.setPhysicsEngineParameter(numSolverIterations=200)
        path = find(model).with_name(f"{model}.urdf")
        self.body = self.p.loadURDF(str(path), useFixedBase=True, flags=FLAGS)
        links = {
            self.p.getJointInfo(self.body, k)[12].decode(): k
            for k in range(self.p.getNumJoints(self.body))
        }
        joints = numbered(self.p, self.body)
        for joint in joints.values():
            if self.p.getJointInfo(self.body, joint)[2] == pybullet.JOINT_SPHERICAL:
                self.p.setJointMotorControlMultiDof(
                    self.body, joint, pybullet.POSITION_CONTROL, [0, 0, 0, 1],
                    targetVelocity=[0, 0, 0], positionGain=0, velocityGain=0, force=[0, 0, 0],
                )  # fmt: skip
            else:
                self.p.setJointMotorControl2(self.body, joint, pybullet.VELOCITY_CONTROL, force=0)
        self.drives = [joints[name] for name in drives]
        self.force, self.loops, self.largest = force, [], 0.0
        for (one, at), (other, there) in joined:
            ends = links[one], links[other]
            pivots = tuple(
                in_inertial(self.p, self.body, link, point)
                for link, point in zip(ends, (at, there), strict=True)
            )
            number = self.p.createConstraint(
                self.body, ends[0], self.body, ends[1], POINT, [0, 0, 0], *pivots
            )
            self.p.changeConstraint(number, maxForce=1e5)
            self.loops.append(Loop(number, *ends, pivots))

    def run(self, start, end, steps):
        """Bring all drives from one position to another, and wait there twice as long."""
        for n in range(3 * steps):
            target = start + (end - start) * min(n / steps, 1.0)
            for drive in self.drives:
                self.p.setJointMotorControl2(
                    self.body, drive, pybullet.POSITION_CONTROL, target, force=self.force
                )
            self.p.stepSimulation()
            self.largest = max(self.largest, self.gap())

    def gap(self):
        """Largest distance between the points of a loop [m]."""
        return max(
            np.linalg.norm(
                world_point(self.p, self.body, loop.parent, loop.pivots[0])
                - world_point(self.p, self.body, loop.child, loop.pivots[1])
            )
            for loop in self.loops
        )

    def positions(self):
        """Of the drives."""
        return np.array([self.p.getJointState(self.body, drive)[0] for drive in self.drives])

    def efforts(self):
        """What the drives exert."""
        return np.array([self.p.getJointState(self.body, drive)[3] for drive in self.drives])

    def link_height(self, name):
        """Height of a link's frame [m]."""
        link = next(
            k for k in range(self.p.getNumJoints(self.body))
            if self.p.getJointInfo(self.body, k)[12].decode() == name
        )  # fmt: skip
        return world_point(
            self.p, self.body, link, in_inertial(self.p, self.body, link, [0, 0, 0])
        )[2]


def constraints_of(model):
    """What a bundled model's balls join: links with points."""
    with bb.load(model) as loaded:
        return [
            ((c.a.link, c.a.xyz), (c.b.link, c.b.xyz)) for c in loaded.system.constraints
            if isinstance(c, bb.LoopJoint)
        ]  # fmt: skip


def lift(mode, model, drives, force, ends):
    """Run a machine from a start to two positions near each other.

    Returns:
        Its largest gap [m]; of both positions height of the platform [m], efforts [N or N m],
        potential energy [J] and positions of the drives [rad or m].
    """
    at, *goals = ends
    machine = Machine(mode, model, constraints_of(model), drives, force)
    for drive in machine.drives:
        machine.p.resetJointState(machine.body, drive, at)
    found = []
    for end in goals:
        machine.run(at, end, 60)
        at = end
        found.append(
            (
                machine.link_height("platform"),
                machine.efforts(),
                potential(machine.p, machine.body),
                machine.positions(),
            )
        )
    return machine.largest, found


def leg_height(extension):
    """Of the platform [m] when all legs are longer by this: 3 m and 1 m circles, 2 m at first."""
    across = 2.354357055062**2 + 0.635186281025**2
    return np.sqrt((np.sqrt(across + 4.0) + extension) ** 2 - across)


def hanging_height(angle):
    """Of the platform [m] under arms of 0.3 m on a circle of 0.2 m, with rods of 0.6 m."""
    across = 0.2 + 0.3 * np.cos(angle) - 0.07
    return -0.3 * np.sin(angle) - np.sqrt(0.36 - across**2)


MACHINES = {
    "stewart": ([f"leg{k}" for k in range(6)], 1e5, (0.0, 0.3, 0.32), leg_height),
    "delta": ([f"motor_{k}" for k in (1, 2, 3)], 100.0, (0.4, 0.5, 0.52), hanging_height),
}


@pytest.mark.parametrize("model", MACHINES)
@pytest.mark.parametrize("mode", MODES)
def test_a_parallel_robot_is_moved_by_its_drives(mode, model):
    """All drives alike: the platform goes straight up or down.

    What the drives exert does the work that the weights take, by the trapezoid's rule between two
    positions: to the square of the way between them.
    """
    drives, force, ends, height = MACHINES[model]
    gap, found = lift(mode, model, drives, force, ends)
    assert gap > 1e-6 if mode is None else gap < CLOSED
    close = 1e-9 if mode == "exact" else 1e-4
    for z, _, _, positions in found:
        assert z == pytest.approx(height(positions.mean()), abs=close)
    (_, before, low, start), (_, after, high, end) = found
    work = float((before + after) / 2 @ (end - start))
    assert work == pytest.approx(high - low, rel=2e-4)


ARM = (  # mass [kg], length [m], axis of the joint below: a UR5's, its wrist straightened
    (3.7, 0.089, "0 0 1"),
    (8.4, 0.425, "0 1 0"),
    (2.3, 0.392, "0 1 0"),
    (1.2, 0.109, "0 1 0"),
    (1.2, 0.095, "1 0 0"),
    (0.25, 0.082, "0 0 1"),
)
READY = (0.3, 0.3, 1.6, np.pi - 1.9, 0.0, 0.0)
"""Angles [rad] at which the hand points down."""
HIGHER = (0.3, 0.2, 1.6, np.pi - 1.8, 0.0, 0.0)
SIDE, MASS = 0.04, 0.1
"""Of the cube [m], [kg]."""


def arm_with_gripper(path):
    """A URDF of six links in the sizes of a UR5, with the bundled gripper at its end."""
    robot = Xml.Element("robot", name="arm")
    Xml.SubElement(robot, "link", name="world")
    before, reach = "world", 0.0
    for n, (mass, length, axis) in enumerate(ARM):
        link = Xml.SubElement(robot, "link", name=f"link{n}")
        inertial = Xml.SubElement(link, "inertial")
        Xml.SubElement(inertial, "origin", xyz=f"0 0 {length / 2}")
        Xml.SubElement(inertial, "mass", value=str(mass))
        across, along = mass * (length**2 / 12 + 0.002), mass * 0.002
        Xml.SubElement(
            inertial, "inertia", ixx=str(across), iyy=str(across), izz=str(along), ixy="0", ixz="0",
            iyz="0",
        )  # fmt: skip
        joint = Xml.SubElement(robot, "joint", name=f"arm{n}", type="revolute")
        Xml.SubElement(joint, "parent", link=before)
        Xml.SubElement(joint, "child", link=f"link{n}")
        Xml.SubElement(joint, "origin", xyz=f"0 0 {reach}")
        Xml.SubElement(joint, "axis", xyz=axis)
        Xml.SubElement(joint, "limit", lower="-6", upper="6", effort="150", velocity="3")
        before, reach = f"link{n}", length
    hand = Xml.parse(find("mimic_gripper")).getroot()
    for part in hand:
        if part.get("name") == "mount":
            part.find("parent").set("link", before)
            Xml.SubElement(part, "origin", xyz=f"0 0 {reach}")
        if part.get("name") != "world":
            robot.append(part)
    Xml.ElementTree(robot).write(path)
    return path


class Grasp(NamedTuple):
    """What came of the program."""

    gears: float  # largest error [rad]
    lifted: float  # [m]
    hand: float  # by which the hand rose [m]
    held: np.ndarray  # (3,) force of all contacts on the cube at the end [N]
    efforts: np.ndarray  # (6,) of the arm's motors at the end [N m]
    expected: np.ndarray  # (6,) by inverse dynamics and the cube's weight
    grip: float  # least torque of the gripper's drive while it holds [N m]


def grasp(mode, path):
    """Close the fingers on a cube, lift it by a tenth of a radian at the shoulder, and wait."""
    p = connected(mode)
    p.setPhysicsEngineParameter(numSolverIterations=200)
    robot = p.loadURDF(str(path), useFixedBase=True, flags=FLAGS)
    joints = numbered(p, robot)
    arm = [joints[f"arm{n}"] for n in range(6)]
    for joint, angle in zip(arm, READY, strict=True):
        p.resetJointState(robot, joint, angle)
    for name, multiplier in FOLLOWERS.items():
        gear = p.createConstraint(
            robot, joints["left_driver"], robot, joints[name], GEAR, [0, 1, 0], [0, 0, 0], [0, 0, 0]
        )
        p.changeConstraint(gear, gearRatio=-multiplier, maxForce=100, erp=1)
        p.setJointMotorControl2(robot, joints[name], pybullet.VELOCITY_CONTROL, force=0)
    for name in (*FOLLOWERS, "left_driver"):
        p.changeDynamics(robot, joints[name], lateralFriction=1.0)
    hand = p.getLinkState(robot, joints["mount"], computeForwardKinematics=1)
    at = np.array(hand[4]) + Rotation.from_quat(hand[5]).apply([0, 0, 0.135])
    half = [SIDE / 2] * 3
    box = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=half)
    cube = p.createMultiBody(MASS, box, basePosition=at.tolist(), baseOrientation=hand[5])
    p.changeDynamics(cube, -1, lateralFriction=1.0)
    top = at - [0, 0, SIDE / 2 + 0.01]
    post = p.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.012, 0.012, 0.01])
    p.createMultiBody(0, post, basePosition=top.tolist())
    worst, start, grip = 0.0, None, np.inf
    for n in range(600):
        share = min(max((n - 180) / 180, 0.0), 1.0)
        targets = np.array(READY) + share * (np.array(HIGHER) - READY)
        p.setJointMotorControlArray(
            robot, arm, pybullet.POSITION_CONTROL, targets.tolist(), forces=[150] * 6
        )
        p.setJointMotorControl2(
            robot, joints["left_driver"], pybullet.POSITION_CONTROL, 0.8, force=0.6, maxVelocity=1
        )
        p.stepSimulation()
        driver = p.getJointState(robot, joints["left_driver"])[0]
        for name, multiplier in FOLLOWERS.items():
            off = p.getJointState(robot, joints[name])[0] - multiplier * driver
            worst = max(worst, abs(off))
        if n >= 400:
            grip = min(grip, p.getJointState(robot, joints["left_driver"])[3])
        if n == 179:
            start = p.getBasePositionAndOrientation(cube)[0][2], hand_height(p, robot, joints)
    held = np.zeros(3)
    for contact in p.getContactPoints(robot, cube):  # directions point towards the robot
        normal, first, second = (np.array(contact[k]) for k in (7, 11, 13))
        held -= contact[9] * normal + contact[10] * first + contact[12] * second
    moving = [k for k in range(p.getNumJoints(robot)) if p.getJointInfo(robot, k)[2] == 0]
    q = [p.getJointState(robot, k)[0] for k in moving]
    still = [0.0] * len(q)
    weight = p.calculateInverseDynamics(robot, q, still, still)
    where = p.getBasePositionAndOrientation(cube)[0]
    tool = p.getLinkState(robot, joints["mount"], computeForwardKinematics=1)
    local = Rotation.from_quat(tool[5]).inv().apply(np.array(where) - tool[4]).tolist()
    J = np.array(p.calculateJacobian(robot, joints["mount"], local, q, still, still)[0])
    expected = np.array(weight) + MASS * G * J[2]
    places = [moving.index(k) for k in arm]
    return Grasp(
        worst,
        where[2] - start[0],
        hand_height(p, robot, joints) - start[1],
        held,
        np.array([p.getJointState(robot, k)[3] for k in arm]),
        expected[places],
        grip,
    )


def hand_height(p, robot, joints):
    """Of the gripper's base [m]."""
    return p.getLinkState(robot, joints["mount"], computeForwardKinematics=1)[0][2]


@pytest.mark.parametrize("mode", MODES)
def test_an_arm_grasps_by_friction_and_lifts(tmp_path, mode):
    """Five gears with an erp and a maxForce close two fingers on a cube of 4 cm and 0.1 kg.

    The hand rises by what its links' cosines change; the cube with it, but for what creeps.
    """
    found = grasp(mode, arm_with_gripper(tmp_path / "arm.urdf"))
    assert found.gears > 1e-3 if mode is None else found.gears < CLOSED
    rise = 0.425 * (np.cos(0.2) - np.cos(0.3)) + 0.392 * (np.cos(1.8) - np.cos(1.9))
    assert found.hand == pytest.approx(rise, abs=1e-5)
    assert found.lifted == pytest.approx(rise, abs=3e-5 if mode == "exact" else 3e-4)
    assert np.abs(found.held - [0, 0, MASS * G]).max() < 1e-4
    assert np.abs(found.efforts - found.expected).max() < 1e-4
    assert found.grip == pytest.approx(0.6, rel=1e-9)  # what cannot get there pushes all it can
