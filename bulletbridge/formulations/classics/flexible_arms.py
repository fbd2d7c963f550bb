"""Flexible arms of the modular method: systems 1 to 6, in the x-y plane, without gravity.

Links are strips of aluminium of 2 mm by 80 mm. Motors turn each link against the tangent at the tip
of the one before, by A sin(2 pi t / T). Everything starts at rest and straight.

Source: Bonaventura 2002, a thesis, Tables 23 to 33 for the torques; what it leaves open (angles at
the start, bases) is that of independent reference trajectories.
"""

from dataclasses import dataclass
from math import asin, cos, degrees, pi, radians, sin

DENSITY = 0.448  # [kg/m]
STIFFNESS = 7e10 * 0.08 * 0.002**3 / 12  # EI [N m²]
LINE = 0.6  # y of the line on which the tip of system 2c slides [m]


@dataclass(frozen=True)
class FlexibleLink:
    """A link and its motor."""

    length: float  # [m]
    torque: tuple[float, float]  # amplitude [N m] and period [s] of its motor
    angle: float = 0.0  # at the start, against x [deg]
    modes: int = 2  # how many represent it; a link of none is rigid
    tip_mass: float = 0.0  # [kg]


@dataclass(frozen=True)
class FlexibleSystem:
    """One or two arms."""

    name: str  # as in the source
    duration: float  # of the reference [s]
    arms: tuple[tuple[FlexibleLink, ...], ...]  # their links, from the base on
    about: str  # what it shows
    bases: tuple[float, ...] = (0.0,)  # x of each base [m]
    # ``line``: the tip of the first arm stays at y = LINE; ``tips``: both tips are pinned to each
    # other
    closed: str = ""
    # c [m] and w [rad/s] of a base that moves by c (1 - cos w t) along x
    shake: tuple[float, float] | None = None

    @property
    def links(self) -> list[FlexibleLink]:
        """Links of all arms."""
        return [link for arm in self.arms for link in arm]


def _systems() -> dict[str, FlexibleSystem]:
    """All of them by name."""
    link, system, at = FlexibleLink, FlexibleSystem, radians
    second = degrees(asin((LINE - sin(at(60.0))) / 0.5))
    pair = link(1.0, (0.105, 10)), link(0.5, (0.011, 10))
    # fmt: off
    found = [
        system("1", 10.0, ((link(1.0, (0.02948, 10)),),), "one link, half a turn"),
        system("2a", 10.0, (pair,), "two links"),
        system("2b", 10.0, ((link(1.0, (0.315, 10)), link(0.5, (0.111, 10), tip_mass=0.5)),),
               "two links with a payload of 0.5 kg"),
        system("2c", 10.0, ((link(1.0, (0.0531, 10), 60.0), link(0.5, (0.0, 10), second)),),
               "two links, the tip slides along a line", closed="line"),
        system("3", 10.0, (pair,), "two links on a base that is shaken",
               shake=(0.1 / (0.4 * pi), 0.4 * pi)),
        system("4", 20.0, ((link(1.0, (0.01, 80)), link(1.0, (0.001, 80)),
                            link(0.1, (-0.0002, 10), modes=0),
                            link(0.1, (-0.00001, 10), modes=0)),),
               "a small rigid arm on a large flexible one"),
        system("5a", 20.0, ((link(1.0, (0.01, 20)), link(1.0, (0.002, 15)),
                             link(1.0, (-0.002, 20)), link(1.0, (-0.0015, 15))),),
               "four links, slow"),
        system("5b", 10.0, ((link(1.0, (-0.01, 40)), link(1.0, (0.04, 15)),
                             link(1.0, (-0.04, 15)), link(1.0, (-0.02, 30))),),
               "four links, fast"),
        system("5c", 13.0, ((link(1.0, (0.25, 80), modes=3), link(1.0, (0.15, 80)),
                             link(1.0, (0.05, 40)), link(1.0, (0.01, 40))),),
               "four links under large inertial load"),
        system("6a", 30.0, ((link(1.0, (0.02, 10), 100.0), link(1.0, (0.0, 10), 30.0)),
                            (link(1.0, (0.02, 10), 80.0), link(1.0, (0.0, 10), 150.0))),
               "two arms pinned at their tips, low forces",
               bases=(0.0, 2.0 * (cos(at(100.0)) + cos(at(30.0)))), closed="tips"),
        system("6b", 10.0, ((link(1.0, (0.195, 10), 30.0), link(0.5, (-0.125, 10), 0.0)),
                            (link(1.0, (0.45, 10), 150.0), link(0.5, (0.001, 10), 180.0))),
               "two arms pinned at their tips, high forces",
               bases=(0.0, 2.0 * (cos(at(30.0)) + 0.5)), closed="tips"),
    ]
    # fmt: on
    return {each.name: each for each in found}


SYSTEMS = _systems()
