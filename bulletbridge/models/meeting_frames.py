"""Models whose loops are drawn side by side: frames moved to where they can meet."""

from dataclasses import replace

import numpy as np

from bulletbridge.bullet.worlds import connect_direct, disconnect
from bulletbridge.constraints.encode import Constraint
from bulletbridge.constraints.joints import LoopJoint
from bulletbridge.models.bodies import load_bodies
from bulletbridge.models.modal_beams import read_world
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.system.system import System

ROUND_OFF = 1e-12
"""Ways [m] that are none."""


def with_meeting_frames(spec: ModelSpec) -> ModelSpec:
    """The model with frames b of its loops where they can meet frames a.

    They are moved only in directions in which no joint moves them, as across the plane of a
    linkage; each is told in the notes.
    """
    if not spec.constraints:
        return spec
    client = connect_direct()
    try:
        world = read_world(spec, load_bodies(spec, client), client)
        system = System(world.mechanism, spec.constraints, world=world, springs="explicit")
        off = system.misplaced_frames(spec.start_guess | spec.start_q)
    finally:
        disconnect(client)
    notes = list(spec.notes)

    def met(constraint: Constraint) -> Constraint:
        if constraint.name not in off or not isinstance(constraint, LoopJoint):
            return constraint
        way = np.where(np.abs(off[constraint.name]) > ROUND_OFF, off[constraint.name], 0.0)
        told = " ".join(f"{0.0 - each:.4g}" for each in way)
        notes.append(
            f"loop '{constraint.name}': its frame on '{constraint.b.link}' is moved by ({told}) m,"
            " where no joint could close it"
        )
        return replace(constraint, b=constraint.b.moved(-way))

    constraints = tuple(met(each) for each in spec.constraints)
    return replace(spec, constraints=constraints, notes=tuple(notes))
