"""Robots in the formats that they are found in: recognised, read, written."""
