"""Marks by which bodies are recognised: Bullet gives ids of removed bodies away."""

from uuid import uuid4

import pybullet

STAMP = "bulletbridge"
"""Key of the user data that marks a body."""


def stamp(body_id: int, client: int) -> tuple[int, bytes]:
    """Id and value of the user data that marks this very body, added unless it is there."""
    stamp_id = pybullet.getUserDataId(body_id, STAMP, -1, -1, client)
    if stamp_id < 0:
        stamp_id = pybullet.addUserData(body_id, STAMP, uuid4().hex, -1, -1, client)
    return stamp_id, pybullet.getUserData(stamp_id, client) or b""
