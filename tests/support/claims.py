"""Kernels and helpers that another process is at."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bulletbridge.compilation import claims

HOLD = """
import sys
from importlib import util
from pathlib import Path
spec = util.spec_from_file_location("claims", sys.argv[1])
claims = util.module_from_spec(spec)
spec.loader.exec_module(claims)
found = [claims.claim(Path(path), 0.0) for path in sys.argv[3:]]
for path in sys.argv[3:] if sys.argv[2] == "inside" else ():
    claims.go_inside(Path(path))
print(*found, flush=True)
sys.stdin.read()
"""


@contextmanager
def claimed_elsewhere(*paths: Path, inside: bool = False) -> Generator["subprocess.Popen[str]"]:
    """A process that has claimed files, until its input ends or this context does.

    Args:
        paths: The files.
        inside: It is at what these call.
    """
    told = "inside" if inside else "at"
    command = [sys.executable, "-c", HOLD, claims.__file__, told, *map(str, paths)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline().split() == ["True"] * len(paths)
        try:
            yield process
        finally:
            process.stdin.close()
