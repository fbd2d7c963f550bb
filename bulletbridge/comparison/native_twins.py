"""Constraints without a native equivalent in Bullet."""

from bulletbridge.constraints.force_elements import Spring, Tendon
from bulletbridge.constraints.joints import Coupling, Distance, JointModel, LoopJoint
from bulletbridge.errors import ModelError
from bulletbridge.models.model_spec import ModelSpec


class NoNativeTwinError(ModelError):
    """Bullet has no constraint of its own for something in the model."""


def require_native_twin(spec: ModelSpec) -> None:
    """Raise unless Bullet has a constraint for each of the model's.

    Raises:
        NoNativeTwinError: It has not; the message names the constraint and the reason.
    """
    for beam in spec.beams:
        raise NoNativeTwinError(
            f"'{beam.joint}' has no native twin: Bullet has no flexible beams; without 'beams' it "
            "can be compared as a chain of segments"
        )
    acting = (*spec.elements, *spec.wrenches)
    if acting and any(not body.fixed_base for body in spec.bodies):
        raise NoNativeTwinError(
            f"'{acting[0].name}' has no native twin: springs and wrenches are compared as torques"
            " on the joints of robots with a fixed base"
        )
    for element in spec.elements:
        if isinstance(element, Spring | Tendon) and element.bounded:
            raise NoNativeTwinError(
                f"'{element.name}' has no native twin: Bullet has no motors, limits or friction"
                " along springs and tendons"
            )
    for wrench in spec.wrenches:
        if callable(wrench.force) or callable(wrench.torque):
            raise NoNativeTwinError(
                f"'{wrench.name}' has no native twin: Bullet holds a force for a whole step, and"
                " this one is a function"
            )
    for constraint in spec.constraints:
        reason = _missing_twin(constraint)
        if reason:
            raise NoNativeTwinError(f"'{constraint.name}' has no native twin: {reason}")


def _missing_twin(constraint: LoopJoint | Distance | Coupling) -> str:
    """Why Bullet has no such constraint; empty if it has."""
    if constraint.motion is not None:
        return "Bullet's constraints cannot be driven along a prescribed motion"
    if constraint.max_force is not None:
        return "its force limit is compared in the drop-in client only"
    if isinstance(constraint, Distance):
        return "Bullet has no distance constraint between links"
    if isinstance(constraint, LoopJoint) and (constraint.turn or constraint.travel):
        return "Bullet's constraints have no motors, limits or friction"
    if isinstance(constraint, Coupling):
        used = {name: c for name, c in constraint.coefficients.items() if c != 0.0}
        if len(used) != 2 or len(constraint.coefficients) != 2:
            return f"JOINT_GEAR couples two joints, not {len(used)}"
        if constraint.higher:
            return "JOINT_GEAR has one ratio"
        return ""
    return NO_TWIN.get(constraint.model, "")


NO_TWIN = {
    JointModel.UNIVERSAL: "Bullet has no universal constraint between links",
    JointModel.CYLINDRICAL: "Bullet has no cylindrical constraint between links",
    JointModel.PLANAR: "createConstraint refuses JOINT_PLANAR",
    JointModel.SCREW: "Bullet has no screw constraint",
    JointModel.POINT_ON_LINE: "Bullet has no constraint of a point to a line",
    JointModel.POINT_ON_PLANE: "Bullet has no constraint of a point to a plane",
    JointModel.POINT_ON_SPHERE: "Bullet has no constraint of a point to a sphere",
    JointModel.POINT_ON_CYLINDER: "Bullet has no constraint of a point to a cylinder",
    JointModel.SOFT_FINGER: "Bullet has no soft finger",
    JointModel.ROLLING: "Bullet has no rolling constraint",
    JointModel.PURE_ROLLING: "Bullet has no rolling constraint",
    JointModel.GENERAL: "Bullet has no constraint with free motions of one's own",
}
