"""Worlds of Bullet with solids of one link on the ground."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pybullet
from scipy.spatial.transform import Rotation

import bulletbridge as bb
from bulletbridge.numerics.records import Array

G, DT = 9.81, 1 / 240
FLAGS = pybullet.URDF_USE_INERTIA_FROM_FILE
BLOCK = "0.2 0.4 0.3"


class SolidWorld:
    """A DIRECT client with bodies of one link."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.client = folder, pybullet.connect(pybullet.DIRECT)
        pybullet.setGravity(0, 0, -G, self.client)
        pybullet.setPhysicsEngineParameter(enableFileCaching=0, physicsClientId=self.client)

    def ground(self, angle: float = 0.0, plane: bool = False) -> tuple[Array, Array]:
        """The top of a large box, or a plane, turned about y; downhill and normal.

        On a plane Bullet finds one corner of a box at a time, on a box all four at once.
        """
        R, client = Rotation.from_rotvec([0, angle, 0]), self.client
        if plane:
            shape = pybullet.createCollisionShape(
                pybullet.GEOM_PLANE, planeNormal=[0, 0, 1], physicsClientId=client
            )
        else:
            shape = pybullet.createCollisionShape(
                pybullet.GEOM_BOX, halfExtents=[5, 5, 0.5], physicsClientId=client
            )
        place = R.apply([0, 0, 0 if plane else -0.5]).tolist()
        turn = R.as_quat().tolist()
        body = pybullet.createMultiBody(0, shape, -1, place, turn, physicsClientId=client)
        self.rub(body, 1.0, 1.0)
        return R.apply([1, 0, 0]), R.apply([0, 0, 1])

    def rub(self, body: int, friction: float, restitution: float = 0.0, **more: Any) -> None:
        """Coefficients of all links."""
        for link in range(-1, pybullet.getNumJoints(body, self.client)):
            pybullet.changeDynamics(
                body,
                link,
                lateralFriction=friction,
                restitution=restitution,
                physicsClientId=self.client,
                **more,
            )

    def solid(
        self,
        shape: str,
        place: Iterable[float],
        turn: Iterable[float] = (0, 0, 0, 1),
        mass: float = 2.0,
        moments: tuple[float, float, float] = (0.04, 0.02, 0.03),
        **rub: float,
    ) -> int:
        """A free body of one shape."""
        path = self.folder / f"body{pybullet.getNumBodies(self.client)}.urdf"
        x, y, z = moments
        path.write_text(
            f'<robot name="r"><link name="b"><inertial><mass value="{mass}"/>'
            f'<inertia ixx="{x}" iyy="{y}" izz="{z}" ixy="0" ixz="0" iyz="0"/></inertial>'
            f"<collision><geometry>{shape}</geometry></collision></link></robot>"
        )
        body = pybullet.loadURDF(
            str(path), list(place), list(turn), flags=FLAGS, physicsClientId=self.client
        )
        self.rub(body, **{"friction": 0.5, **rub})
        return body

    def system(self, bodies: int | Iterable[int], dt: float = DT, **options: Any) -> bb.System:
        """The bodies with contacts."""
        names = bodies if isinstance(bodies, int) else {f"b{b}": b for b in bodies}
        options = {"contacts": True, **options}
        return bb.attach(names, (), self.client, dt=dt, **options)
