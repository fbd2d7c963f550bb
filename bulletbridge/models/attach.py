"""From bodies that are loaded in Bullet to a system, in one call."""

from collections.abc import Mapping, Sequence

import pybullet
from typing_extensions import Unpack

from bulletbridge.bullet.idle_calls import tell_of_idle_calls
from bulletbridge.bullet.reader import name_bodies, read_bullet
from bulletbridge.constraints.encode import Constraint
from bulletbridge.errors import warn_user
from bulletbridge.mechanism.joint_properties import JointProperties, with_joint_properties
from bulletbridge.models.load import LoadOptions
from bulletbridge.models.loaded_mimics import mimics_of_bodies
from bulletbridge.models.nearest_inertia import give_nearest_inertias
from bulletbridge.system.system import System


def attach(
    bodies: int | Sequence[int] | Mapping[str, int],
    constraints: Sequence[Constraint] = (),
    client: int = 0,
    *,
    joint_damping: bool = True,
    link_damping: float = 0.0,
    repair_inertia: bool = False,
    mimic: bool = False,
    joints: Mapping[str, JointProperties] | None = None,
    **options: Unpack[LoadOptions],
) -> System:
    """Close the loops of bodies that are loaded in Bullet, and advance them from now on.

    Gravity, step and the state are Bullet's of this moment. ``system.step()`` takes the place of
    ``stepSimulation`` for these bodies and shows them in Bullet. Motors, forces and constraints of
    PyBullet's module do nothing to them, and say so: use ``system.motors``, ``system.tau``,
    ``forces`` and ``constraints``, or ``BulletClient``, which follows such calls.

    Args:
        bodies: Body ids, one or several; a mapping gives the names that several go by.
        constraints: What closes the loops.
        client: Physics client.
        joint_damping: Whether the URDF's joint damping acts.
        link_damping: Damping of every link as Bullet applies it [1/s]; Bullet's default is 0.04.
        repair_inertia: Whether links whose inertia Bullet has made zero, because no body can have
            the one in the URDF, get the nearest that one can, here and in Bullet; what was done is
            a warning.
        mimic: Whether joints that have ``<mimic>`` in the URDF are coupled.
        joints: Armature, damping, friction and limits in the place of the URDF's, by joint.
        options: Everything that ``System`` takes.

    Raises:
        ModelError: A body cannot be modelled, or a constraint names what does not exist.
        WorldError: A body or the client does not exist.

    Warns:
        BulletBridgeWarning: An inertia was replaced; later, a call of PyBullet's module does
            nothing to these bodies.
    """
    ids = name_bodies(bodies, client)
    if repair_inertia:
        said = give_nearest_inertias(ids, client)
        if said:
            warn_user("; ".join(said))
    if mimic:
        constraints = (*constraints, *mimics_of_bodies(ids, client))
    world = read_bullet(bodies, client, joint_damping=joint_damping, link_damping=link_damping)
    parameters = pybullet.getPhysicsEngineParameters(physicsClientId=client)
    options.setdefault("dt", parameters["fixedTimeStep"])
    mechanism = with_joint_properties(world.mechanism, joints or {})
    system = System(mechanism, constraints, world=world, **options)
    tell_of_idle_calls(world)
    return system
