"""Functions that processes of a study import."""

import os
import time
from pathlib import Path

RUNS, SECONDS = 40, 0.03


def power(parameters):
    return {"power": parameters["x"] ** parameters["n"]}


def logged(parameters):
    """A slow run that leaves its number and its process in a log."""
    with open(os.environ["SWEEP_LOG"], "a") as log:
        log.write(f"{int(parameters['x'])} {os.getpid()}\n")
    time.sleep(SECONDS)
    return {"square": parameters["x"] ** 2}


def refuse(parameters):
    if parameters["x"] == 1.0:
        raise ValueError("one is not possible")
    return {"y": parameters["x"]}


if __name__ == "__main__":
    import sys

    from sweep_functions import logged as function

    from bulletbridge.surface.sweep.run import sweep

    values = [{"x": float(k)} for k in range(RUNS)]
    sweep(function, values, Path(sys.argv[1]), workers=1)
