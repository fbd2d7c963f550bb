"""Calls of PyBullet's own module on a client of ours, which goes by what it is told."""

import inspect
from typing import Any, Literal, NamedTuple

from bulletbridge.errors import PACKAGE

Whom = Literal["everyone", "loops", "loop", "body", "exact", "nobody"]
"""Whom a call concerns: whoever has constraints closed, or may have; who has any, or the one that
it names; a body that is part of a loop; what is in exact mode, of all bodies where none is named;
nobody, as what ends a client."""
BODY, OBJECT = "bodyUniqueId", "objectUniqueId"
STEP, END = "stepSimulation", "disconnect"


class Past(NamedTuple):
    """What a function does that a client is not told of.

    Attributes:
        places: How many arguments it takes before the client's number.
        whom: Whom it concerns.
        of: Name of its first argument, if that is a body or a constraint.
        lasts: Whether it concerns bodies that come to exact mode later, too.
    """

    places: int
    whom: Whom
    of: str = ""
    lasts: bool = False


PAST = {
    STEP: Past(0, "loops"),
    END: Past(0, "nobody"),
    "createConstraint": Past(10, "everyone"),
    "changeConstraint": Past(8, "loop", "userConstraintUniqueId"),
    "removeConstraint": Past(1, "loop", "userConstraintUniqueId"),
    "resetSimulation": Past(1, "loops"),
    "restoreState": Past(2, "loops"),
    "setTimeStep": Past(1, "loops"),
    "removeBody": Past(1, "body", BODY),
    "changeDynamics": Past(24, "body", BODY, lasts=True),
    "resetJointState": Past(4, "body", BODY),
    "resetJointStateMultiDof": Past(4, "body", BODY),
    "resetJointStatesMultiDof": Past(4, "body", BODY),
    "resetBasePositionAndOrientation": Past(3, "body", BODY),
    "resetBaseVelocity": Past(3, "body", OBJECT),
    "setGravity": Past(3, "exact"),
    "setJointMotorControl2": Past(9, "exact", BODY, lasts=True),
    "setJointMotorControlMultiDof": Past(10, "exact", BODY, lasts=True),
    "setJointMotorControlArray": Past(8, "exact", BODY, lasts=True),
    "setJointMotorControlMultiDofArray": Past(9, "exact", BODY, lasts=True),
    "applyExternalForce": Past(5, "exact", OBJECT),
    "applyExternalTorque": Past(4, "exact", OBJECT),
    "enableJointForceTorqueSensor": Past(3, "exact", BODY, lasts=True),
    "setCollisionFilterPair": Past(5, "exact", "bodyUniqueIdA", lasts=True),
    "setCollisionFilterGroupMask": Past(4, "exact", BODY, lasts=True),
}
"""Functions of PyBullet's that clients of ours have for themselves."""


PastCall = tuple[str, int | None]
"""One of these, of a program, and of which body or constraint."""


def past_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, PastCall]:
    """The client whose number was given, and what was called."""
    places, _, of, _ = PAST[name]
    client = args[places] if len(args) > places else kwargs.get("physicsClientId", 0)
    first = (args[0] if args else kwargs.get(of, kwargs.get("bodyIndex"))) if of else None
    return client, (name, first)


def is_led_here(depth: int) -> bool:
    """Whether the package has led to a call that is so many frames up, not a program by itself."""
    above, frame = 0, inspect.currentframe()
    while frame is not None:
        if above >= depth and frame.f_code.co_filename.startswith(PACKAGE):
            return True
        above, frame = above + 1, frame.f_back
    return False


def what_is_past(name: str, client: int) -> str:
    """What to say of a call."""
    lack = "its steps do not follow that"
    if name == STEP:
        lack = "that closes no loop, and leaves out what is in exact mode"
    return (
        f"{name} of PyBullet's own module was called for client {client}, which is one of"
        f" bulletbridge's: {lack}; call {name} of the BulletClient, or of bulletbridge.pybullet"
    )
