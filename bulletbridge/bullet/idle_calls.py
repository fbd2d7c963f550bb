"""Calls of PyBullet's own module that do nothing to bodies that a system advances are told of."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from bulletbridge.bullet.state import BulletBodies
from bulletbridge.bullet.watched_calls import unwatch, watch
from bulletbridge.errors import WorldError, warn_user


class Idle(NamedTuple):
    """A function that does nothing to bodies that a system advances.

    Attributes:
        places: How many arguments it takes before the client's number.
        bodies: Places and names of those that are bodies; none where the first is a constraint.
        asks: Place, name and default of what makes it do nothing anyway, where all are zero.
        instead: What takes its place.
    """

    places: int
    bodies: tuple[tuple[int, str], ...]
    asks: tuple[tuple[int, str, float], ...]
    instead: str


BODY, OBJECT = ((0, "bodyUniqueId"),), ((0, "objectUniqueId"),)
PARENT_AND_CHILD = (0, "parentBodyUniqueId"), (2, "childBodyUniqueId")
CONSTRAINT, ANYTHING = (0, "userConstraintUniqueId"), ((99, "", 1.0),)
FORCE, FORCES = ((5, "force", 1.0),), ((5, "forces", 1.0),)
DAMPING_AND_LIMITS = (
    *((7, "linearDamping", 0.0), (8, "angularDamping", 0.0), (16, "jointDamping", 0.0)),
    *((20, "jointLowerLimit", 0.0), (21, "jointUpperLimit", 0.0)),
)
"""Of joints and links, which Bullet does not tell; masses and friction it does."""
MOTOR = "motors are system.motors.set(joint, position=..., force=...), torques system.tau"
PUSH = 'forces are forces={"push": bulletbridge.Wrench(...)} of attach and load'
JOIN = "constraints are given to attach, or to system.connect, among bodies that it advances"
PROPERTIES = (
    "damping and limits of joints are joints={joint: bulletbridge.JointProperties(damping=...,"
    " limits=...)} of attach, damping of links is link_damping=..."
)
MOVE = 'that is "constraint #" of the system, which stays as it was made'
NUMBER = "#"
"""Stands for that of a constraint."""
IDLE = {
    "setJointMotorControl2": Idle(9, BODY, FORCE, MOTOR),
    "setJointMotorControlMultiDof": Idle(10, BODY, FORCE, MOTOR),
    "setJointMotorControlArray": Idle(8, BODY, FORCES, MOTOR),
    "setJointMotorControlMultiDofArray": Idle(9, BODY, FORCES, MOTOR),
    "applyExternalForce": Idle(5, OBJECT, ((2, "forceObj", 1.0),), PUSH),
    "applyExternalTorque": Idle(4, OBJECT, ((2, "torqueObj", 1.0),), PUSH),
    "createConstraint": Idle(10, PARENT_AND_CHILD, ANYTHING, JOIN),
    "removeConstraint": Idle(1, (), ANYTHING, 'it lets go by system.disconnect("constraint #")'),
    "changeDynamics": Idle(24, BODY, DAMPING_AND_LIMITS, PROPERTIES),
    "changeConstraint": Idle(8, (), ANYTHING, MOVE),
}

_advanced: dict[tuple[int, int], ref[BulletBodies]] = {}
"""Who shows a body, by client and body."""
_taken: dict[tuple[int, int], int] = {}
"""A body of each constraint that was taken over, by client and constraint."""
_told: set[tuple[int, int, str]] = set()


def look(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Tell where a call does nothing."""
    idle = IDLE[name]

    def given(place: int, name: str, default: object = None) -> Any:
        return args[place] if len(args) > place else kwargs.get(name, default)

    client = given(idle.places, "physicsClientId", 0)
    if not idle.bodies:
        number = given(*CONSTRAINT)
        if (client, number) in _taken:
            tell(name, client, _taken[client, number], str(number))
    for place, body in idle.bodies:
        if (client, given(place, body)) in _advanced and any(
            np.any(given(*asked)) for asked in idle.asks
        ):
            tell(name, client, given(place, body))


def tell(function: str, client: int, body: int, number: str = "") -> None:
    """Warn once of each body, or of each constraint."""
    bodies, place = _advanced[client, body](), (client, body, function + number)
    if bodies is None or place in _told:
        return
    try:
        bodies.check(False)
    except WorldError:  # it is another body by now
        return
    _told.add(place)
    name = next(name for name, known in bodies.body_ids.items() if known == body)
    instead = IDLE[function].instead.replace(NUMBER, number)
    warn_user(
        f"{function} does nothing to body '{name}' (id {body}), which a System advances:"
        f" {instead}. bulletbridge.BulletClient follows such calls"
    )


def tell_of_idle_calls(bodies: BulletBodies, taken: Sequence[int] = ()) -> None:
    """Have calls that do nothing to these bodies warn, as long as somebody has them.

    Args:
        bodies: Which a system advances.
        taken: Numbers of Bullet's constraints that it has taken over.

    Warns:
        BulletBridgeWarning: At the first such call of each function for each body; it names both,
            and what takes the place of the call.
    """
    client, first = bodies.client, next(iter(bodies.body_ids.values()), -1)
    keys = [(client, body) for body in bodies.body_ids.values()]

    def forget(gone: ref[BulletBodies]) -> None:
        for key in [key for key in keys if _advanced.get(key) is gone]:
            del _advanced[key]
            _told.difference_update([place for place in _told if place[:2] == key])
        for key in [key for key, body in _taken.items() if (key[0], body) not in _advanced]:
            del _taken[key]
        if not _advanced:
            unwatch(IDLE, look)

    known = ref(bodies, forget)
    for key in keys:
        _advanced[key] = known
        _told.difference_update([place for place in _told if place[:2] == key])
    _taken.update({(client, number): first for number in taken})
    # last: what is let go of meanwhile may have been the last that was watched
    watch(IDLE, look)
