"""Formulations and integrators in Python, over the equations of motion of any system."""
