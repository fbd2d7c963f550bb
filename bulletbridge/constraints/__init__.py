"""Constraints: descriptions of joints and rods that close loops, and their rows."""
