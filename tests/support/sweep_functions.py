"""Functions that processes of a study import."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

RUNS = 40


def power(parameters: Mapping[str, float]) -> dict[str, float]:
    return {"power": parameters["x"] ** parameters["n"]}


def logged(parameters: Mapping[str, float]) -> dict[str, float]:
    """Leave the run's number and its process in a log, and stay at the gate if there is one.

    It is a file with the number of lines in the log from which on runs wait.
    """
    log, gate = Path(os.environ["SWEEP_LOG"]), Path(os.environ["SWEEP_GATE"])
    with log.open("a") as file:
        file.write(f"{int(parameters['x'])} {os.getpid()}\n")
    lines = len(log.read_text().splitlines())
    while gate.exists() and lines >= int(gate.read_text()):
        time.sleep(0.001)
    return {"square": parameters["x"] ** 2}


def refuse(parameters: Mapping[str, float]) -> dict[str, float]:
    if parameters["x"] == 1.0:
        raise ValueError("one is not possible")
    return {"y": parameters["x"]}


if __name__ == "__main__":
    import sys

    from bulletbridge.studies.run import sweep
    from support.sweep_functions import logged as function

    values = [{"x": float(k)} for k in range(RUNS)]
    sweep(function, values, Path(sys.argv[1]), workers=1)
