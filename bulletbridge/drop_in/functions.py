"""PyBullet's functions that are not passed through untouched."""

from typing import Any

import pybullet

from bulletbridge.bullet.constraints import NOBODY, CreatedConstraint
from bulletbridge.bullet.worlds import joint_ids, require_display
from bulletbridge.constraints.joints import SOFTNESS
from bulletbridge.drop_in import body_functions, guards
from bulletbridge.drop_in.function import (
    FUNCTIONS,
    Direct,
    Function,
    Given,
    adds,
    before_call,
    follows,
    lookup,
    replaces,
)
from bulletbridge.drop_in.session import REAL_TIME, SESSIONS, Session, end_session, session_of
from bulletbridge.drop_in.settings import HOOKS, Mode
from bulletbridge.models.loaded_files import mimics_of_body
from bulletbridge.viewer.overlay import has_window

__all__ = ["FUNCTIONS", "body_functions", "lookup"]

# constraints

NO_TARGET = 1e10
"""From here on Bullet takes no note of a gear's ``relativePositionTarget``."""


@replaces(
    "parentBodyUniqueId",
    "parentLinkIndex",
    "childBodyUniqueId",
    "childLinkIndex",
    "jointType",
    "jointAxis",
    "parentFramePosition",
    "childFramePosition",
    "parentFrameOrientation",
    "childFrameOrientation",
)
def createConstraint(session: Session, given: Given) -> Any:
    """Bullet's; also revolute, spherical and planar ones. What ends the process there raises.

    None in place of a vector is zero, as there.
    """
    given = {name: [0.0] * 3 if value is None else value for name, value in given.items()}
    guards.check_child(given, session.client)
    guards.check_turns(given)
    guards.check_gear(given)
    guards.check_axis(given)
    return session.create(given)


@replaces(
    "userConstraintUniqueId",
    "jointChildPivot",
    "jointChildFrameOrientation",
    "maxForce",
    "gearRatio",
    "gearAuxLink",
    "relativePositionTarget",
    "erp",
)
def changeConstraint(session: Session, given: Given) -> Any:
    """Bullet's. A child frame that is moved takes the velocity that brings it there in a step."""
    if any(map(is_unheeded, given, given.values())):
        given = {name: value for name, value in given.items() if not is_unheeded(name, value)}
    if "gearAuxLink" in given:
        guards.check_auxiliary(given, session.client)
    if "jointChildFrameOrientation" in given:
        guards.check_turns(given)
    return session.change(given)


def is_unheeded(name: str, value: Any) -> bool:
    """Whether ``changeConstraint`` of Bullet goes by this value as if it were not given."""
    if name in ("jointChildPivot", "jointChildFrameOrientation"):
        return value is None
    if name == "gearRatio":
        return value == 0
    if name == "relativePositionTarget":
        return not value < NO_TARGET
    return name in ("maxForce", "gearAuxLink", "erp") and not value >= 0


@replaces("userConstraintUniqueId")
def removeConstraint(session: Session, given: Given) -> Any:
    """Bullet's."""
    return session.remove(given)


@replaces("constraintUniqueId")
def getConstraintInfo(session: Session, given: Given) -> Any:
    """Bullet's."""
    answer = session.native("getConstraintInfo", given)
    return session.constraints.shown(given["constraintUniqueId"], answer)


@replaces("constraintUniqueId")
def getConstraintState(session: Session, given: Given) -> Any:
    """Bullet's, with what the filter added in the last step."""
    answer = session.native("getConstraintState", given)
    return session.filtered(given["constraintUniqueId"], answer)


@replaces()
def getNumConstraints(session: Session, given: Given) -> Any:
    """Bullet's."""
    return session.native("getNumConstraints", given) - len(session.constraints.twins())


@replaces("serialIndex")
def getConstraintUniqueId(session: Session, given: Given) -> Any:
    """Bullet's."""
    if not session.constraints.twins() or "serialIndex" not in given:
        return session.native("getConstraintUniqueId", given)
    numbers, place = session.constraints.numbers(), int(given["serialIndex"])
    return numbers[place] if 0 <= place < len(numbers) else -1


# time


CLIENT = {"physicsClientId"}


class Step(Direct):
    """``stepSimulation``, ours."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it as PyBullet's own."""
        if HOOKS.before_call or REAL_TIME:
            before_call()
        client = args[0] if args else kwargs.get("physicsClientId", 0)
        if len(args) + len(kwargs) > 1 or not kwargs.keys() <= CLIENT:
            return self._native(*args, **kwargs)  # raises what it would
        return (SESSIONS.get(client) or session_of(client)).step()


FUNCTIONS["stepSimulation"] = Step(
    "stepSimulation", 0, "Then all loops are closed at position and velocity level."
)


@replaces("enableRealTimeSimulation")
def setRealTimeSimulation(session: Session, given: Given) -> Any:
    """Steps follow the clock whenever a function is called; without a window nothing happens.

    Bullet's own thread would step without closing anything.
    """
    on = bool(given.get("enableRealTimeSimulation"))
    if "enableRealTimeSimulation" in given and len(given) == 1:
        session.start_real_time(on and (HOOKS.headless or has_window(session.client)))
        given = {"enableRealTimeSimulation": 0}
    return session.native("setRealTimeSimulation", given)


@follows("setTimeStep", "timeStep")
def set_time_step(session: Session, given: Given) -> None:
    """Note the new time step for moving frames and exact steps."""
    session.read_all_again()


@follows(
    "setPhysicsEngineParameter",
    *("fixedTimeStep", "numSolverIterations", "useSplitImpulse"),
    *("splitImpulsePenetrationThreshold", "numSubSteps", "collisionFilterMode"),
    *("contactBreakingThreshold", "maxNumCmdPer1ms", "enableFileCaching"),
    *("restitutionVelocityThreshold", "erp", "contactERP", "frictionERP", "enableConeFriction"),
    *("deterministicOverlappingPairs", "allowedCcdPenetration", "jointFeedbackMode"),
    *("solverResidualThreshold", "contactSlop", "enableSAT", "constraintSolverType", "globalCFM"),
    *("minimumSolverIslandSize", "reportSolverAnalytics", "warmStartingFactor"),
    *("sparseSdfVoxelSize", "numNonContactInnerIterations"),
)
def set_physics_engine_parameter(session: Session, given: Given) -> None:
    """Note a new time step for moving frames and exact steps, a new erp for force limits."""
    if {"fixedTimeStep", "numSubSteps"} & given.keys():
        session.read_all_again()
    if "reportSolverAnalytics" in given:
        told = (
            session.observers.add if given["reportSolverAnalytics"] else session.observers.discard
        )
        told(("solver analytics",))
    if "erp" in given:
        session.set_erp(float(given["erp"]))


@follows("setGravity", "gravX", "gravY", "gravZ")
def set_gravity(session: Session, given: Given) -> None:
    """Note the gravity for exact steps."""
    session.set_gravity()


# ours


@adds
def setBridgeMode(session: Session, mode: Mode, bodyUniqueId: int | None = None) -> None:
    """Say who advances bodies that constraints join: "filter", "exact" or "native".

    ``setBridgeMode(mode, bodyUniqueId, physicsClientId)``. "filter": Bullet steps, then loops are
    closed. "exact": our step alone. "native": Bullet alone. What constraints join to the body goes
    along with it; without a body all are meant.

    Raises:
        CallError: There is no such mode, or no such body.
    """
    if bodyUniqueId is not None:
        guards.check_body(bodyUniqueId, session.client)
    session.set_mode(mode, bodyUniqueId)


@adds
def getBridgeLoops(session: Session) -> dict[int, CreatedConstraint]:
    """What became of each constraint, by its id: exact, or Bullet's own and why."""
    return session.loops()


@adds
def coupleMimicJoints(session: Session, bodyUniqueId: int) -> tuple[int, ...]:
    """Couple the joints of a body that have ``<mimic>`` in its URDF, which Bullet ignores.

    ``coupleMimicJoints(bodyUniqueId, physicsClientId)``. Each becomes a gear, and is put where it
    belongs; the ids of these constraints are returned, to be removed like others. Nothing is
    coupled unless this is called, nor twice if it is called again.

    Raises:
        CallError: There is no such body.
        ModelError: The URDF is not found, or joints mimic each other in a circle.
    """
    client, body = session.client, bodyUniqueId
    guards.check_body(body, client)
    joints = joint_ids({"body": body}, client)
    ids: list[int] = []
    for name, mimic in mimics_of_body("body", body, client).items():
        follower, leader = joints[name][1], joints[mimic.joint][1]
        known = session.gear_between((body, follower), (body, leader))
        made: int = NOBODY if known is None else known
        if known is None:
            made = FUNCTIONS["createConstraint"](
                body, follower, body, leader, pybullet.JOINT_GEAR,
                [0, 1, 0], [0, 0, 0], [0, 0, 0], physicsClientId=client,
            )  # fmt: skip
        FUNCTIONS["changeConstraint"](
            made,
            gearRatio=-mimic.multiplier,
            relativePositionTarget=mimic.offset,
            erp=SOFTNESS,
            physicsClientId=client,
        )
        leading = pybullet.getJointState(body, leader, physicsClientId=client)[:2]
        lookup("resetJointState")(
            body,
            follower,
            mimic.multiplier * leading[0] + mimic.offset,
            mimic.multiplier * leading[1],
            physicsClientId=client,
        )
        ids.append(made)
    return tuple(ids)


@adds
def drawBridgeLoops(session: Session, enable: bool = True) -> None:
    """Draw gaps and reactions of the constraints into the window, at most ten times a second.

    ``drawBridgeLoops(enable, physicsClientId)``; without a window nothing happens.
    """
    session.draw(enable)


# clients


class Connect(Function):
    """``connect``, which has no client yet."""

    def __call__(self, *args: Any, **kwargs: Any) -> int:
        """Connect as PyBullet does, to a world of which nothing is known yet."""
        before_call()
        method = args[0] if args else kwargs.get("method")
        if HOOKS.headless and method is not None and method != pybullet.DIRECT:
            args, kwargs = (pybullet.DIRECT,), {}
        elif method in (pybullet.GUI, pybullet.GUI_SERVER):
            require_display("p.GUI", "use p.DIRECT, or bulletbridge run --headless")
        client: int = pybullet.connect(*args, **kwargs)
        end_session(client)
        return client


@replaces()
def disconnect(session: Session, given: Given) -> None:
    """Bullet's."""
    session.native("disconnect", given)
    end_session(session.client)


def connect(_session: Session, _given: Given) -> None:
    """Bullet's. A window without a display, where PyBullet ends the process, raises."""


FUNCTIONS["connect"] = Connect("connect", (), connect)
