"""The bodies of a model loaded into a Bullet world."""

import re
from pathlib import Path

import pybullet

from bulletbridge.bullet.silence import said_by_bullet
from bulletbridge.bullet.worlds import gravity, make_passive, remove_bodies, require_client
from bulletbridge.constraints.joints import Triple
from bulletbridge.errors import ModelError
from bulletbridge.models.model_spec import BodySpec, ModelSpec
from bulletbridge.models.principal_axes import in_principal_axes
from bulletbridge.models.urdf_file import require_tree

PLACE = re.compile(r"b3(?:Warning|Error|Printf)\[[^\]]*\]:\n?|argv\[0\]=")
"""Where in Bullet's sources something is printed."""
MOST_SAID = 400
"""Characters of Bullet's reasons that a message shows."""
REMEDIES = {
    "must have inertia": "give the link's <inertial> an <inertia>, or remove it: 'bulletbridge"
    " inertia' computes it from the link's shapes",
    "must have a mass": "give the link's <inertial> a <mass>",
    "cannot find": "put it there, or take its shape out of the URDF",
    "URDF file": "check the path, and that the file is URDF",
}
"""What to do about what Bullet says."""


def load_bodies(spec: ModelSpec, client: int, pull: Triple | None = None) -> dict[str, int]:
    """Load a model's bodies into a world, with motors and Bullet's own damping off.

    Inertia comes from the files. When anything raises, the bodies loaded so far are removed and
    gravity is what it was.

    Args:
        spec: The model.
        client: The world.
        pull: Gravity that the world is given [m/s²]; None for the model's.

    Returns:
        Bullet's body ids by the model's body names.

    Raises:
        ModelError: Bullet cannot load a file; the message names it.
        WorldError: There is no such client.
    """
    require_client(client)
    before = gravity(client)
    ids: dict[str, int] = {}
    try:
        # PyBullet otherwise answers with the old text of a file that was rewritten meanwhile
        pybullet.setPhysicsEngineParameter(enableFileCaching=0, physicsClientId=client)
        pybullet.setGravity(*(pull or spec.own_gravity), physicsClientId=client)
        for body in spec.bodies:
            require_tree(body.urdf)
            try:
                ids[body.name] = _load(body, in_principal_axes(body.urdf), client)
            except pybullet.error as error:
                raise ModelError(_refusal(body, client, str(error))) from None
            make_passive(ids[body.name], client)
    except BaseException:
        remove_bodies(ids, client, before)
        raise
    return ids


def load_scenery(spec: ModelSpec, client: int) -> dict[str, int]:
    """Load what stands in a model's world beside its robots.

    When anything raises, what was loaded so far is removed.

    Returns:
        Bullet's body ids by name.

    Raises:
        ModelError: Bullet cannot load a file; the message names it.
        WorldError: There is no such client.
    """
    require_client(client)
    ids: dict[str, int] = {}
    try:
        for body in spec.scenery:
            try:
                ids[body.name] = _load(body, body.urdf, client)
            except pybullet.error as error:
                raise ModelError(_refusal(body, client, str(error))) from None
    except BaseException:
        remove_bodies(ids, client, gravity(client))
        raise
    return ids


def _load(body: BodySpec, urdf: Path, client: int) -> int:
    """Bullet's id of a body that it has loaded from a file."""
    return pybullet.loadURDF(
        str(urdf),
        basePosition=list(body.xyz),
        baseOrientation=pybullet.getQuaternionFromEuler(body.rpy),
        useFixedBase=body.fixed_base,
        globalScaling=body.scale,
        flags=pybullet.URDF_USE_INERTIA_FROM_FILE | pybullet.URDF_USE_IMPLICIT_CYLINDER,
        physicsClientId=client,
    )


def _refusal(body: BodySpec, client: int, error: str) -> str:
    """Message for a file that Bullet refuses, with the reason that it prints."""
    text = PLACE.sub("\n", said_by_bullet(lambda: _load(body, body.urdf, client)))
    reasons = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    why = "; ".join(dict.fromkeys(reasons))[:MOST_SAID] or error
    hint = next((remedy for said, remedy in REMEDIES.items() if said in why), "")
    return f"Bullet cannot load '{body.urdf}': {why}; {hint or 'correct the file there'}"
