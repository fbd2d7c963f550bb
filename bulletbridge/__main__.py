"""``python -m bulletbridge``."""

from bulletbridge.surface.cli import main

main()
