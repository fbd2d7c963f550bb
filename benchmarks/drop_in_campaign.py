"""Random robots with loops, gears and motors under PyBullet calls in exact mode, judged.

Robots have floating or fixed bases, inertias that are offset and turned, and limits; every few
steps a program resets joints or the base, moves pivots, changes force limits and motors, takes
constraints away and adds others. Where links are is Bullet's own forward kinematics.

    python benchmarks/drop_in_campaign.py --first 0 --robots 100 --steps 24
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
APART = re.compile(
    r"constraint (\d+) (?:was moved to|is) where no joint brings its bodies"
    r"(?: since constraint ([\d, ]+) was moved)?"
)
"""What one says of a pin that its bodies cannot follow, and of those that opened it."""
LED = re.compile(r"joint '(\w+)'[^;]* (?:is passed|past its limit|beyond its limits)")
"""What one says of a joint that is led past its limit."""
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


class Pin(NamedTuple):
    """A point-to-point constraint: its number, ends (body, link, point), and its force limit.

    ``rounded``: its gap where it was made, without one [m]: what Bullet's digits are worth there.
    """

    number: int
    a: tuple[int, int, tuple[float, ...]]
    b: tuple[int, int, tuple[float, ...]]
    max_force: float | None
    rounded: float


class DropInRun:
    """A robot of a number under a program, judged after every step.

    Args:
        number: From which all of it is made.
        folder: For its URDF.

    Attributes:
        faults: What was found, with the step and how much it is.
    """

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder, self.rng = number, folder, np.random.default_rng([number, 16])
        self.faults = dict[str, tuple[int, float]]()
        self.pins, self.geared, self.bullets = list[Pin](), False, False
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
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    self.p.stepSimulation()
                said = " ".join(str(each.message) for each in told)
                apart = ", ".join(", ".join(found) for found in APART.findall(said))
                self.unreached |= {int(number) for number in re.findall(r"\d+", apart)}
                self.bullets |= LEFT_TO_BULLET in said
                self.led |= set(LED.findall(said))
                self.into |= LED_INTO.search(said) is not None
                was, depth = self._look(done, limits, was, depth)
        except BulletBridgeError as error:
            message = f"{type(error).__name__}: {error}"
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
        p.setBridgeMode("exact")

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
            gap = float(np.abs(self._point(*pin.a) - self._point(*pin.b)).max())
            if self._stands(*pin.a[:2]) and self._stands(*pin.b[:2]):
                continue  # where a pivot was moved to nothing can follow
            open_by = gap - OPEN - pin.rounded
            if pin.max_force is None and open_by > 0 and pin.number not in self.unreached:
                self._blame("silent gap", step, gap)
        if self.bullets or not (self.pins or self.geared):
            return places, now
        base = np.abs(self.p.getBaseVelocity(self.body)).max()
        ends = max(1.0, float(np.abs(rates).max(initial=0.0)), float(base))
        fastest, self.fastest = max(ends, self.fastest), ends
        bent = BENT * (self.dt * fastest) ** 2
        for name, (lower, upper), old, new in zip(self._names(), limits, was, places, strict=True):
            beyond = max(lower - new, new - upper, 0.0) - max(lower - old, old - upper, 0.0)
            limited = lower <= upper and lower > -FREE and name not in self.led
            if limited and beyond > bent + BEYOND:
                self._blame("limit", step, beyond)
        if not self.into and depth - now > bent + SUNK:
            self._blame("sinks", step, depth - now)
        return places, now

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


def main() -> None:
    """Run robots of some numbers, print those in which something was found, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="number of the first robot")
    parser.add_argument("--robots", type=int, default=100)
    parser.add_argument("--steps", type=int, default=24)
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.robots)
    with tempfile.TemporaryDirectory() as folder:
        tell("robots", (DropInRun(number, Path(folder)).record(given.steps) for number in numbers))


if __name__ == "__main__":
    main()
