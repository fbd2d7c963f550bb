"""Chains of segments that a loops file calls beams: their place and size, read off the chain."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bulletbridge.bullet.reader import BulletBodies, read_bullet
from bulletbridge.bullet.shown_chain import Shown, with_beams
from bulletbridge.bullet.worlds import readable
from bulletbridge.errors import ModelError
from bulletbridge.mechanism.beams import FlexibleBeam
from bulletbridge.mechanism.build import Load
from bulletbridge.mechanism.chain_to_beam import replace_chain
from bulletbridge.mechanism.frames import matrix_rpy, triple
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.models.flexible.urdf import find_link, inertial_of
from bulletbridge.models.model_spec import BeamSpec, BodySpec, ModelSpec
from bulletbridge.models.urdf_file import read_urdf
from bulletbridge.numerics.records import Array


def read_world(spec: ModelSpec, ids: dict[str, int], client: int) -> BulletBodies:
    """Read a model's bodies out of Bullet, with beams where the model has them.

    Raises:
        ModelError: A body cannot be modelled, or a beam has no chain.
    """
    rotors = {n: given.armature for n, given in spec.joints.items() if given.armature is not None}
    bodies = read_bullet(readable(ids), client, joint_friction=spec.joint_friction, armature=rotors)
    mechanism, shown = bodies.mechanism, list[Shown]()
    for beam in spec.beams:
        shown.append(_show(mechanism, beam, spec.bodies))
        mechanism = shown[-1].replacement.mechanism
    return with_beams(bodies, shown)


def chain_joints(mechanism: Mechanism, link: str) -> list[str]:
    """Joints of the chain that ``bulletbridge flexible`` has put in the place of a link.

    Raises:
        ModelError: There is none.
    """
    found: list[str] = []
    while (name := f"{link}_bend_{len(found) + 1}") in mechanism.joints:
        found.append(name)
    if not found or f"{link}_segment_1" not in mechanism.links:
        raise ModelError(
            f"link '{link}' is no chain of segments: there is no joint '{link}_bend_1' on a link "
            f"'{link}_segment_1'; write one with `bulletbridge flexible`"
        )
    return found


def _show(mechanism: Mechanism, spec: BeamSpec, bodies: Sequence[BodySpec]) -> Shown:
    joints = chain_joints(mechanism, spec.link)
    root = f"{spec.link}_segment_1"
    link = mechanism.link(root)
    places, R = _straight(mechanism, joints)
    origin = link.R.T @ (places[0] - link.p)
    x = origin / np.linalg.norm(origin)
    z = link.R.T @ R[:, 2]
    reach = np.linalg.norm(places - link.p, axis=1)
    beam = FlexibleBeam(
        float(reach[-1] + reach[0]), spec.EI, spec.mass_per_length, spec.modes, spec.damping
    )
    replacement = replace_chain(
        mechanism,
        joints,
        spec.joint,
        beam,
        root,
        rpy=matrix_rpy(np.asarray(np.stack([x, np.cross(z, x), z], axis=1), np.float64)),
        segments={name: _load(name, bodies) for name in (root, spec.link)},
    )
    return Shown(mechanism, replacement, joints, spec.joint, beam, reach)


def _straight(mechanism: Mechanism, joints: Sequence[str]) -> tuple[Array, Array]:
    """Places (n, 3) of a straight chain's joints and frame (3, 3) of the first, in its root."""
    R, p, places, first = np.eye(3), np.zeros(3), list[Array](), np.eye(3)
    for n, name in enumerate(joints):
        body = mechanism.bodies[mechanism.axes[mechanism.joint(name).v.start]["body"]]
        p, R = p + R @ body["p"], R @ body["R"]
        first = first if n else R
        places.append(p)
    return np.array(places), first


def _load(name: str, bodies: Sequence[BodySpec]) -> Load:
    """Mass of a link as its file has it, in the link's frame."""
    body, link = bodies[0], name
    if len(bodies) > 1:
        prefix, _, link = name.partition("/")
        body = {each.name: each for each in bodies}[prefix]
    robot = read_urdf(body.urdf).getroot()
    effort = inertial_of(find_link(robot, link), np.eye(3))
    if effort is None:
        return Load()
    return Load(effort.mass, triple(body.scale * effort.com), effort.J)


def without_chains(spec: ModelSpec, mechanism: Mechanism) -> ModelSpec:
    """A model whose forces leave out the springs of chains that are beams."""
    chains = tuple(f"{beam.link}_bend_" for beam in spec.beams)
    kept = tuple(
        force
        for force in spec.forces
        if force.joint in mechanism.joints or not force.joint.startswith(chains)
    )
    return replace(spec, forces=kept)
