"""Control-C while the command line is still being imported: a word, not a traceback.

To be imported first of all; it sets what Python calls with an error that ends it.
"""

import sys
from types import TracebackType

COMMANDS = "/bulletbridge", "\\bulletbridge.exe"
"""How the first argument ends where this is the command, and no program that imports us."""


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("bulletbridge: interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


if getattr(sys, "argv", []) and sys.argv[0].endswith(COMMANDS):
    sys.excepthook = _told
