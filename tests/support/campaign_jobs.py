"""Jobs for processes that stall, die or answer."""

import os


def perform(job: str) -> dict[str, str]:
    """What a job does, by its name."""
    while job == "stall":
        pass
    if job == "die":
        os._exit(3)
    return {"job": job, "end": "done"}


def lost(job: str, end: str, message: str) -> dict[str, str]:
    """What is said of a job that never came back."""
    return {"job": job, "end": end, "message": message}
