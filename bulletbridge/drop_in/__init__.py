"""Existing PyBullet programs on exact loops: what stands in for PyBullet's functions."""
