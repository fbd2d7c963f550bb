"""Bullet's window: both solvers side by side, overlay, sliders."""
