"""``python -m bulletbridge``: the command line."""

from bulletbridge.cli import main

main()
