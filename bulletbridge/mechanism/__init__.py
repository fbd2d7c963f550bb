"""Trees of bodies, their kinematics and dynamics, and how they are read out of Bullet."""
