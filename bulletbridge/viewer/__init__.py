"""Systems in a browser: robots, loops and their forces, time lines, joints to drag."""
