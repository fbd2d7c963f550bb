"""Random robots with loops, gears and motors under PyBullet calls in exact mode, judged.

Robots have floating or fixed bases, inertias that are offset and turned, and limits; every few
steps a program resets joints or the base, moves pivots, changes force limits and motors, takes
constraints away and adds others. Where links are is Bullet's own forward kinematics.

    python benchmarks/drop_in_campaign.py --first 0 --robots 100 --steps 24

With ``--mode filter`` Bullet steps them: gaps are judged, limits and depths are its own. With
``--together`` constraints are of all types, made twice by other frames and types, their frames and
motors are led along functions of time, and loose bodies lie about, to some of which robots are
joined.
"""

import argparse
import math
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pybullet
from _campaign_tables import tell

import bulletbridge as bb
from bulletbridge.drop_in.settings import Mode
from bulletbridge.errors import BulletBridgeError
from bulletbridge.numerics.records import Array

OPEN = 2e-6
"""Gap [m] of a rigid constraint that is let be: Bullet tells poses in single precision."""
BENT, BEYOND = 3.0, 1e-5
"""Crossing of limits that is let be: times the square of the angle of a step, and besides."""
SUNK = 1e-3
"""Depth on the ground that a step may add besides [m]: margins of shapes."""
EVENTS = "joint", "base", "velocity", "pivot", "force", "remove", "add", "motor"
BETWEEN = 6
"""Steps between two events."""
STEPS = 1 / 240, 1 / 240, 1e-3, 1 / 60
LEFT_TO_BULLET = "cannot be stepped exactly"
"""What a warning says of bodies whose limits and contacts are Bullet's."""
LEFT_OPEN = "Bullet's own state stays"
"""What one says in filter mode of loops that cannot be closed for now."""
APART = re.compile(
    r"constraint (\d+) (?:was moved to|is) where no joint brings its bodies"
    r"(?: since constraint ([\d, ]+) was moved)?"
)
"""What one says of a pin that its bodies cannot follow, and of those that opened it."""
OPENING = re.compile(r"constraint (\d+) opens, by")
"""What one says of a constraint that a decision lets open."""
LED = re.compile(r"joint '(?:body\d+/)?(\w+)'[^;]* (?:is passed|past its limit|beyond its limits)")
"""What one says of a joint that is led past its limit; of several bodies with the body's name."""
BULLETS_OWN = re.compile(r"constraints? \[?([\d, ]+)\]? stay Bullet's own")
"""What one says of constraints that are not ours."""
GAPS = re.compile(r"gap ([\d.e+-]+) (?:m|rad)\b")
"""How far an error says that a constraint is open."""
LED_INTO = re.compile(r"'[^']*' and '[^']*' .*into each other")
"""What one says of bodies that are led into each other."""
FREE = 9.0
"""A limit [rad or m] beyond which a joint of these has none."""

Rng = np.random.Generator


def text(values: Array) -> str:
    """As URDF wants numbers."""
    return " ".join(repr(float(x)) for x in values)


def origin(xyz: Array, rpy: Array) -> str:
    """<origin>."""
    return f'<origin xyz="{text(xyz)}" rpy="{text(rpy)}"/>'


def link(rng: Rng, name: str, mass: float, solid: bool) -> str:
    """<link> with an inertia of its own axes and centre, and a ball or a box."""
    moments = np.sort(mass * rng.uniform(0.002, 0.02, 3))
    moments[2] = min(moments[2], 0.98 * (moments[0] + moments[1]))
    tensor = " ".join(f'i{k}{k}="{x!r}"' for k, x in zip("xyz", moments.tolist(), strict=True))
    shape = f'<sphere radius="{rng.uniform(0.03, 0.08)}"/>'
    if rng.random() < 0.4:
        shape = f'<box size="{text(rng.uniform(0.05, 0.15, 3))}"/>'
    place = origin(rng.normal(0, 0.05, 3), np.zeros(3))
    collision = f"<collision>{place}<geometry>{shape}</geometry></collision>" * solid
    return (
        f'<link name="{name}"><inertial>{origin(rng.normal(0, 0.08, 3), rng.uniform(-1.5, 1.5, 3))}'
        f'<mass value="{mass!r}"/><inertia {tensor} ixy="0" ixz="0" iyz="0"/></inertial>'
        f"{collision}</link>"
    )


def robot(rng: Rng) -> str:
    """URDF of a tree of three to eight links, of masses over two and a half decades."""
    parts = [link(rng, "l0", float(10 ** rng.uniform(-0.5, 1)), True)]
    for k in range(1, int(rng.integers(3, 9))):
        mass, limited = float(10 ** rng.uniform(-1.5, 1)), rng.random() < 0.5
        parts.append(link(rng, f"l{k}", mass, rng.random() < 0.6))
        kind = "revolute" if rng.random() < 0.7 else "prismatic"
        lower, upper = (10 ** rng.uniform(-3, 0.2, 2)) if limited else (1e3, 1e3)
        limit = f'<limit lower="{-lower}" upper="{upper}" effort="1e3" velocity="1e3"/>'
        if not limited and kind == "revolute":
            kind, limit = "continuous", ""
        axis, place = rng.normal(0, 1, 3), origin(rng.normal(0, 0.2, 3), rng.uniform(-1.5, 1.5, 3))
        parts.append(
            f'<joint name="j{k}" type="{kind}"><parent link="l{rng.integers(max(0, k - 3), k)}"/>'
            f'<child link="l{k}"/>{place}<axis xyz="{text(axis / np.linalg.norm(axis))}"/>'
            f'{limit}<dynamics damping="0"/></joint>'
        )
    return f'<robot name="random">{"".join(parts)}</robot>'


UPRIGHT = (0.0, 0.0, 0.0, 1.0)
"""A turn that is none."""


class Pin(NamedTuple):
    """A constraint: its number, ends (body, link, point), its force limit, and what it is.

    ``rounded``: its gap where it was made, without one [m]: what Bullet's digits are worth there.
    ``turns`` of the frames at both ends, in axes of the links, and ``axis`` in the frames.
    """

    number: int
    a: tuple[int, int, tuple[float, ...]]
    b: tuple[int, int, tuple[float, ...]]
    max_force: float | None
    rounded: float
    kind: int = pybullet.JOINT_POINT2POINT
    turns: tuple[tuple[float, ...], tuple[float, ...]] = (UPRIGHT, UPRIGHT)
    axis: tuple[float, ...] = (0.0, 0.0, 1.0)


class DropInRun:
    """A robot of a number under a program, judged after every step.

    Args:
        number: From which all of it is made.
        folder: For its URDF.
        mode: Who makes its steps.

    Attributes:
        faults: What was found, with the step and how much it is.
    """

    def __init__(self, number: int, folder: Path, mode: Mode = "exact") -> None:
        self.number, self.folder, self.rng = number, folder, np.random.default_rng([number, 16])
        self.mode: Mode = mode
        self.faults = dict[str, tuple[int, float]]()
        self.pins: list[Pin] = []
        self.geared = False
        self.bullets = self.left_open = False  # what is told to be left to Bullet
        self.unreached = set[int]()  # pins that are told to be moved out of reach
        self.led, self.into = set[str](), False  # joints and bodies that are told to be led on
        self.fastest = 0.0  # rate [rad/s, m/s] after the last step, with which the next one begins
        self.dt, self.ground, self.body, self.joints = float(self.rng.choice(STEPS)), -1, -1, 0
        self.p: Any = bb.BulletClient(pybullet.DIRECT)

    def record(self, steps: int) -> dict[str, Any]:
        """What the run shows: how it ended, after how many steps, and its faults."""
        done, message = 0, ""
        try:
            self._build()
            limits, was = self._limits(), self._positions()
            depth = self._depth()
            for done in range(steps):
                if done and done % BETWEEN == 0:
                    self._act(str(self.rng.choice(EVENTS)))
                    was, depth = self._positions(), self._depth()
                self._lead(done * self.dt)
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    self.p.stepSimulation()
                said = " ".join(str(each.message) for each in told)
                apart = ", ".join(", ".join(found) for found in APART.findall(said))
                apart += ", ".join(["", *BULLETS_OWN.findall(said), *OPENING.findall(said)])
                self.unreached |= {int(number) for number in re.findall(r"\d+", apart)}
                self.bullets |= LEFT_TO_BULLET in said
                self.left_open |= LEFT_OPEN in said
                self.led |= set(LED.findall(said))
                self.into |= LED_INTO.search(said) is not None
                was, depth = self._look(done, limits, was, depth)
        except BulletBridgeError as error:
            message = f"{type(error).__name__}: {error}"
            gaps = [float(gap) for gap in GAPS.findall(message)]
            if gaps and max(gaps) < OPEN:
                self.faults["false abort"] = (done, max(gaps))
        finally:
            self.p.disconnect()
        end = "held" if not message else "told" if done else "refused"
        return {
            "number": self.number,
            "end": end,
            "done": done,
            "message": message,
            "faults": self.faults,
        }

    def _build(self) -> None:
        """The world at its start, in exact mode."""
        p, rng = self.p, self.rng
        p.setGravity(0, 0, -9.81)
        p.setTimeStep(self.dt)
        plane = p.createCollisionShape(pybullet.GEOM_PLANE, planeNormal=[0, 0, 1])
        if rng.random() < 0.7:
            self.ground = p.createMultiBody(0, plane)
        path = self.folder / f"random_{self.number}.urdf"
        path.write_text(robot(rng))
        place, fixed = [0, 0, float(rng.uniform(0.4, 1.0))], bool(rng.random() < 0.35)
        inertias = pybullet.URDF_USE_INERTIA_FROM_FILE
        self.body = p.loadURDF(str(path), place, useFixedBase=fixed, flags=inertias)
        self.joints = p.getNumJoints(self.body)
        for at in range(-1, self.joints):
            rubs = float(rng.uniform(0, 1))
            p.changeDynamics(self.body, at, linearDamping=0, angularDamping=0, lateralFriction=rubs)
        for _ in range(int(rng.integers(1, 3))):
            self._pin()
        if self.joints > 2 and rng.random() < 0.5:
            self._gear()
        for joint in range(self.joints):
            if rng.random() < 0.9:
                self._drive(joint)
        p.setBridgeMode(self.mode)

    def _pin(self) -> None:
        """Pin a link to another one, or to the world, where it is."""
        one, other = (int(k) for k in self.rng.choice(np.arange(-1, self.joints), 2, replace=False))
        in_one = tuple(self.rng.normal(0, 0.1, 3).tolist())
        at = self._point(self.body, one, in_one)
        b = (-1, -1, tuple(at.tolist()))
        if self.rng.random() < 0.75:
            back = self.p.invertTransform(*self._frame(self.body, other))
            b = self.body, other, self.p.multiplyTransforms(*back, at, [0, 0, 0, 1])[0]
        kind = pybullet.JOINT_POINT2POINT
        number = self.p.createConstraint(self.body, one, *b[:2], kind, [0] * 3, in_one, b[2])
        force = float(10 ** self.rng.uniform(0, 3)) if self.rng.random() < 0.35 else None
        if force is not None:
            self.p.changeConstraint(number, maxForce=force)
        rounded = float(np.abs(at - self._point(*b)).max())
        self.pins.append(Pin(number, (self.body, one, in_one), b, force, rounded))

    def _gear(self) -> None:
        """Gear two joints, with a force limit."""
        one, other = (int(k) for k in self.rng.choice(self.joints, 2, replace=False))
        ends = [0, 0, 1], [0] * 3, [0] * 3
        gear = self.p.createConstraint(self.body, one, self.body, other, pybullet.JOINT_GEAR, *ends)
        ratio = float(self.rng.choice([-1, 1]) * self.rng.uniform(0.3, 2))
        force = float(10 ** self.rng.uniform(1, 4))
        self.p.changeConstraint(gear, gearRatio=ratio, maxForce=force)
        self.geared = True

    def _drive(self, joint: int) -> None:
        """Give a joint another motor, or none."""
        force, rate = float(10 ** self.rng.uniform(-1, 2.5)), float(self.rng.normal(0, 2))
        given: dict[str, Any] = {"targetVelocity": rate, "force": force}
        mode, way = pybullet.VELOCITY_CONTROL, self.rng.random()
        if way < 0.33:
            given = {"targetVelocity": 0.0, "force": 0.0}
        elif way < 0.66:
            mode, given = pybullet.POSITION_CONTROL, {"targetPosition": 0.25 * rate, "force": force}
        self.p.setJointMotorControl2(self.body, joint, mode, **given)

    def _act(self, event: str) -> None:
        """What the program does between two steps."""
        p, rng, body = self.p, self.rng, self.body
        joint, which = int(rng.integers(self.joints)), int(rng.integers(max(len(self.pins), 1)))
        if event == "joint":
            shift = float(rng.normal(0, 10 ** rng.uniform(-4, -1)))
            p.resetJointState(body, joint, p.getJointState(body, joint)[0] + shift, rng.normal())
        elif event == "base":
            place, turn = p.getBasePositionAndOrientation(body)
            p.resetBasePositionAndOrientation(
                body, (np.array(place) + rng.normal(0, 0.01, 3)).tolist(), turn
            )
        elif event == "velocity":
            p.resetBaseVelocity(body, *rng.normal(0, 1, (2, 3)).tolist())
        elif event == "motor":
            self._drive(joint)
        elif event == "add":
            self._pin()
        elif self.pins:
            pin = self.pins.pop(which)
            if event == "pivot" and pin.b[0] < 0:
                moved = np.array(pin.b[2]) + rng.normal(0, 10 ** rng.uniform(-4, -2), 3)
                p.changeConstraint(pin.number, moved.tolist())
                pin = pin._replace(b=(-1, -1, tuple(moved.tolist())))
            elif event == "force":
                pin = pin._replace(max_force=float(10 ** rng.uniform(0, 3)))
                p.changeConstraint(pin.number, maxForce=pin.max_force)
            if event == "remove":
                p.removeConstraint(pin.number)
            else:
                self.pins.append(pin)

    def _look(
        self, step: int, limits: list[tuple[float, float]], was: Array, depth: float
    ) -> tuple[Array, float]:
        """Judge a step; positions of joints after it, and depth in the ground.

        What nothing joins is Bullet's, and what a warning says cannot be stepped exactly. What a
        fixed base that moves takes past limits, or into the ground, has to be told.
        """
        places, rates = self._positions(), self._rates()
        now = self._depth()
        if not np.isfinite([places, rates]).all():
            self._blame("not finite", step, math.inf)
            return places, now
        for pin in self.pins:
            gap = self._gap(pin)
            if self._stands(*pin.a[:2]) and self._stands(*pin.b[:2]):
                continue  # where a pivot was moved to nothing can follow
            told = self.left_open or pin.number in self.unreached
            if pin.max_force is None and gap > OPEN + pin.rounded and not told:
                self._blame("silent gap", step, gap)
        if self.mode != "exact" or self.bullets or not (self.pins or self.geared):
            return places, now
        joined = {end[0] for pin in self.pins for end in (pin.a, pin.b)} - {-1} | {self.body}
        bases = [np.abs(self.p.getBaseVelocity(body)).max() for body in joined]
        ends = float(max(1.0, *np.abs(rates), *bases))
        fastest, self.fastest = max(ends, self.fastest), ends
        bent = BENT * (self.dt * fastest) ** 2
        for name, (lower, upper), old, new in zip(self._names(), limits, was, places, strict=True):
            beyond = max(lower - new, new - upper, 0.0) - max(lower - old, old - upper, 0.0)
            limited = lower <= upper and lower > -FREE and name not in self.led
            if limited and beyond > bent + BEYOND:
                self._blame("limit", step, beyond)
        if not self.into and depth - now > bent + SUNK + self._falls():
            self._blame("sinks", step, depth - now)
        return places, now

    def _lead(self, t: float) -> None:
        """What goes along functions of time [s] before each step: nothing."""

    def _falls(self) -> float:
        """How far [m] a step takes bodies that are Bullet's until they touch something: nowhere."""
        return 0.0

    def _gap(self, pin: Pin) -> float:
        """Gap of a constraint along the rows that it has [m or rad]."""
        return float(np.abs(self._point(*pin.a) - self._point(*pin.b)).max())

    def _blame(self, name: str, step: int, size: float) -> None:
        """Note a fault, but for what a step closes after the program has opened it."""
        if name == "not finite" or step % BETWEEN or not step:
            self.faults.setdefault(name, (step, float(size)))

    def _frame(self, body: int, at: int) -> Any:
        """Pose of a link's inertial frame, in which Bullet has pivots; the world's for -1."""
        if body < 0:
            return (0, 0, 0), (0, 0, 0, 1)
        if at < 0:
            return self.p.getBasePositionAndOrientation(body)
        return self.p.getLinkState(body, at, computeForwardKinematics=1)[:2]

    def _point(self, body: int, at: int, place: tuple[float, ...]) -> Array:
        """A link's point (3,) in the world."""
        return np.array(self.p.multiplyTransforms(*self._frame(body, at), place, [0, 0, 0, 1])[0])

    def _stands(self, body: int, at: int) -> bool:
        """Whether that is the world, or a fixed base."""
        return body < 0 or (at < 0 and self.p.getDynamicsInfo(body, -1)[0] == 0.0)

    def _states(self) -> list[Any]:
        return [self.p.getJointState(self.body, joint) for joint in range(self.joints)]

    def _positions(self) -> Array:
        return np.array([state[0] for state in self._states()])

    def _rates(self) -> Array:
        return np.array([state[1] for state in self._states()])

    def _info(self) -> list[Any]:
        return [self.p.getJointInfo(self.body, joint) for joint in range(self.joints)]

    def _names(self) -> list[str]:
        return [each[1].decode() for each in self._info()]

    def _limits(self) -> list[tuple[float, float]]:
        return [each[8:10] for each in self._info()]

    def _depth(self) -> float:
        """The least distance of the robot from the ground, or zero [m].

        A fixed base goes where the program puts it, in Bullet too.
        """
        if self.ground < 0:
            return 0.0
        near = self.p.getClosestPoints(self.ground, self.body, 0.0)
        return min([each[8] for each in near if not self._stands(self.body, each[4])] + [0])


TYPES = (
    pybullet.JOINT_POINT2POINT,
    pybullet.JOINT_FIXED,
    pybullet.JOINT_PRISMATIC,
    pybullet.JOINT_REVOLUTE,
    pybullet.JOINT_SPHERICAL,
    pybullet.JOINT_PLANAR,
)
"""Types of constraints that join frames."""
POINTS = pybullet.JOINT_POINT2POINT, pybullet.JOINT_SPHERICAL
WEAKER = {
    pybullet.JOINT_FIXED: TYPES,
    pybullet.JOINT_REVOLUTE: (pybullet.JOINT_REVOLUTE, *POINTS),
    pybullet.JOINT_PRISMATIC: (pybullet.JOINT_PRISMATIC,),
    pybullet.JOINT_PLANAR: (pybullet.JOINT_PLANAR,),
    **dict.fromkeys(POINTS, POINTS),
}
"""Types that frames of one close too."""


class Led(NamedTuple):
    """A constraint whose frame in the world goes to and fro: numbers of it and its doubles.

    By ``way`` (3,) [m] at most, from where it was, at a ``frequency`` [Hz].
    """

    numbers: tuple[int, ...]
    way: Array
    frequency: float


class TogetherRun(DropInRun):
    """The same with constraints of all types, twice, frames and motors that are led, and bodies."""

    def _build(self) -> None:
        self.loose, self.leads, self.sways = list[int](), list[Led](), dict[int, Array]()
        super()._build()
        p, rng = self.p, self.rng
        for _ in range(int(rng.integers(0, 4))):
            shape = p.createCollisionShape(
                pybullet.GEOM_BOX, halfExtents=rng.uniform(0.03, 0.1, 3).tolist()
            )
            place = [*rng.normal(0, 0.3, 2), float(rng.uniform(0.15, 1.2))]
            body = p.createMultiBody(10 ** rng.uniform(-1.5, 1), shape, -1, place)
            p.changeDynamics(body, -1, linearDamping=0, angularDamping=0)
            self.loose.append(body)
        for joint in range(self.joints):
            if rng.random() < 0.3:
                self.sways[joint] = np.array([*rng.uniform(0.2, 3, 2), 10 ** rng.uniform(-1, 2.5)])
        if self.loose and rng.random() < 0.6:
            self._pin()
        if self.geared and rng.random() < 0.5:
            self._gear()

    def _pin(self) -> None:
        """Join a link to another one, to a loose body or to the world, mostly twice."""
        p, rng = self.p, self.rng
        one, other = (int(k) for k in rng.choice(np.arange(-1, self.joints), 2, replace=False))
        ends = [(self.body, one), (-1, -1)]
        if self.loose and rng.random() < 0.5:
            ends[1] = int(rng.choice(self.loose)), -1
        elif rng.random() < 0.75:
            ends[1] = self.body, other
        axis = rng.normal(0, 1, 3)
        axis /= np.linalg.norm(axis)
        frame = tuple(rng.normal(0, 0.1, 3)), tuple(unit_quaternion(rng))
        kind = int(rng.choice(TYPES, p=[0.35, 0.12, 0.1, 0.23, 0.1, 0.1]))
        made: list[Pin] = [self._join(kind, ends, frame, axis)]
        for _ in range(int(rng.choice([0, 1, 2], p=[0.3, 0.6, 0.1]))):
            again = int(rng.choice(WEAKER[kind]))
            free = kind in (pybullet.JOINT_FIXED, pybullet.JOINT_PRISMATIC, pybullet.JOINT_PLANAR)
            way = rng.normal(0, 0.1, 3)
            way = way if free else (way @ axis) * axis * (kind == pybullet.JOINT_REVOLUTE)
            turn = rotated(frame[1], way)
            made.append(self._join(again, ends, (tuple(frame[0] + turn), frame[1]), axis))
        self.pins += made
        follows = p.getDynamicsInfo(self.body, -1)[0] > 0.0 or self.joints > 4 and kind in POINTS
        if ends[1][0] < 0 and follows and rng.random() < 0.6:
            way = rng.normal(0, 1, 3) * 10 ** rng.uniform(-3, -1.3)
            numbers = tuple(pin.number for pin in made)
            self.leads.append(Led(numbers, way, float(rng.uniform(0.3, 3))))

    def _join(self, kind: int, ends: list[tuple[int, int]], frame: Any, axis: Array) -> Pin:
        """A constraint at a frame of the first of two links, as these are.

        ``axis``: (3,) in axes of the frame.
        """
        p, rng = self.p, self.rng
        at = p.multiplyTransforms(*self._frame(*ends[0]), *frame)
        there = p.multiplyTransforms(*p.invertTransform(*self._frame(*ends[1])), *at)
        in_link = rotated(frame[1], axis).tolist()
        number = p.createConstraint(
            *ends[0], *ends[1], kind, in_link, frame[0], there[0], frame[1], there[1]
        )
        force = float(10 ** rng.uniform(0, 3)) if rng.random() < 0.2 else None
        if force is not None:
            p.changeConstraint(number, maxForce=force)
        a, b = (*ends[0], frame[0]), (*ends[1], there[0])
        pin = Pin(number, a, b, force, 0.0, kind, (frame[1], there[1]), tuple(axis))
        return pin._replace(rounded=self._gap(pin))

    def _lead(self, t: float) -> None:
        """Lead frames in the world, and motors."""
        p, pins = self.p, self.pins
        for led in self.leads:
            w = 2.0 * math.pi * led.frequency
            more = led.way * (math.sin(w * (t + self.dt)) - math.sin(w * t))
            for k, pin in enumerate(pins):
                if pin.number in led.numbers:
                    place = tuple((np.array(pin.b[2]) + more).tolist())
                    p.changeConstraint(pin.number, place, pin.turns[1])
                    pins[k] = pin._replace(b=(-1, -1, place))
        for joint, (size, frequency, force) in self.sways.items():
            p.setJointMotorControl2(
                self.body,
                joint,
                pybullet.VELOCITY_CONTROL,
                targetVelocity=size * math.sin(2.0 * math.pi * frequency * t),
                force=force,
            )

    def _gap(self, pin: Pin) -> float:
        """By Bullet's poses: of points, lines and planes, and turns as sines."""
        p, axis = self.p, np.array(pin.axis)
        a, b = (
            p.multiplyTransforms(*self._frame(*end[:2]), end[2], turn)
            for end, turn in zip((pin.a, pin.b), pin.turns, strict=True)
        )
        apart = np.array(a[0]) - np.array(b[0])
        n, m = rotated(a[1], axis), rotated(b[1], axis)
        along = float(apart @ n)
        turned = np.array(p.getDifferenceQuaternion(a[1], b[1])[:3]) * 2.0
        found = {
            pybullet.JOINT_FIXED: (apart, turned),
            pybullet.JOINT_PRISMATIC: (apart - along * n, turned),
            pybullet.JOINT_REVOLUTE: (apart, np.cross(n, m)),
            pybullet.JOINT_PLANAR: (np.array([along]), np.cross(n, m)),
        }.get(pin.kind, (apart,))
        return float(max(np.abs(part).max() for part in found))

    def _falls(self) -> float:
        """Those that nothing joins: Bullet sees a ball or box when it is inside, as natively."""
        joined = {end[0] for pin in self.pins for end in (pin.a, pin.b)}
        free = [self.p.getBaseVelocity(body)[0] for body in self.loose if body not in joined]
        return self.dt * max((float(np.linalg.norm(v)) for v in free), default=0.0)

    def _depth(self) -> float:
        """Of loose bodies, too, in each other and the robot."""
        p, least = self.p, super()._depth()
        for k, body in enumerate(self.loose):
            for other in (self.body, *self.loose[:k]):
                near = p.getClosestPoints(body, other, 0.0)
                least = min([each[8] for each in near] + [least])
        return least


def unit_quaternion(rng: Rng) -> Array:
    """A turn."""
    x = rng.normal(0, 1, 4)
    return np.asarray(x / np.linalg.norm(x))


def rotated(turn: tuple[float, ...], x: Array) -> Array:
    """A vector (3,) turned by a quaternion."""
    return np.array(pybullet.multiplyTransforms((0, 0, 0), turn, x.tolist(), (0, 0, 0, 1))[0])


def main() -> None:
    """Run robots of some numbers, print those in which something was found, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="number of the first robot")
    parser.add_argument("--robots", type=int, default=100)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--mode", choices=("exact", "filter"), default="exact")
    parser.add_argument("--together", action="store_true", help="see above")
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.robots)
    with tempfile.TemporaryDirectory() as folder:
        make = TogetherRun if given.together else DropInRun
        runs = (make(number, Path(folder), given.mode) for number in numbers)
        tell("robots", (run.record(given.steps) for run in runs))


if __name__ == "__main__":
    main()
