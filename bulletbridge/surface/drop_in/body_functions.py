"""PyBullet's functions about bodies that are not passed through untouched."""

from typing import Any

import pybullet

from bulletbridge.surface.drop_in import guards
from bulletbridge.surface.drop_in.function import (
    FUNCTIONS,
    Function,
    Given,
    before_call,
    follows,
    replaces,
)
from bulletbridge.surface.drop_in.hooks import HOOKS
from bulletbridge.surface.drop_in.session import EXACT, REAL_TIME, Session, session_of

# bodies


@follows("removeBody", "bodyUniqueId")
def remove_body(session: Session, given: Given) -> None:
    """It removes the body's constraints as well."""
    session.remove_body(given["bodyUniqueId"])


@follows("changeDynamics", "bodyUniqueId", "linkIndex", "mass")
def change_dynamics(session: Session, given: Given) -> None:
    """Masses and inertias are read again before the next step."""
    session.change_dynamics(given)


@follows("resetSimulation", "flags")
def reset_simulation(session: Session, given: Given) -> None:
    """All bodies and constraints are forgotten."""
    session.clear()


@replaces()
def saveState(session: Session, given: Given) -> int:
    """Bullet's, with what our steps go by."""
    number: int = session.native("saveState", given)
    session.save(number)
    return number


@follows("removeState", "stateUniqueId")
def remove_state(session: Session, given: Given) -> None:
    """What our steps went by is forgotten with it."""
    session.forget_saved(given["stateUniqueId"])


@follows("restoreState", "stateId", "fileName")
def restore_state(session: Session, given: Given) -> None:
    """Positions, velocities and what our steps go by; constraints stay as they are.

    A file holds what Bullet knows: from one, our steps start as after a reset.
    """
    session.restore(None if "fileName" in given else given.get("stateId"))


def note_reset(session: Session, given: Given) -> None:
    """Loops that it opens are closed before the next step."""
    session.disturb(given.get("bodyUniqueId", given.get("objectUniqueId")))


for name, parameters in (
    ("resetJointState", ("bodyUniqueId", "jointIndex", "targetValue", "targetVelocity")),
    ("resetJointStateMultiDof", ("bodyUniqueId", "jointIndex", "targetValue", "targetVelocity")),
    ("resetBaseVelocity", ("objectUniqueId", "linearVelocity", "angularVelocity")),
):
    follows(name, *parameters)(note_reset)


@follows("resetBasePositionAndOrientation", "bodyUniqueId", "posObj", "ornObj")
def reset_base(session: Session, given: Given) -> None:
    """What hangs on a base that is fixed follows it; otherwise loops are closed at the next step.

    Something fixed that is moved at every step is a moving platform.
    """
    session.move_base(given["bodyUniqueId"])


@replaces("bodyUniqueId", "jointIndices", "targetValues", "targetVelocities")
def resetJointStatesMultiDof(session: Session, given: Given) -> Any:
    """Bullet's. A tuple of values, which ends the process, raises."""
    guards.check_lists(given)
    answer = session.native("resetJointStatesMultiDof", given)
    note_reset(session, given)
    return answer


# motors and forces


class JointStates(Function):
    """PyBullet's, with what motors exerted where the step was ours.

    Args:
        name: PyBullet's.
        several: Whether it takes several joints.
    """

    def __init__(self, name: str, several: bool) -> None:
        super().__init__(name, ("bodyUniqueId", "jointIndices" if several else "jointIndex"), told)
        self._call, self._several = getattr(pybullet, name), several

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it as PyBullet's own."""
        if HOOKS.before_call or REAL_TIME:
            before_call()
        answer = self._call(*args, **kwargs)
        if not EXACT:
            return answer
        given = dict(zip(self._parameters, args, strict=False)) | kwargs
        session = session_of(given.get("physicsClientId", 0))
        if session not in EXACT:
            return answer
        body = given["bodyUniqueId"]
        if not self._several:
            return told_by(session, body, given["jointIndex"], answer)
        each = zip(given["jointIndices"], answer, strict=True)
        return tuple(told_by(session, body, joint, state) for joint, state in each)


def told(_session: Session, _given: Given) -> None:
    """Bullet's. Motor torques are those of our step in exact mode."""


def told_by(session: Session, body: int, joint: int, state: tuple[Any, ...]) -> tuple[Any, ...]:
    """A joint's state with the torque of its motor in our step."""
    force = session.motor_force(body, joint)
    if force is None:
        return state
    return (*state[:3], (force,) if isinstance(state[3], tuple) else force)


for name, several in (
    ("getJointState", False),
    ("getJointStates", True),
    ("getJointStateMultiDof", False),
    ("getJointStatesMultiDof", True),
):
    FUNCTIONS[name] = JointStates(name, several)


def note_command(session: Session, given: Given) -> None:
    """Exact steps must know which motors are on, and apply joint torques themselves."""
    session.actions.command(given)


def note_commands(session: Session, given: Given) -> None:
    """Exact steps must know which motors are on, and apply joint torques themselves."""
    session.actions.command_all(given)


ONE = "targetPosition", "targetVelocity", "force", "positionGain", "velocityGain", "maxVelocity"
MANY = "targetPositions", "targetVelocities", "forces", "positionGains", "velocityGains"
for name, note, parameters in (
    ("setJointMotorControl2", note_command, ("jointIndex", "controlMode", *ONE)),
    ("setJointMotorControlMultiDof", note_command, ("jointIndex", "controlMode", *ONE)),
    ("setJointMotorControlArray", note_commands, ("jointIndices", "controlMode", *MANY)),
    (
        "setJointMotorControlMultiDofArray",
        note_commands,
        ("jointIndices", "controlMode", *MANY, "maxVelocities"),
    ),
):
    follows(name, "bodyUniqueId", *parameters)(note)


class OldMotorControl(Function):
    """``setJointMotorControl``, which has no names for its arguments and knows client 0 only."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call PyBullet's own, and take note."""
        before_call()
        answer = pybullet.setJointMotorControl(*args, **kwargs)
        given: Given = dict(zip(("bodyUniqueId", "jointIndex", "controlMode"), args, strict=False))
        torque = given["controlMode"] == pybullet.TORQUE_CONTROL
        given["force"] = args[3] if torque else args[4] if len(args) > 4 else None
        session_of(0).actions.command(given)
        return answer


FUNCTIONS["setJointMotorControl"] = OldMotorControl("setJointMotorControl", (), note_command)


@follows("applyExternalForce", "objectUniqueId", "linkIndex", "forceObj", "posObj", "flags")
def apply_external_force(session: Session, given: Given) -> None:
    """Exact steps apply it themselves."""
    session.actions.push(given, "forceObj")


@follows("applyExternalTorque", "objectUniqueId", "linkIndex", "torqueObj", "flags")
def apply_external_torque(session: Session, given: Given) -> None:
    """Exact steps apply it themselves."""
    session.actions.push(given, "torqueObj")


# dynamics calls


def guarded(name: str, *parameters: str) -> None:
    """Register a dynamics call that raises where Bullet's would crash or be wrong."""

    def handler(session: Session, given: Given) -> Any:
        guards.check_arrays(name, given)
        guards.check_model(name, session, given)
        answer = session.native(name, given)
        session.modelled.add(given["bodyUniqueId"])
        return answer

    handler.__doc__ = "Bullet's. Arrays, which end the process, and outdated models raise."
    FUNCTIONS[name] = Function(name, parameters, handler)


guarded("calculateMassMatrix", "bodyUniqueId", "objPositions", "flags")
guarded(
    "calculateInverseDynamics",
    "bodyUniqueId",
    "objPositions",
    "objVelocities",
    "objAccelerations",
    "flags",
)
guarded(
    "calculateJacobian",
    "bodyUniqueId",
    "linkIndex",
    "localPosition",
    "objPositions",
    "objVelocities",
    "objAccelerations",
)
