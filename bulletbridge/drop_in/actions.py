"""Record of a program's commands to the bodies of a client, which Bullet does not tell."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
import pybullet

from bulletbridge.bullet.collision_filters import CollisionFilters
from bulletbridge.bullet.state import Place as Pose
from bulletbridge.constraints.joints import SOFTNESS
from bulletbridge.numerics.records import Array, Vector

Given = dict[str, Any]
Withheld = tuple[Callable[..., Any], tuple[Any, ...], Given]
"""A function of PyBullet's, positional and named arguments."""
Call = tuple[tuple[str, ...], tuple[Any, ...], Given]
"""Names of positional arguments, these, and named arguments, as they were given."""
SEVERAL = {
    "targetPosition": "targetPositions",
    "targetVelocity": "targetVelocities",
    "force": "forces",
    "positionGain": "positionGains",
    "velocityGain": "velocityGains",
}
"""Names of arguments for one joint and for several, for which Bullet ignores ``maxVelocities``."""
DEFAULT_DAMPING = 0.04
"""Damping of every link, linear and angular, unless changeDynamics says otherwise."""
CUT_OFF = 100.0
"""Rate [rad/s, m/s] beyond which Bullet cuts off, unless changeDynamics says otherwise."""


ONE = (
    *("bodyUniqueId", "jointIndex", "controlMode", "targetPosition", "targetVelocity", "force"),
    *("positionGain", "velocityGain", "maxVelocity"),
)
"""Arguments of motor commands for one joint, in PyBullet's order."""
MANY = "bodyUniqueId", "jointIndices", "controlMode", *SEVERAL.values()
"""The same for several joints."""
PLAIN = {int, float, bool, np.float64}
"""Types of arguments that stay what they are."""
LASTING = {pybullet.POSITION_CONTROL, pybullet.VELOCITY_CONTROL}
"""Modes of commands that mean the same when they are given again."""
PLACE = "bodyUniqueId", "linkIndex", "physicsClientId"
WEIGHT = {"mass", "localInertiaDiagonal"}
"""Arguments of changeDynamics that tell of which link, and what it weighs."""
MOST_COMMANDS = 4096
"""Commands that are kept as they were given."""


@dataclass(frozen=True)
class Push:
    """An external force or torque for one step.

    Attributes:
        body, link: Bullet's numbers.
        vector: Force [N] or torque [N m], as given.
        point: Where a force acts [m], as given; None for a torque.
        in_world: Whether both are in world axes; otherwise in the link's inertial frame.
    """

    body: int
    link: int
    vector: tuple[float, ...]
    point: tuple[float, ...] | None
    in_world: bool


class MotorCommand(NamedTuple):
    """The last command to a joint's motor.

    Attributes:
        force: Largest force [N] or torque [N m]; None for Bullet's impulse of 1 N s.
        velocity, position: Targets.
        velocity_gain, position_gain: Shares of their errors that a step takes away.
        fastest: Bound on the rate that is asked for.
        orientation: Target of a spherical joint's motor, a quaternion xyzw; empty otherwise.
        torque_of: Bullet's command that gives it a torque which only Bullet knows; empty otherwise.
    """

    force: float | None = None
    velocity: float = 0.0
    position: float = 0.0
    velocity_gain: float = 1.0
    position_gain: float = 0.0
    fastest: float = math.inf
    orientation: tuple[float, ...] = ()
    torque_of: str = ""

    @property
    def on(self) -> bool:
        """Whether it does anything; those of spherical joints do without gains, too."""
        gained = self.velocity_gain != 0.0 or self.position_gain != 0.0
        return self.force != 0.0 and (gained or bool(self.orientation))

    @property
    def aims(self) -> bool:
        """Whether it leads somewhere, where it does not just brake."""
        return self.on and (self.position_gain != 0.0 or self.velocity != 0.0)


AT_FIRST = MotorCommand()
"""Bullet's motors are on from the start."""
DEFAULT_FORCE, DEFAULT_POSITION_GAIN = 1e5, 0.1
"""Force and position gain of motor commands that leave them out."""


class Spring(NamedTuple):
    """The last command to a joint in ``PD_CONTROL``: a torque beside that of its motor.

    Attributes:
        force: Largest torque [N m] or force [N].
        velocity, position: Targets.
        velocity_gain, position_gain: Torque by their errors [N m s, N m; N s/m, N/m].
    """

    force: float
    velocity: float
    position: float
    velocity_gain: float
    position_gain: float

    def torque(self, position: float, velocity: float) -> float:
        """Torque [N m] or force [N] at a state."""
        wanted = self.position_gain * (self.position - position)
        wanted += self.velocity_gain * (self.velocity - velocity)
        return min(max(wanted, -self.force), self.force)


@dataclass
class Actions:
    """Motors, joint torques, external forces and damping of all bodies of a client.

    Commands of every step are kept as they are given: only exact steps ask what they mean.

    Attributes:
        damping: Linear and angular damping of links, by body.
        joint_damping: Of single joints, where it was changed, by body and joint.
        limits: Lower and upper limit of single joints, where they were changed.
        cut_off: Rates below ``CUT_OFF`` at which Bullet was told to cut off those of a body, until
            it is told that exact mode does not.
        erp: Share of their gap that constraints with force limits close in a step.
        anisotropy: Factors on friction along the axes of single links, by body and link.
        filters: Which links were said not to collide.
        belts: Bodies that stand still and have a velocity, which what lies on them feels.
        shifted: Where fixed bases were that were moved since the last step, by body.
        commands: How many times motors have been given others.
        withheld: Calls that Bullet was not told the forces of: its own step, which alone forgets
            them, may never be made.
    """

    damping: dict[int, tuple[float, float]] = field(default_factory=lambda: {})
    joint_damping: dict[tuple[int, int], float] = field(default_factory=lambda: {})
    limits: dict[tuple[int, int], tuple[float, float]] = field(default_factory=lambda: {})
    cut_off: dict[int, float] = field(default_factory=lambda: {})
    erp: float = SOFTNESS
    anisotropy: dict[tuple[int, int], Vector] = field(default_factory=lambda: {})
    filters: CollisionFilters = field(default_factory=CollisionFilters)
    belts: set[int] = field(default_factory=lambda: set())
    shifted: dict[int, Pose] = field(default_factory=lambda: {})
    commands: int = 0
    withheld: list[Withheld] = field(default_factory=lambda: [])

    _motors: dict[tuple[int, int], MotorCommand] = field(default_factory=lambda: {})
    _springs: dict[tuple[int, int], Spring] = field(default_factory=lambda: {})
    _commanded: dict[tuple[int, Any, bool, bool], Call] = field(default_factory=lambda: {})
    _given: dict[tuple[int, int], tuple[tuple[Any, ...], Given]] = field(
        default_factory=lambda: {}
    )  # last commands, of joints that had one of their own
    _told: dict[tuple[int, int], Given] = field(
        default_factory=lambda: {}
    )  # what changeDynamics was given last, by body and link
    _weights: dict[tuple[int, int], Given] = field(
        default_factory=lambda: {}
    )  # of that, what the last call with a weight said
    _torques: list[Call] = field(default_factory=lambda: [])
    _acting: list[tuple[int, int, Array]] = field(default_factory=lambda: [])  # what these ask for,
    _read: int = 0  # of so many of them
    _pushes: list[Call] = field(default_factory=lambda: [])

    @property
    def motors(self) -> dict[tuple[int, int], MotorCommand]:
        """Motors by body and joint; ``AT_FIRST`` where nothing was said."""
        if self._commanded:
            for command in self._commanded.values():
                for place, mode, given in each_joint(command):
                    if mode == pybullet.PD_CONTROL:
                        self._springs[place] = spring_of(given)
                        continue
                    before, motor = self._motors.get(place, AT_FIRST), motor_of(mode, given)
                    ball = motor.orientation or motor.torque_of
                    if ball or not before.orientation:  # nothing else moves these
                        self._motors[place] = motor
            self._commanded.clear()
            self.commands += 1
        return self._motors

    @property
    def springs(self) -> dict[tuple[int, int], Spring]:
        """Joints in ``PD_CONTROL`` by body and joint; as in Bullet until their force is zero."""
        _ = self.motors
        return self._springs

    @property
    def pushing(self) -> bool:
        """Whether torques or external forces act in the coming step."""
        return bool(self._torques or self._pushes or self.springs)

    def asks_since(self, commands: int) -> bool:
        """Whether anything acts in the coming step, or motors have had other commands since."""
        new = self._commanded or self.commands != commands
        return bool(new or self._torques or self._pushes or self._springs)

    @property
    def told(self) -> bool:
        """Whether Bullet knows of any of them."""
        return len(self._torques) + len(self._pushes) > len(self.withheld)

    @property
    def torques(self) -> list[tuple[int, int, Array]]:
        """Body, joint and torques of the coming step [N m or N]."""
        known, self._read = self._read, len(self._torques)
        self._acting += [
            (*place, np.atleast_1d(np.asarray(given["force"], float)))
            for command in self._torques[known:]
            for place, _, given in each_joint(command)
            if given.get("force") is not None
        ]
        return self._acting

    @property
    def pushes(self) -> list[Push]:
        """External forces of the coming step."""
        return [push_of(call) for call in self._pushes]

    def command(self, args: tuple[Any, ...], kwargs: Given, turns: bool = False) -> None:
        """Take note of a motor command for one joint, which spherical ones may follow or not."""
        if len(args) > 2:
            body, joint, mode, *_ = args
        else:
            given = dict(zip(ONE, args, strict=False)) | kwargs
            body, joint, mode = body_of(given), given["jointIndex"], given["controlMode"]
        given = self._given
        if not are_plain(args) or not are_plain(kwargs.values()):
            args, kwargs = frozen(args), frozen_values(kwargs)
            given.pop((body, joint), None)
        elif given.get((body, joint)) == (args, kwargs):
            return  # as it was
        elif mode in LASTING and not turns:
            given[body, joint] = args, kwargs
        else:
            given.pop((body, joint), None)
        if mode == pybullet.TORQUE_CONTROL:
            self._torques.append((ONE, args, kwargs))
        else:
            place = body, joint, mode == pybullet.PD_CONTROL, turns
            self._commanded.pop(place, None)  # the last one comes last
            self._commanded[place] = ONE, args, kwargs

    def command_all(self, args: tuple[Any, ...], kwargs: Given, turns: bool = False) -> None:
        """Take note of motor commands for several joints, as ``command`` does."""
        args, kwargs = frozen(args), frozen_values(kwargs)
        if len(args) > 2:
            body, joints, mode, *_ = args
        else:
            given = dict(zip(MANY, args, strict=False)) | kwargs
            body, joints, mode = body_of(given), given["jointIndices"], given["controlMode"]
        if mode == pybullet.TORQUE_CONTROL:
            self._torques.append((MANY, args, kwargs))
            return
        for joint in joints if self._given else ():
            self._given.pop((body, joint), None)
        place = body, tuple(joints), mode == pybullet.PD_CONTROL, turns
        self._commanded.pop(place, None)
        self._commanded[place] = MANY, args, kwargs
        if len(self._commanded) > MOST_COMMANDS:
            _ = self.motors

    def push(self, names: tuple[str, ...], args: tuple[Any, ...], kwargs: Given) -> None:
        """Take note of an external force or torque, whose arguments have these names."""
        self._pushes.append((names, frozen(args), frozen_values(kwargs) if kwargs else kwargs))

    def change(self, given: Given) -> set[str]:
        """Take note of changeDynamics; the names of what may be otherwise than it was."""
        body, link = given["bodyUniqueId"], given["linkIndex"]
        known = self._told.setdefault((body, link), {})
        told = {name: np.ravel(x).tolist() for name, x in given.items() if name not in PLACE}
        changed = {name for name, value in told.items() if known.get(name) != value}
        weight = {name: told[name] for name in WEIGHT & told.keys()}
        if weight and self._weights.get((body, link)) != weight:
            changed |= weight.keys()  # though it be as before: a mass makes its inertia anew
            self._weights[body, link] = weight
        known |= told
        linear, angular = damping = self.damping.get(body, (DEFAULT_DAMPING, DEFAULT_DAMPING))
        self.damping[body] = (
            float(given.get("linearDamping", linear)),
            float(given.get("angularDamping", angular)),
        )
        if self.damping[body] == damping:  # of all links, whichever was named
            changed -= {"linearDamping", "angularDamping"}
        else:
            changed |= {"linearDamping", "angularDamping"}
        if "jointDamping" in given:
            self.joint_damping[body, link] = float(given["jointDamping"])
        if {"jointLowerLimit", "jointUpperLimit"} <= set(given):
            limits = float(given["jointLowerLimit"]), float(given["jointUpperLimit"])
            if limits[0] <= limits[1]:  # else Bullet takes no note
                self.limits[body, link] = limits
        if "maxJointVelocity" in changed and given["maxJointVelocity"] >= 0.0:
            self.cut_off[body] = float(given["maxJointVelocity"])
            if self.cut_off[body] >= CUT_OFF:
                del self.cut_off[body]
        if "anisotropicFriction" in given:
            x, y, z = given["anisotropicFriction"]
            self.anisotropy[body, link] = float(x), float(y), float(z)
        return changed

    def forget(self, body: int) -> None:
        """Forget a body: its id may be given to another one.

        ``PD_CONTROL`` outlives its body: in Bullet it acts on the next one of that id.
        """
        self.filters.forget(body)
        self.belts.discard(body)
        self.damping.pop(body, None)
        self.cut_off.pop(body, None)
        tables = (
            *(self.motors, self._given, self.joint_damping, self.limits, self.anisotropy),
            *(self._told, self._weights),
        )
        for table in tables:
            for key in [key for key in table if key[0] == body]:
                del table[key]

    def end_step(self) -> None:
        """Torques and forces act for one step."""
        self._torques.clear()
        self._acting.clear()
        self._read = 0
        self._pushes.clear()
        self.withheld.clear()
        self.shifted.clear()

    def withhold(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Given) -> None:
        """Keep a call with its forces from Bullet."""
        self.withheld.append((function, frozen(args), frozen_values(kwargs)))

    def tell(self) -> None:
        """Tell Bullet the forces that were withheld, for it is to make a step."""
        for function, args, kwargs in self.withheld:
            function(*args, **kwargs)
        self.withheld.clear()


def each_joint(command: Call) -> Iterator[tuple[tuple[int, int], int, Given]]:
    """Body and joint, mode, and further arguments for one joint: of all joints of a command."""
    given = given_by(command)
    body, mode = body_of(given), given["controlMode"]
    if "jointIndex" in given:
        yield (body, given["jointIndex"]), mode, given
        return
    columns = {one: given[many] for one, many in SEVERAL.items() if many in given}
    for i, joint in enumerate(given["jointIndices"]):
        yield (body, joint), mode, {key: column[i] for key, column in columns.items()}


def push_of(call: Call) -> Push:
    """What a call pushes."""
    given = given_by(call)
    point = given.get("posObj")
    return Push(
        given["objectUniqueId"],
        given["linkIndex"],
        tuple(map(float, given["forceObj" if "forceObj" in given else "torqueObj"])),
        None if point is None else tuple(map(float, point)),
        given["flags"] == pybullet.WORLD_FRAME,
    )


def given_by(call: Call) -> Given:
    """Arguments by name."""
    names, args, kwargs = call
    return dict(zip(names, args, strict=False)) | kwargs


def body_of(given: Given) -> int:
    """The body of a motor command, also by its old name."""
    return given["bodyUniqueId"] if "bodyUniqueId" in given else given["bodyIndex"]


def are_plain(values: Iterable[Any]) -> bool:
    """Whether they are numbers that stay what they are."""
    return PLAIN.issuperset(map(type, values))


def frozen(value: Any) -> Any:
    """A copy of a list, tuple or array, of which a program may make something else."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, np.ndarray):
        return np.array(value, float)
    if not isinstance(value, list | tuple):
        return value
    values = cast(list[Any], value)
    return tuple(values) if are_plain(values) else tuple([frozen(x) for x in values])


def nothing_of(value: Any) -> Any:
    """Zeros in the place of numbers."""
    if isinstance(value, list | tuple | np.ndarray):
        return [nothing_of(x) for x in cast(list[Any], value)]
    return 0.0 if isinstance(value, int | float | np.number) else value


def frozen_values(given: Given) -> Given:
    """Named arguments with ``frozen`` values."""
    return {name: frozen(value) for name, value in given.items()}


def motor_of(mode: int, given: Given) -> MotorCommand:
    """What a command other than a torque makes of a motor."""
    if mode == pybullet.STABLE_PD_CONTROL:
        return MotorCommand(torque_of="STABLE_PD_CONTROL")
    get = given.get
    force, velocity = get("force", DEFAULT_FORCE), get("targetVelocity", 0.0)
    position_gain = get("positionGain", DEFAULT_POSITION_GAIN)
    velocity_gain = get("velocityGain", 1.0)
    target, fastest = get("targetPosition", 0.0), get("maxVelocity", -1.0)
    if not are_plain((force, velocity, target)):
        if np.size(target) == 4 and type(target) not in PLAIN:
            orientation = tuple(float(x) for x in target)
            gain = float(position_gain)
            return MotorCommand(number(force), position_gain=gain, orientation=orientation)
        force, velocity, target = number(force), number(velocity), number(target)
    if mode == pybullet.VELOCITY_CONTROL:
        return MotorCommand(float(force), float(velocity), velocity_gain=float(velocity_gain))
    bound = float(fastest) if fastest > 0.0 else math.inf
    gains = float(velocity_gain), float(position_gain)
    return MotorCommand(float(force), float(velocity), float(target), *gains, bound)


def spring_of(given: Given) -> Spring:
    """What a command in ``PD_CONTROL`` asks for."""
    return Spring(
        number(given.get("force", DEFAULT_FORCE)),
        number(given.get("targetVelocity", 0.0)),
        number(given.get("targetPosition", 0.0)),
        float(given.get("velocityGain", 1.0)),
        float(given.get("positionGain", DEFAULT_POSITION_GAIN)),
    )


def number(value: Any) -> float:
    """A number that may be a list, whose first one counts; none is zero."""
    if value is None:
        return 0.0
    if type(value) in PLAIN:
        return float(value)
    values = np.ravel(value)
    return float(values[0]) if len(values) else 0.0
