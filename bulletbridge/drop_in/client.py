"""A drop-in for ``pybullet_utils.bullet_client.BulletClient``."""

import functools
import os
from types import BuiltinFunctionType
from typing import Any

import pybullet
from pybullet_utils import bullet_client

from bulletbridge.drop_in import functions
from bulletbridge.drop_in.settings import Mode


class BulletClient(bullet_client.BulletClient):
    """PyBullet's client with its loop constraints closed to round-off after every step.

    Every PyBullet function is there. Bullet's own constraint stays as predictor, so that motors,
    contacts, limits and mouse picking see the loop's force; then the configuration is corrected
    and the velocity filtered. Ids, errors and return values are Bullet's. Constraints that Bullet
    itself holds alone, and why, are in ``getBridgeLoops()``.

    Args:
        connection_mode: PyBullet's ``DIRECT``, ``GUI`` and the like.
        hostName: PyBullet's, of a server.
        options: PyBullet's.
        mode: Who advances bodies that constraints join; see ``setBridgeMode``.

    Raises:
        WorldError: A window is asked for without a display, where PyBullet would end the process.
    """

    def __init__(
        self,
        connection_mode: int | None = None,
        hostName: str | None = None,
        options: str = "",
        *,
        mode: Mode | None = None,
    ) -> None:
        self._client = -1  # for the destructor, should the constructor raise
        self._found: list[str] = []  # functions of ours, which are kept
        self._shapes: dict[Any, Any] = {}
        self._pid = os.getpid()
        method, connect = connection_mode, functions.FUNCTIONS["connect"]
        if method is None:
            self._client = connect(pybullet.SHARED_MEMORY, options=options)
            method = pybullet.DIRECT
        if self._client < 0:
            host = {} if hostName is None else {"hostName": hostName}
            self._client = connect(method, options=options, **host)
        if mode is not None:
            self.setBridgeMode(mode)

    def __dir__(self) -> list[str]:
        """All of PyBullet's functions and constants, and ours."""
        return sorted({*super().__dir__(), *dir(pybullet), *functions.FUNCTIONS})

    def __repr__(self) -> str:
        """Which client it is."""
        if self._client < 0:
            return "<BulletClient: disconnected>"
        return f"<BulletClient: client {self._client}>"

    def __getattr__(self, name: str) -> Any:
        """PyBullet's function for this client, or its constant."""
        attribute = functions.lookup(name)
        if isinstance(attribute, BuiltinFunctionType):
            attribute = functools.partial(attribute, physicsClientId=self._client)
            if name in functions.FUNCTIONS:  # Bullet's own are looked up: what precedes calls does
                self.__dict__[name] = attribute
                self._found.append(name)
        if name == "disconnect":
            self._client = -1
            while self._found:
                del self.__dict__[self._found.pop()]
        return attribute
