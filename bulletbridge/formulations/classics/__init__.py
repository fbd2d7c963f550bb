"""Small systems of the literature in closed form, as ``Dynamics`` without Bullet."""
