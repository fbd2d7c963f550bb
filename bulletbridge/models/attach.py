"""From bodies that are loaded in Bullet to a system, in one call."""

from collections.abc import Mapping, Sequence

from typing_extensions import Unpack

from bulletbridge.bullet.constraints import BulletConstraints, constraints_among
from bulletbridge.bullet.idle_calls import tell_of_idle_calls
from bulletbridge.bullet.reader import name_bodies, read_bullet
from bulletbridge.bullet.worlds import ClientObject, require_client, time_step
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.joints import Coupling, LoopJoint
from bulletbridge.engine.force_signals import require_list
from bulletbridge.errors import warn_user
from bulletbridge.mechanism.angles import degrees_notes
from bulletbridge.mechanism.joint_properties import JointProperties, with_joint_properties
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.models.load import LoadOptions
from bulletbridge.models.loaded_files import (
    mimics_of_bodies,
    tell_of_loose_joints,
    tell_of_open_loops,
)
from bulletbridge.models.nearest_inertia import give_nearest_inertias
from bulletbridge.models.odd_starts import tell_of_shapeless
from bulletbridge.system.system import System


def attach(
    bodies: int | Sequence[int] | Mapping[str, int],
    constraints: Sequence[Constraint] | None = None,
    client: int | ClientObject = 0,
    *,
    joint_damping: bool = True,
    link_damping: float = 0.0,
    repair_inertia: bool = False,
    mimic: bool | None = None,
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
        constraints: What closes the loops; unless given, what ``createConstraint`` has joined these
            bodies by, under the names ``constraint 1`` and so on, assembled at once.
        client: Physics client, by its number or as a ``BulletClient``.
        joint_damping: Whether the URDF's joint damping acts.
        link_damping: Damping of every link as Bullet applies it [1/s]; Bullet's default is 0.04.
        repair_inertia: Whether links whose inertia Bullet has made zero, because no body can have
            the one in the URDF, get the nearest that one can, here and in Bullet; what was done is
            a warning.
        mimic: Whether joints that have ``<mimic>`` in the URDF are coupled; unless given they are
            not, and a warning says so.
        joints: Armature, damping, friction and limits in the place of the URDF's, by joint;
            damping and limits that ``changeDynamics`` gave are to be given here, for Bullet does
            not tell them.
        options: Everything that ``System`` takes.

    Raises:
        ModelError: A body cannot be modelled, or a constraint names what does not exist.
        WorldError: A body or the client does not exist.
        AssemblyError: What ``createConstraint`` has made cannot be closed.

    Warns:
        BulletBridgeWarning: An inertia was replaced, Bullet has constraints of these bodies that
            do nothing to them, for others are given or an end is elsewhere, or their URDF has
            ``<mimic>`` or loops that nothing closes; later, a call of PyBullet's module does
            nothing to these bodies.
    """
    if constraints is not None:
        require_list(constraints)
    client = require_client(client)
    ids = name_bodies(bodies, client)
    if repair_inertia:
        said = give_nearest_inertias(ids, client)
        if said:
            warn_user("; ".join(said))
    world = read_bullet(bodies, client, joint_damping=joint_damping, link_damping=link_damping)
    options.setdefault("dt", time_step(client))
    mechanism = with_joint_properties(world.mechanism, joints or {})
    found = constraints_among(ids, client)
    _tell_of_idle_constraints(found, constraints is not None, ids)
    taken = {n: each for n, each in found.joining.items() if not _is_idle(each, mechanism)}
    if constraints is not None:
        taken = {}
    joining = list(taken.values()) if constraints is None else constraints
    if mimic:
        joining = (*joining, *mimics_of_bodies(ids, client))
    elif mimic is None:
        tell_of_loose_joints(ids, client, joining)
    if constraints is None and not taken:
        tell_of_open_loops(ids, client)
    system = System(mechanism, joining, world=world, **options)
    _tell_of_degrees(joining)
    if taken:  # Bullet leaves them open
        system.assemble()
    if options.get("contacts"):
        tell_of_shapeless(ids, client)
    tell_of_idle_calls(world, list(taken))
    return system


def _tell_of_degrees(constraints: Sequence[Constraint]) -> None:
    """Warn of frames that look as if they were turned by degrees."""
    joints = [each for each in constraints if isinstance(each, LoopJoint)]
    frames = [(j.name, f) for j in joints for f in (j.a, j.b)]
    for said in degrees_notes({f"rpy of '{name}' on '{f.link}'": f.rpy for name, f in frames}):
        warn_user(said)


def _tell_of_idle_constraints(
    found: BulletConstraints, given: bool, ids: Mapping[str, int]
) -> None:
    """Warn of Bullet's constraints that do nothing, since others are given or an end is missing."""
    left = [*found.left, *(f"{x.name} joins them" for x in found.joining.values() if given)]
    if left:
        warn_user(
            f"constraints of Bullet's do nothing to {', '.join(map(repr, ids))}: {'; '.join(left)}."
            " Remove them, or name all bodies that they join and leave `constraints` out, which"
            " takes those that Bullet has"
        )


def _is_idle(joint: LoopJoint | Coupling, mechanism: Mechanism) -> bool:
    """Whether a constraint joins what is one rigid body anyway."""
    if isinstance(joint, Coupling):
        return False
    return mechanism.link(joint.a.link).body == mechanism.link(joint.b.link).body
