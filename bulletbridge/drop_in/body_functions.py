"""PyBullet's functions about bodies that are not passed through untouched."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pybullet

from bulletbridge.drop_in import guards
from bulletbridge.drop_in.exact import ContactTold
from bulletbridge.drop_in.function import (
    FUNCTIONS,
    Direct,
    Function,
    Given,
    Note,
    Noted,
    before_call,
    follows,
    replaces,
)
from bulletbridge.drop_in.session import (
    EXACT,
    NOTHING,
    REAL_TIME,
    SESSIONS,
    LoadedRobot,
    Session,
    session_of,
)
from bulletbridge.drop_in.settings import HOOKS
from bulletbridge.inequalities.contact_rows import tangents
from bulletbridge.models.model_spec import pybullet_data_folder
from bulletbridge.models.urdf_file import is_file
from bulletbridge.numerics.spatial import ZERO

# bodies


@replaces(
    "fileName",
    "basePosition",
    "baseOrientation",
    "useMaximalCoordinates",
    "useFixedBase",
    "flags",
    "globalScaling",
)
def loadURDF(session: Session, given: Given) -> Any:
    """Bullet's. Which file a body has come from is noted."""
    places = (Path(), session.search_path, pybullet_data_folder())
    found = (place / str(given.get("fileName", "")) for place in places)
    path = next((place.resolve() for place in found if is_file(place)), None)
    if path is not None:
        guards.check_tree(path)
    body = session.native("loadURDF", given)
    if path is not None:
        session.note_robot(body, LoadedRobot(path, float(given.get("globalScaling", 1.0))))
    return body


def note_batch(session: Session, args: tuple[Any, ...], kwargs: Given) -> None:
    """All bodies of a batch are listed, where Bullet lists the last one alone."""
    if len(args) >= PLACE_OF_BATCH or kwargs.get("batchPositions") is not None:
        session.native("syncBodyInfo", {})


PLACE_OF_BATCH = 20
FUNCTIONS["createMultiBody"] = Noted("createMultiBody", PLACE_OF_BATCH, note_batch)


@replaces("objectUniqueId", "linkIndex")
def getCollisionShapeData(session: Session, given: Given) -> Any:
    """Bullet's, unless that would end the process."""
    if len(given) == 2:
        guards.check_shapes(given["objectUniqueId"], given["linkIndex"], session.client)
    return session.native("getCollisionShapeData", given)


@follows("setAdditionalSearchPath", "path")
def set_search_path(session: Session, given: Given) -> None:
    """Where files are looked for is noted."""
    session.search_path = Path(given["path"])


@follows("removeBody", "bodyUniqueId")
def remove_body(session: Session, given: Given) -> None:
    """It removes the body's constraints as well."""
    session.remove_body(given["bodyUniqueId"])


@follows(
    "changeDynamics",
    *("bodyUniqueId", "linkIndex", "mass", "lateralFriction", "spinningFriction"),
    *("rollingFriction", "restitution", "linearDamping", "angularDamping", "contactStiffness"),
    *("contactDamping", "frictionAnchor", "localInertiaDiagonal", "ccdSweptSphereRadius"),
    *("contactProcessingThreshold", "activationState", "jointDamping", "anisotropicFriction"),
    *("maxJointVelocity", "collisionMargin", "jointLowerLimit", "jointUpperLimit"),
    *("jointLimitForce", "sleepThreshold"),
)
def change_dynamics(session: Session, given: Given) -> None:
    """Masses and inertias are read again before the next step."""
    session.change_dynamics(given)


@follows(
    "setCollisionFilterPair",
    *("bodyUniqueIdA", "bodyUniqueIdB", "linkIndexA", "linkIndexB", "enableCollision"),
)
def set_filter_pair(session: Session, given: Given) -> None:
    """Exact steps keep to it; Bullet is asked again which other links collide."""
    a, b = given["bodyUniqueIdA"], given["bodyUniqueIdB"]
    places = (a, given["linkIndexA"]), (b, given["linkIndexB"])
    session.actions.filters.pairs[frozenset(places)] = bool(given["enableCollision"])
    session.forget_filters()


@follows(
    "setCollisionFilterGroupMask",
    *("bodyUniqueId", "linkIndexA", "collisionFilterGroup", "collisionFilterMask"),
)
def set_filter_mask(session: Session, given: Given) -> None:
    """Exact steps keep to it; Bullet is asked again which other links collide."""
    place, filters = (given["bodyUniqueId"], given["linkIndexA"]), session.actions.filters
    if given["collisionFilterGroup"] and given["collisionFilterMask"]:
        filters.alone.discard(place)
    else:
        filters.alone.add(place)
    session.forget_filters()


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


def note_reset(session: Session, args: tuple[Any, ...], kwargs: Given) -> None:
    """Loops that it opens are closed before the next step."""
    body = args[0] if args else kwargs.get("bodyUniqueId", kwargs.get("objectUniqueId"))
    session.disturb(body)


for name in ("resetJointState", "resetJointStateMultiDof"):
    FUNCTIONS[name] = Noted(name, 4, note_reset)


def note_velocity(session: Session, args: tuple[Any, ...], kwargs: Given) -> None:
    """Loops that it opens are closed before the next step; what stands still is a belt then."""
    note_reset(session, args, kwargs)
    session.note_belt(args[0] if args else kwargs["objectUniqueId"])


FUNCTIONS["resetBaseVelocity"] = Noted("resetBaseVelocity", 3, note_velocity)


def note_base(session: Session, args: tuple[Any, ...], kwargs: Given) -> None:
    """What hangs on a base that is fixed follows it; otherwise loops are closed at the next step.

    Something fixed that is moved at every step is a moving platform.
    """
    body = args[0] if args else kwargs["bodyUniqueId"]
    session.move_base(body)
    if session.actions.belts:
        session.note_belt(body)


FUNCTIONS["resetBasePositionAndOrientation"] = Noted(
    "resetBasePositionAndOrientation", 3, note_base
)


@replaces("bodyUniqueId", "jointIndices", "targetValues", "targetVelocities")
def resetJointStatesMultiDof(session: Session, given: Given) -> Any:
    """Bullet's. A tuple of values, which ends the process, raises."""
    guards.check_lists(given)
    answer = session.native("resetJointStatesMultiDof", given)
    session.disturb(given["bodyUniqueId"])
    return answer


# motors and forces


TOLD = "Motor torques, and reactions that are measured, are those of our step in exact mode."


class JointStates(Direct):
    """PyBullet's, with what motors exerted and sensors measure where the step was ours.

    Args:
        name: PyBullet's.
        several: Whether it takes several joints.
    """

    def __init__(self, name: str, several: bool) -> None:
        super().__init__(name, 2, TOLD)
        self._several = several

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it as PyBullet's own."""
        if HOOKS.before_call or REAL_TIME:
            before_call()
        answer = self._native(*args, **kwargs)
        if not EXACT:
            return answer
        client = kwargs.get("physicsClientId", 0) if len(args) <= self.count else args[-1]
        session = SESSIONS.get(client)
        body = args[0] if args else kwargs["bodyUniqueId"]
        if session is None or session not in EXACT:
            return answer
        forces = session.motor_forces(body)
        borne = session.joint_reactions(body) if session.sensors else NOTHING
        if not (forces or borne):
            return answer
        if self._several:
            joints = args[1] if len(args) > 1 else kwargs["jointIndices"]
            each = zip(joints, answer, strict=True)
            return tuple(told_by(forces, borne, joint, state) for joint, state in each)
        joint = args[1] if len(args) > 1 else kwargs["jointIndex"]
        return told_by(forces, borne, joint, answer)


def told_by(
    forces: Mapping[int, tuple[float, ...]],
    borne: Mapping[int, tuple[float, ...]],
    joint: int,
    state: tuple[Any, ...],
) -> tuple[Any, ...]:
    """A joint's state with the force of its motor and what it bore in our step, if known."""
    position, rate, reaction, motor = state
    force = forces.get(joint)
    if force is not None:
        motor = force if isinstance(motor, tuple) else force[0]
    return position, rate, borne.get(joint, reaction), motor


for name, several in (
    ("getJointState", False),
    ("getJointStates", True),
    ("getJointStateMultiDof", False),
    ("getJointStatesMultiDof", True),
):
    FUNCTIONS[name] = JointStates(name, several)


COMMANDED = "Exact steps must know which motors are on, and apply joint torques themselves."


def commanding(several: bool, turns: bool) -> Note:
    """What notes commands for one joint or several, which spherical ones follow alone or not."""

    def note(session: Session, args: tuple[Any, ...], kwargs: Given) -> None:
        actions = session.actions
        (actions.command_all if several else actions.command)(args, kwargs, turns)

    note.__doc__ = COMMANDED
    return note


for name, several, turns, count, force in (
    ("setJointMotorControl2", False, False, 9, "force"),
    ("setJointMotorControlMultiDof", False, True, 10, "force"),
    ("setJointMotorControlArray", True, False, 8, "forces"),
    ("setJointMotorControlMultiDofArray", True, True, 9, "forces"),
):
    pushes = 5, force, pybullet.TORQUE_CONTROL
    FUNCTIONS[name] = Noted(name, count, commanding(several, turns), pushes)


class OldMotorControl(Direct):
    """``setJointMotorControl``, which has no names for its arguments and knows client 0 only."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call PyBullet's own, and take note."""
        before_call()
        answer = pybullet.setJointMotorControl(*args, **kwargs)
        torque = args[2] == pybullet.TORQUE_CONTROL
        force = args[3] if torque else args[4] if len(args) > 4 else None
        session_of(0).actions.command(args[:3], {"force": force})
        return answer


FUNCTIONS["setJointMotorControl"] = OldMotorControl("setJointMotorControl", 5, COMMANDED)


def pushing(*names: str) -> Note:
    """What notes an external force or torque, whose arguments have these names."""

    def note(session: Session, args: tuple[Any, ...], kwargs: Given) -> None:
        session.actions.push(names, args, kwargs)

    note.__doc__ = "Note an external force, which exact steps apply themselves."
    return note


for name, vector, *others in (
    ("applyExternalForce", "forceObj", "posObj", "flags"),
    ("applyExternalTorque", "torqueObj", "flags"),
):
    names = "objectUniqueId", "linkIndex", vector, *others
    FUNCTIONS[name] = Noted(name, len(names), pushing(*names), (2, vector, None))


BODY_A, BODY_B, LINK_A, LINK_B = CONTACT = "bodyA", "bodyB", "linkIndexA", "linkIndexB"


class ContactPoints(Direct):
    """``getContactPoints``, with the contacts of our step where Bullet makes none."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it as PyBullet's own."""
        if HOOKS.before_call or REAL_TIME:
            before_call()
        if EXACT:
            client = kwargs.get("physicsClientId", 0)
            client = args[self.count] if len(args) > self.count else client
            session = SESSIONS.get(client)
            told = session.contact_points() if session in EXACT else None
            if told is not None:
                return tuple(select(told, dict(zip(CONTACT, args, strict=False)) | kwargs))
        return self._native(*args, **kwargs)


def select(told: Sequence[ContactTold], given: Given) -> list[tuple[Any, ...]]:
    """Those of some contacts that are asked for, the body first that is named so.

    As in Bullet friction is told on body A in its own order of the two, whoever was asked for.
    """
    found: list[tuple[Any, ...]] = []
    for point, force in told:
        _, a, b, link_a, link_b, at_a, at_b, normal, gap = point
        first = given.get(BODY_A, -1)
        if first >= 0 and first != a:
            if first != b:
                continue
            a, b, link_a, link_b, at_a, at_b = b, a, link_b, link_a, at_b, at_a
            normal, force_along = tuple(-x for x in normal), -force
        else:
            force_along = force
        if given.get(BODY_B, -1) not in (b, -1):
            continue
        if given.get(LINK_A, -2) not in (link_a, -2) or given.get(LINK_B, -2) not in (link_b, -2):
            continue
        forces: list[Any] = [float(np.dot(normal, force_along))]
        for direction in tangents(normal, ZERO):
            forces += float(np.dot(direction, force)), direction
        found.append((0, a, b, link_a, link_b, at_a, at_b, normal, gap, *forces))
    return found


@follows("performCollisionDetection")
def perform_detection(session: Session, given: Given) -> None:
    """Contacts are told of it from then on."""
    session.note_detection()


FUNCTIONS["getContactPoints"] = ContactPoints(
    "getContactPoints",
    4,
    "They are those of our step where nothing moves but what is stepped exactly.",
)


# what looks at Bullet's own steps, which are then made even if all that moves is stepped exactly


def observing(begin: str, parameters: tuple[str, ...], end: str, number: str) -> None:
    """Register a call that starts looking at Bullet's steps, and the one that ends that."""

    def started(session: Session, given: Given) -> int:
        found: int = session.native(begin, given)
        session.observers.add((begin, found))
        return found

    def ended(session: Session, given: Given) -> None:
        session.observers.discard((begin, given[number]))

    started.__doc__, ended.__doc__ = "Bullet's.", "Bullet's steps may be left out again."
    FUNCTIONS[begin] = Function(begin, parameters, started)
    follows(end, number)(ended)


LOG = (
    *("loggingType", "fileName", "objectUniqueIds", "maxLogDof", "bodyUniqueIdA"),
    *("bodyUniqueIdB", "linkIndexA", "linkIndexB", "deviceTypeFilter", "logFlags"),
)
observing("startStateLogging", LOG, "stopStateLogging", "loggingId")
observing("loadPlugin", ("pluginPath", "postFix"), "unloadPlugin", "pluginUniqueId")


@follows("enableJointForceTorqueSensor", "bodyUniqueId", "jointIndex", "enableSensor")
def enable_sensor(session: Session, given: Given) -> None:
    """Reactions that it measures are those of our step in exact mode."""
    sensor = given["bodyUniqueId"], given["jointIndex"]
    if given.get("enableSensor", 1):
        session.sensors.add(sensor)
    else:
        session.sensors.discard(sensor)


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


MOTION = "objPositions", "objVelocities", "objAccelerations"
guarded("calculateMassMatrix", "bodyUniqueId", "objPositions", "flags")
guarded("calculateInverseDynamics", "bodyUniqueId", *MOTION, "flags")
guarded("calculateJacobian", "bodyUniqueId", "linkIndex", "localPosition", *MOTION)
