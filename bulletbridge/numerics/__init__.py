"""Numerics that know nothing of robots: spatial algebra, projection, elimination, cone problems."""
