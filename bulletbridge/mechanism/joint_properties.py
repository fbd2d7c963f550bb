"""What a joint has besides its motion: armature, damping, friction and limits."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from bulletbridge.errors import ModelError, require_kind
from bulletbridge.mechanism.model import Joint, Mechanism
from bulletbridge.numerics.records import are_numbers


@dataclass(frozen=True)
class JointProperties:
    """Properties of a tree joint, in the place of those that its URDF gives it; None leaves those.

    Attributes:
        armature: Inertia of the rate itself [kg m² or kg], such as that of a motor's rotor about
            its axis times the squared ratio of its gear. It adds to the diagonal of the mass
            matrix and to the kinetic energy; gyroscopic effects of the rotor are left out.
        damping: Force against the rate [N m s/rad or N s/m]; of a floating base against its turns.
        friction: Largest Coulomb friction [N m or N].
        limits: Lowest and highest position [rad or m]; of a spherical joint 0 and how far it turns
            from its zero position at most, about whatever axis.

    Raises:
        ModelError: A number is not finite or is negative; limits are not in order.
    """

    armature: float | None = None
    damping: float | None = None
    friction: float | None = None
    limits: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        for name in ("armature", "damping", "friction"):
            value = getattr(self, name)
            if value is not None and not (are_numbers(value) and value >= 0.0):
                raise ModelError(f"the {name} of a joint is {value!r}; give 0 or more")
        if not (self.limits is None or are_ordered(self.limits)):
            raise ModelError(
                f"limits {self.limits!r} of a joint; give two numbers, the lower first"
            )


def are_ordered(limits: object) -> bool:
    """Whether something is two numbers, the lower first; either may be infinite."""
    found = np.asarray(limits)
    return found.shape == (2,) and found.dtype.kind in "iuf" and bool(found[0] <= found[1])


PROPERTIES = tuple(field.name for field in fields(JointProperties))


def with_joint_properties(
    mechanism: Mechanism, properties: Mapping[str, JointProperties]
) -> Mechanism:
    """The mechanism with properties of joints in the place of those that it has.

    Args:
        mechanism: The tree.
        properties: By joint name. Spherical joints take armature, damping and friction for each
            rate, floating bases damping of their turns.

    Raises:
        ModelError: There is no such joint, or it cannot have that property.
    """
    axes, joints = mechanism.axes.copy(), dict(mechanism.joints)
    for name, given in properties.items():
        joint = mechanism.joint(name)
        require_kind(
            given,
            JointProperties,
            f"the properties of joint '{name}' are {given!r}; give bb.JointProperties(damping=...)",
        )
        _require_possible(joint, given)
        for field in ("armature", "damping"):
            value = getattr(given, field)
            if value is not None:
                turns = slice(joint.v.start, joint.v.start + 3)
                axes[field][turns if joint.kind == "free" else joint.v] = value
        if given.friction is not None:
            joint = replace(joint, friction=given.friction)
        if given.limits is not None:
            joint = replace(joint, lower=given.limits[0], upper=given.limits[1])
        joints[name] = joint
    return replace(mechanism, axes=axes, joints=joints)


def _require_possible(joint: Joint, given: JointProperties) -> None:
    if joint.is_single:
        return
    for name in PROPERTIES:
        if getattr(given, name) is None or joint.kind == "spherical":
            continue
        if joint.kind != "free" or name != "damping":
            raise ModelError(
                f"the {joint.kind} joint '{joint.name}' takes no {name}; only revolute, prismatic"
                " and spherical joints do"
            )
    if given.limits is not None and not given.limits[0] == 0.0 < given.limits[1]:
        raise ModelError(
            f"limits {given.limits!r} of the spherical joint '{joint.name}'; give 0 and the largest"
            " turn from its zero position"
        )
