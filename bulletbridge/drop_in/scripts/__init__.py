"""Unmodified PyBullet scripts on our solver: ``bulletbridge run``."""
