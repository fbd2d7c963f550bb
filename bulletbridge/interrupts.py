"""Control-C while the command line is still being imported: a word, not a traceback.

To be imported first of all; it sets what Python calls with an error that ends it.
"""

import sys
from itertools import pairwise
from types import TracebackType

COMMANDS = "/bulletbridge", "\\bulletbridge.exe"
"""How the first argument ends where this is the command, and no program that imports us."""

MODULE = "-m", "bulletbridge"


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("bulletbridge: interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def _is_command() -> bool:
    """Whether the process is the command line, called by its name or as ``python -m``."""
    called = (*getattr(sys, "argv", []), "")[0]
    return called.endswith(COMMANDS) or (called == "-m" and MODULE in pairwise(sys.orig_argv))


if _is_command():
    sys.excepthook = _told
