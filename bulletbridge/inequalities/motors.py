"""Motors with force limits, as PyBullet's ``setJointMotorControl2`` defines them, and friction."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NoReturn
from weakref import WeakMethod

import numpy as np

from bulletbridge.constraints.joints import Motor
from bulletbridge.constraints.records import MOTOR_ROW
from bulletbridge.errors import Hinting, ModelError, called_as, nearest, warn_user
from bulletbridge.inequalities.encode import LoopAxes
from bulletbridge.mechanism.angles import degrees_notes
from bulletbridge.mechanism.model import SINGLE, Joint, Mechanism
from bulletbridge.numerics.records import LARGEST, Array, are_numbers

PYBULLETS_FORCE = 1e5
"""Largest force [N or N m] of motors of which neither a caller nor the robot's file says more."""
FORCE = 5
"""Place of the largest force among the numbers of a record from ``velocity`` on."""
ALONG = "x", "y", "z"
"""Axes of a spherical joint's motors: those of the link that it carries."""


ELSEWHERE = {
    **dict.fromkeys(("maxForce", "max_force", "effort"), "force"),
    **dict.fromkeys(("targetVelocity", "target_velocity"), "velocity"),
    **dict.fromkeys(("targetPosition", "target_position", "target"), "position"),
    "velocityGain": "velocity_gain",
    "positionGain": "position_gain",
    "maxVelocity": "max_velocity",
}
"""Arguments of ``Motors.set`` by what PyBullet and others call them."""
KNOWN = "force", "velocity", "position", "velocity_gain", "position_gain", "max_velocity"


class Motors(Hinting):
    """A motor for every way that a joint turns or slides, off until it is set, and its friction.

    A motor asks for the rate v + velocity_gain (velocity - v) + position_gain (position - q)/dt,
    v the rate that forces alone would give, and exerts what it takes, up to its force. Friction is
    a motor that asks for rest. A servo (``servo``) asks for no rate, but pushes by a stiffness and
    a damping. Spherical joints have three, ``joint/x``, ``joint/y`` and ``joint/z``, which hold
    rates [rad/s] about the axes of the link. Loop joints have both along the free motions that
    their ``turn`` and ``travel`` describe, and tendons; their names are those of ``LoopAxes``.

    Args:
        mechanism: Whose joints they drive.
        loop_axes: Free motions of loop joints.

    Attributes:
        records: (2 n,) of ``constraints.records.MotorRow``: motors, then frictions.
        on: Numbers of those that have a force.
    """

    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("position", "velocity"), "motors.set('joint', position=..., velocity=...)"
        ),
        **dict.fromkeys(("torque", "effort"), "system.tau['joint'] = ..."),
    }
    __slots__ = (
        *("_asked", "_axes", "_index", "_mechanism", "_switched", "_turning"),
        *("exerted", "on", "records"),
    )

    def __init__(self, mechanism: Mechanism, loop_axes: LoopAxes) -> None:
        self._mechanism = mechanism
        joints = {name: joint for name, joint in mechanism.joints.items() if joint.is_single}
        axes = {name: joint.v.start for name, joint in joints.items()}
        for name, joint in mechanism.joints.items():
            if joint.kind == "spherical":
                axes |= {f"{name}/{x}": joint.v.start + k for k, x in enumerate(ALONG)}
        self._turning = {i for i, name in enumerate(axes) if name not in joints}
        axes |= {name: -1 - n for n, name in enumerate(loop_axes.names)}
        self._index = {name: i for i, name in enumerate(axes)}
        self._asked = set[str]()  # joints of whose targets it was asked whether degrees are meant
        self.records = np.zeros(2 * len(axes), MOTOR_ROW)
        self._axes = list(axes.values())
        self.records["axis"] = 2 * self._axes
        self.exerted: Callable[[], Array] | None = None  # once a step has been made
        self.records["row"] = -1
        self.on: set[int] = set()
        self._switched: WeakMethod[Callable[[], None]] | None = None
        friction = self.records[len(axes) :]
        friction["velocity_gain"], friction["fastest"] = 1.0, math.inf
        for joint in mechanism.joints.values():
            self.follow_friction(joint)
        for name, freedom in zip(loop_axes.names, loop_axes.acting, strict=False):
            self.set_friction(name, freedom.friction)
            if freedom.motor is not None:
                self.take(name, freedom.motor)

    def __reduce__(self) -> NoReturn:
        """Refuse copies, which would drive nothing."""
        raise ModelError("motors are copied and pickled with their system: copy or pickle that")

    def __repr__(self) -> str:
        on = [name for name, i in self._index.items() if i in self.on]
        return f"<Motors: {', '.join(on) or 'none'} on, {len(self._index) - len(on)} off>"

    @property
    def any_on(self) -> bool:
        """Whether any motor is on, or any joint rubs."""
        return bool(self.on)

    def set(
        self,
        joint: str,
        *given: float,
        force: float | None = None,
        velocity: float = 0.0,
        position: float | None = None,
        velocity_gain: float = 1.0,
        position_gain: float = 0.1,
        max_velocity: float = math.inf,
        **unknown: float,
    ) -> None:
        """Let a motor hold a rate, or a position too, from now on.

        Args:
            joint: Name of a revolute or prismatic joint, of a spherical joint with an axis, or of a
                loop's free motion.
            given: Nothing; targets go by name.
            force: Largest force [N] or torque [N m]; that of the robot's file (``effort``) unless
                given, or PyBullet's if there is none.
            velocity: Rate [m/s or rad/s].
            position: Position [m or rad]; None for the rate alone.
            velocity_gain: Share of the velocity error that a step takes away.
            position_gain: Share of the position error that a step takes away.
            max_velocity: Bound on the rate that is asked for.
            unknown: None; what is meant by others' words is told.

        Raises:
            ModelError: No such joint or argument, or a number that means nothing.
            TypeError: A target has no name.
        """
        i = self._find(joint)
        if given:
            raise TypeError(
                f"a motor takes no {given[0]!r} without a name; targets go by name, as"
                f" motors.set('{joint}', position={given[0]!r})"
            )
        for name in unknown:
            hint = nearest(name, KNOWN, 1, cutoff=0.6) or f"there are {', '.join(KNOWN)}"
            if name in ELSEWHERE:
                hint = f"write {ELSEWHERE[name]}=..."
            elif name in ("torque", "tau"):
                hint = f"system.tau['{joint}'] = ... is a torque; force=... bounds the motor's"
            elif name in ("stiffness", "damping", "kp", "kd"):
                hint = f"write motors.servo('{joint}', stiffness=..., damping=...)"
            raise ModelError(f"motor of '{joint}': a motor has no '{name}'; {hint}")
        force = self._strongest(joint) if force is None else force
        if position is not None and i in self._turning:
            raise ModelError(
                f"motor of '{joint}': a spherical joint has no position about one axis; give a"
                " velocity alone"
            )
        target = 0.0 if position is None else position
        gain = 0.0 if position is None else position_gain
        numbers = (velocity, target, velocity_gain, gain, force)
        bounded = max_velocity == math.inf or are_numbers(max_velocity)
        possible = all(type(x) is float and -LARGEST <= x <= LARGEST for x in numbers)
        possible = possible or are_numbers(numbers, (5,))  # by an array, which takes ten times that
        if not (possible and bounded and force >= 0.0 < max_velocity):
            raise ModelError(
                f"motor of '{joint}': {dict(force=force, velocity=velocity, position=position)} is"
                " not possible; give finite numbers, and a force that is not negative"
            )
        if abs(target) > math.tau and joint not in self._asked:
            self._ask_for_radians(joint, target)
        self._put(i, (velocity, target, velocity_gain, gain, max_velocity, force, -force, 0.0, 0.0))

    def _ask_for_radians(self, joint: str, target: float) -> None:
        """Warn once a joint of a target beyond its limits [rad] that looks like degrees."""
        hinge = self._mechanism.joints.get(joint)
        if hinge is None or hinge.kind != "revolute" or hinge.lower <= target <= hinge.upper:
            return
        for said in degrees_notes({f"position of the motor of '{joint}'": (target,)}):
            self._asked.add(joint)
            warn_user(said)

    def turn(self, joint: str, rates: Sequence[float], force: float) -> None:
        """Let all three motors of a spherical joint hold rates from now on, as ``set`` does.

        Args:
            joint: Its name.
            rates: (3,) about the axes of the link that it carries [rad/s].
            force: Largest torque about each [N m].

        Raises:
            ModelError: No such joint, or a number that means nothing.
        """
        x, y, z = rates
        if not (math.isfinite(x + y + z) and 0.0 <= force < math.inf):
            raise ModelError(
                f"motors of '{joint}': rates {[x, y, z]} with force {force} are not possible; give"
                " finite numbers, and a force that is not negative"
            )
        for i, rate in enumerate((x, y, z), self._find(f"{joint}/x")):
            self._put(i, (rate, 0.0, 1.0, 0.0, math.inf, force, -force, 0.0, 0.0))

    def _put(self, i: int, numbers: tuple[float, ...]) -> None:
        """Fill a record, in one assignment: field by field costs ten times as much.

        Args:
            i: Which one.
            numbers: Its fields from ``velocity`` on.
        """
        self.records[i] = self._axes[i], self.records["row"][i], *numbers
        self._note(i, numbers[FORCE])

    def __getitem__(self, joint: str) -> NoReturn:
        """Refuse the motor of a joint, which is no object."""
        raise TypeError(f"a motor is no object; write motors.set('{joint}', velocity=...)")

    @called_as("motors.servo('joint', stiffness=..., damping=..., position=..., force=...)")
    def servo(
        self,
        joint: str,
        *,
        stiffness: float = 0.0,
        damping: float = 0.0,
        position: float = 0.0,
        velocity: float = 0.0,
        force: float | None = None,
        least: float | None = None,
    ) -> None:
        """Let a motor push like a spring and a damper, within bounds, from now on.

        Its force is stiffness * (position - q) + damping * (velocity - v) at the end of each step,
        however stiff, or the bound that this is beyond.

        Args:
            joint: As of ``set``.
            stiffness: [N m/rad or N/m]
            damping: [N m s/rad or N s/m]
            position: Where the spring rests [rad or m].
            velocity: Rate that the damper asks for [rad/s or m/s].
            force: Largest force [N] or torque [N m], as of ``set``.
            least: Lowest one, not positive; ``-force`` unless given.

        Raises:
            ModelError: No such joint, or a number that means nothing.
        """
        i = self._find(joint)
        force = self._strongest(joint) if force is None else force
        lowest = -force if least is None else least
        if i in self._turning and (stiffness or position):
            raise ModelError(
                f"servo of '{joint}': a spherical joint has no position about one axis; give a"
                " damping alone"
            )
        known = math.isfinite(position + velocity + stiffness + damping + lowest)
        pushes = min(stiffness, damping) >= 0.0 and max(stiffness, damping) > 0.0
        if not (known and pushes and 0.0 <= force < math.inf and lowest <= 0.0):
            given = {"stiffness": stiffness, "damping": damping, "force": force, "least": lowest}
            raise ModelError(
                f"servo of '{joint}': {given} is not possible; give finite numbers, a stiffness or"
                " a damping, and bounds around zero"
            )
        numbers = velocity, position, 0.0, 0.0, math.inf, force, lowest, stiffness, damping
        self._put(i, numbers)

    def _strongest(self, joint: str) -> float:
        """What a motor that is told nothing else may exert [N or N m]."""
        found = self._mechanism.joints.get(joint)
        known = found is not None and math.isfinite(found.effort)
        return found.effort if found is not None and known else PYBULLETS_FORCE

    def take(self, joint: str, motor: Motor) -> None:
        """Set a motor as described.

        Raises:
            ModelError: No such joint, or a number that means nothing.
        """
        given = {name: value for name, value in vars(motor).items() if value is not None}
        if motor.stiffness or motor.damping:
            del given["velocity_gain"], given["position_gain"]
            self.servo(joint, **given)
            return
        if motor.least is not None:
            raise ModelError(f"motor of '{joint}' has a lowest force, which only servos have")
        del given["stiffness"], given["damping"]
        self.set(joint, **given)

    def settings(self, joint: str) -> dict[str, float]:
        """Arguments that a motor has now, as far as it was set; no force is off.

        They are those of ``servo`` if there is a stiffness among them, otherwise those of ``set``.

        Raises:
            ModelError: No such joint.
        """
        record = self.records[self._find(joint)]
        if record["fastest"] == 0.0:  # it was never set
            return {"force": 0.0}
        if record["stiffness"] or record["damping"]:
            names = "force", "velocity", "position", "stiffness", "damping", "least"
            return {name: float(record[name]) for name in names}
        found = {
            "force": float(record["force"]),
            "velocity": float(record["velocity"]),
            "velocity_gain": float(record["velocity_gain"]),
            "max_velocity": float(record["fastest"]),
        }
        if record["position_gain"] != 0.0:
            found["position"] = float(record["position"])
            found["position_gain"] = float(record["position_gain"])
        return found

    def follow_friction(self, joint: Joint) -> None:
        """Give a joint of the tree the friction that it has there, about all axes of it."""
        if joint.is_single:
            self.set_friction(joint.name, joint.friction)
        elif joint.kind == "spherical":
            for x in ALONG:
                self.set_friction(f"{joint.name}/{x}", joint.friction)

    def set_friction(self, joint: str, force: float) -> None:
        """Give a joint Coulomb friction, which sticks and slides.

        Args:
            joint: As of ``set``.
            force: Largest friction [N or N m].

        Raises:
            ModelError: No such joint, or a number that means nothing.
        """
        index = self._find(joint)
        if not (are_numbers(force) and force >= 0.0):
            raise ModelError(
                f"friction of '{joint}' is {force!r}; give a finite number that is not negative"
            )
        self.records[len(self._index) + index]["force"] = force
        self.records[len(self._index) + index]["least"] = -force
        self._note(len(self._index) + index, force)

    @property
    def forces(self) -> Array:
        """What the motors exerted in the last step (n,) [N or N m], in the order of ``names``."""
        return self._last()[: len(self._index)]

    @property
    def frictions(self) -> Array:
        """What friction exerted in the joints in the last step (n,) [N or N m]."""
        return self._last()[len(self._index) :]

    def _last(self) -> Array:
        return np.zeros(len(self.records)) if self.exerted is None else self.exerted()

    def axis(self, joint: str) -> int:
        """Axis that a joint's motor drives, as of ``constraints.records.MotorRow``.

        Raises:
            ModelError: No such joint.
        """
        return int(self.records[self._find(joint)]["axis"])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all joints that have one."""
        return tuple(self._index)

    def off(self, joint: str) -> None:
        """Switch a motor off.

        Raises:
            ModelError: No such joint.
        """
        self.records[self._find(joint)]["force"] = 0.0
        self._note(self._find(joint), 0.0)

    def recall(self) -> None:
        """Take note of which records have a force, after all were put back."""
        self.on = {int(i) for i in np.flatnonzero(self.records["force"] > 0.0)}
        self._tell()

    def tell(self, switched: Callable[[], None]) -> None:
        """Have a method called from now on whenever the first is switched on or the last one off.

        It is not kept alive: motors belong to a system, not the system to its motors.
        """
        self._switched = WeakMethod(switched)

    def _tell(self) -> None:
        switched = self._switched and self._switched()
        if switched:
            switched()

    def _note(self, i: int, force: float) -> None:
        """Keep in mind whether a record has a force, by which a stepper is chosen."""
        if (force > 0.0) == (i in self.on):
            return
        if force > 0.0:
            self.on.add(i)
        else:
            self.on.discard(i)
        if len(self.on) == (force > 0.0):
            self._tell()

    def _find(self, joint: str) -> int:
        try:
            return self._index[joint]
        except TypeError:
            raise ModelError(f"{joint!r} is no joint's name; set one motor after another") from None
        except KeyError:
            found = self._mechanism.joint(joint)
        raise ModelError(
            f"joint '{joint}' is {found.kind}; motors drive {', '.join(SINGLE)}, and spherical"
            f" joints by their axes, as in 'joint/x'"
        )
