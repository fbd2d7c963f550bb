"""The bodies of a model loaded into a Bullet world."""

import pybullet
from scipy.spatial.transform import Rotation

from bulletbridge.bullet.worlds import gravity, make_passive, remove_bodies, require_client
from bulletbridge.errors import ModelError
from bulletbridge.models.model_spec import ModelSpec
from bulletbridge.models.urdf_file import require_tree


def load_bodies(spec: ModelSpec, client: int) -> dict[str, int]:
    """Load a model's bodies into a world, with motors and Bullet's own damping off.

    Inertia comes from the files, gravity from the model. When anything raises, the bodies loaded so
    far are removed and gravity is what it was.

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
        pybullet.setGravity(*spec.gravity, physicsClientId=client)
        for body in spec.bodies:
            require_tree(body.urdf)
            try:
                ids[body.name] = pybullet.loadURDF(
                    str(body.urdf),
                    basePosition=list(body.xyz),
                    baseOrientation=Rotation.from_euler("xyz", body.rpy).as_quat().tolist(),
                    useFixedBase=body.fixed_base,
                    globalScaling=body.scale,
                    flags=pybullet.URDF_USE_INERTIA_FROM_FILE,
                    physicsClientId=client,
                )
            except pybullet.error as error:
                raise ModelError(
                    f"Bullet cannot load '{body.urdf}' ({error}); check the path and that the file "
                    f"is valid URDF"
                ) from None
            make_passive(ids[body.name], client)
    except BaseException:
        remove_bodies(ids, client, before)
        raise
    return ids
