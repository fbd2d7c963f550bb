"""Numerics that know nothing of robots: compilation, small linear algebra, rotations."""
