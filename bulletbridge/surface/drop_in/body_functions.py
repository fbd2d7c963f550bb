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
from bulletbridge.surface.drop_in.session import Session, session_of

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
    ("resetBasePositionAndOrientation", ("bodyUniqueId", "posObj", "ornObj")),
    ("resetBaseVelocity", ("objectUniqueId", "linearVelocity", "angularVelocity")),
):
    follows(name, *parameters)(note_reset)


@replaces("bodyUniqueId", "jointIndices", "targetValues", "targetVelocities")
def resetJointStatesMultiDof(session: Session, given: Given) -> Any:
    """Bullet's. A tuple of values, which ends the process, raises."""
    guards.check_lists(given)
    answer = session.native("resetJointStatesMultiDof", given)
    note_reset(session, given)
    return answer


# motors and forces


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
