"""PyBullet's client with its loop constraints closed to round-off after every step.

Bullet's own constraint stays as predictor, so that motors, contacts, limits and mouse picking see
the loop's force; then the configuration is corrected and the velocity filtered.
"""

import os
import warnings
from typing import Any

import pybullet
from pybullet_utils import bullet_client

from bulletbridge.errors import BulletBridgeWarning, ModelError, WorldError
from bulletbridge.surface.bridge import Bridge, Loop

CREATE = (
    "parentBodyUniqueId",
    "parentLinkIndex",
    "childBodyUniqueId",
    "childLinkIndex",
    "jointType",
)
"""Leading arguments of createConstraint, which may be given by position."""


class BulletClient(bullet_client.BulletClient):
    """A drop-in for ``pybullet_utils.bullet_client.BulletClient``.

    Every PyBullet function is there. Point-to-point, fixed and prismatic constraints between
    multibodies, or to the world, are exact after ``stepSimulation``; ids, errors and return values
    are Bullet's. Constraints that Bullet itself holds alone, and why, are in ``loops()``.

    Raises:
        WorldError: A window is asked for without a display, where PyBullet would end the process.
    """

    def __init__(
        self, connection_mode: int | None = None, hostName: str | None = None, options: str = ""
    ) -> None:
        self._client = -1  # for the destructor, should the constructor raise
        if connection_mode == pybullet.GUI and not os.environ.get("DISPLAY"):
            raise WorldError("there is no display for p.GUI; use p.DIRECT, or set DISPLAY")
        super().__init__(connection_mode, hostName, options)
        self._bridge = Bridge(self._client)

    def loops(self) -> dict[int, Loop]:
        """What became of each constraint, by its id."""
        return self._bridge.loops()

    def createConstraint(self, *args: Any, **kwargs: Any) -> int:
        """Bullet's; a gear on a base link, which crashes Bullet, raises.

        Raises:
            ModelError: A gear names a base link.
        """
        given = dict(zip(CREATE, args, strict=False)) | kwargs
        if given.get("jointType") == pybullet.JOINT_GEAR:
            for side in ("parentLinkIndex", "childLinkIndex"):
                if given.get(side, 0) < 0:
                    raise ModelError(
                        f"a gear cannot act on a base link ({side} = -1); name the two joints"
                    )
        number: int = self._native("createConstraint")(*args, **kwargs)
        self._bridge.add(number)
        return number

    def changeConstraint(self, userConstraintUniqueId: int, *args: Any, **kwargs: Any) -> Any:
        """Bullet's; a force limit or a moving pivot makes a constraint Bullet's own."""
        answer = self._native("changeConstraint")(userConstraintUniqueId, *args, **kwargs)
        if "maxForce" in kwargs or len(args) > 2:
            self._bridge.release(userConstraintUniqueId, "it has a force limit")
        elif args or {"jointChildPivot", "jointChildFrameOrientation"} & set(kwargs):
            self._bridge.release(userConstraintUniqueId, "its pivot is moved")
        return answer

    def removeConstraint(self, userConstraintUniqueId: int, *args: Any, **kwargs: Any) -> Any:
        """Bullet's."""
        self._bridge.remove(userConstraintUniqueId)
        return self._native("removeConstraint")(userConstraintUniqueId, *args, **kwargs)

    def removeBody(self, bodyUniqueId: int, *args: Any, **kwargs: Any) -> Any:
        """Bullet's; it removes the body's constraints as well."""
        answer = self._native("removeBody")(bodyUniqueId, *args, **kwargs)
        self._bridge.remove_body(bodyUniqueId)
        return answer

    def changeDynamics(self, bodyUniqueId: int, *args: Any, **kwargs: Any) -> Any:
        """Bullet's; masses and inertias are read again before the next step."""
        answer = self._native("changeDynamics")(bodyUniqueId, *args, **kwargs)
        self._bridge.read_again(bodyUniqueId)
        return answer

    def resetSimulation(self, *args: Any, **kwargs: Any) -> Any:
        """Bullet's."""
        self._bridge.clear()
        return self._native("resetSimulation")(*args, **kwargs)

    def setRealTimeSimulation(self, enableRealTimeSimulation: int, *args: Any, **kw: Any) -> Any:
        """Bullet's. Its own thread then steps, and loops are not closed by us.

        Warns:
            BulletBridgeWarning: When it is switched on.
        """
        if enableRealTimeSimulation:
            warnings.warn(
                "real-time simulation steps without bulletbridge, with Bullet's own constraints;"
                " call stepSimulation() in a loop instead",
                BulletBridgeWarning,
                stacklevel=2,
            )
        return self._native("setRealTimeSimulation")(enableRealTimeSimulation, *args, **kw)

    def stepSimulation(self, *args: Any, **kwargs: Any) -> Any:
        """Bullet's step, then all loops closed at position and velocity level.

        Warns:
            BulletBridgeWarning: Loops could not be closed near Bullet's state, which then stays.
        """
        answer = self._native("stepSimulation")(*args, **kwargs)
        self._bridge.close_loops()
        return answer

    def _native(self, name: str) -> Any:
        """PyBullet's own function for this client."""
        return bullet_client.BulletClient.__getattr__(self, name)
