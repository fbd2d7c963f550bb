"""Collision detection: shapes on bodies, their distances, and the points at which they touch."""
