"""Ideal contacts whose instants are located: sticking, sliding, lifting off, impacts."""
