"""From bodies that are loaded in Bullet to a system, in one call."""

from collections.abc import Mapping, Sequence

import pybullet
from typing_extensions import Unpack

from bulletbridge.bullet.reader import read_bullet
from bulletbridge.constraints.encode import Constraint
from bulletbridge.mechanism.joint_properties import JointProperties, with_joint_properties
from bulletbridge.models.load import SystemOptions
from bulletbridge.system.system import System


def attach(
    bodies: int | Sequence[int] | Mapping[str, int],
    constraints: Sequence[Constraint] = (),
    client: int = 0,
    *,
    joint_damping: bool = True,
    link_damping: float = 0.0,
    joints: Mapping[str, JointProperties] | None = None,
    **options: Unpack[SystemOptions],
) -> System:
    """Close the loops of bodies that are loaded in Bullet, and advance them from now on.

    Gravity, step and the state are Bullet's of this moment. ``system.step()`` takes the place of
    ``stepSimulation`` for these bodies and shows them in Bullet.

    Args:
        bodies: Body ids, one or several; a mapping gives the names that several go by.
        constraints: What closes the loops.
        client: Physics client.
        joint_damping: Whether the URDF's joint damping acts.
        link_damping: Damping of every link as Bullet applies it [1/s]; Bullet's default is 0.04.
        joints: Armature, damping, friction and limits in the place of the URDF's, by joint.
        options: Everything that ``System`` takes.

    Raises:
        ModelError: A body cannot be modelled, or a constraint names what does not exist.
        WorldError: A body or the client does not exist.
    """
    world = read_bullet(bodies, client, joint_damping=joint_damping, link_damping=link_damping)
    parameters = pybullet.getPhysicsEngineParameters(physicsClientId=client)
    options.setdefault("dt", parameters["fixedTimeStep"])
    mechanism = with_joint_properties(world.mechanism, joints or {})
    return System(mechanism, constraints, world=world, **options)
