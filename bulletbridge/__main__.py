"""``python -m bulletbridge``: the command line."""

from bulletbridge.surface.cli import main

main()
