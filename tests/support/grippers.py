"""The bundled mimic gripper, as programs of PyBullet close it."""

FOLLOWERS = {
    "left_spring_link": 1.0,
    "left_finger": -1.0,
    "right_driver": 1.0,
    "right_spring_link": 1.0,
    "right_finger": -1.0,
}
"""Joints that follow ``left_driver``, by how much each."""
