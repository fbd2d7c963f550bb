"""Python processes that need not import numba, most of their work: forks of one that has."""

import atexit
import json
import os
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path


def run_forked(
    module: str, arguments: list[str], environment: dict[str, str], folder: Path
) -> tuple[int, str, str]:
    """Exit code, output and errors of ``python -m module`` in an environment.

    Nothing but numba is imported before, and its settings are read anew. What is settled by then
    is as in this process: the processor that machine code is for, and what Python reads as it
    starts (PYTHONHASHSEED, a ``sitecustomize``).

    Args:
        module: A module that PYTHONPATH of the environment leads to.
        arguments: Its arguments.
        environment: Variables, all of them.
        folder: Receives two files, of what it prints.
    """
    parent = forking_process()
    assert parent.stdin is not None and parent.stdout is not None
    out, err = files = folder / f"{module}.out", folder / f"{module}.err"
    order = [module, arguments, environment, [str(file) for file in files], os.getcwd()]
    parent.stdin.write(json.dumps(order) + "\n")
    parent.stdin.flush()
    code = int(parent.stdout.readline())
    return code, out.read_text(), err.read_text()


@cache
def forking_process() -> "subprocess.Popen[str]":
    """The process that forks; it ends with its input, which is with this one."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, __file__], stdin=pipe, stdout=pipe, text=True)
    atexit.register(process.communicate)
    return process


def abs_of(x: float) -> float:
    """Something to compile."""
    return abs(x)


def serve() -> None:
    """Fork for each line of the input, and tell how the fork ended."""
    import numba

    numba.njit(abs_of)(1.0)

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become(*json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def become(
    module: str,
    arguments: list[str],
    environment: dict[str, str],
    files: list[str],
    folder: str,
) -> None:
    """Run a module as the main one, in its environment."""
    from numba.core import config

    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    config.reload_config()
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in environment
    sys.path[:1] = environment["PYTHONPATH"].split(os.pathsep)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve()
