"""Trees of bodies: kinematics, mass matrix, bias forces, force elements, beams."""
