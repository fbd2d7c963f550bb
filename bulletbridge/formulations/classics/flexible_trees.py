"""Flexible arms as mechanisms: by modes, by rigid segments, and link by link as free modules."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import pi, radians
from typing import NamedTuple

import numpy as np

from bulletbridge.constraints.joints import Coupling, Frame, JointModel, LoopJoint, Triple
from bulletbridge.constraints.motion import Motion, Sine, Sum
from bulletbridge.formulations.classics.flexible_arms import (
    DENSITY,
    LINE,
    STIFFNESS,
    FlexibleLink,
    FlexibleSystem,
)
from bulletbridge.mechanism.beams import FlexibleBeam
from bulletbridge.mechanism.build import Load, empty_mechanism, with_beam, with_joint
from bulletbridge.mechanism.frames import matrix_rpy, rpy_matrix
from bulletbridge.mechanism.model import WORLD, Mechanism

Y: Triple = (0.0, 1.0, 0.0)
ALONG_X: Triple = (0.0, 0.5 * pi, 0.0)
"""Turns z into x."""
X_TO_Y: Triple = (-0.5 * pi, 0.0, 0.0)
"""After that, z into y."""
BACK = matrix_rpy((rpy_matrix(ALONG_X) @ rpy_matrix(X_TO_Y)).T)


class Ends(NamedTuple):
    """Frames at the root of a link, x along it, and at its tip."""

    root: Frame
    tip: Frame


@dataclass
class Tree:
    """A system as a mechanism."""

    mechanism: Mechanism  # its links
    # what closes loops, moves the base, joins modules
    constraints: list[LoopJoint | Coupling] = field(default_factory=lambda: [])
    # of motors, by joint and number of its rate
    pushes: dict[tuple[str, int], list[Sine]] = field(default_factory=lambda: {})
    start: dict[str, float] = field(default_factory=lambda: {})  # positions by joint
    ends: list[Ends] = field(default_factory=lambda: [])  # frames of each link
    loop: tuple[Frame, Frame] | None = None  # frames a and b of the system's own loop

    def joint(
        self, name: str, kind: str, link: str, on: str, xyz: Triple, rpy: Triple, load: Load
    ) -> None:
        """Add one."""
        self.mechanism = with_joint(self.mechanism, name, kind, link, on, xyz, rpy, load)

    def push(
        self, joint: str, torque: tuple[float, float], factor: float = 1.0, rate: int = 0
    ) -> None:
        """Add a motor's torque, times a factor, to a rate of a joint."""
        signal = Sine(factor * torque[0], 1.0 / torque[1])
        self.pushes.setdefault((joint, rate), []).append(signal)

    @property
    def forces(self) -> dict[str, list[Sum]]:
        """Forces as ``System`` takes them: by joint, one signal for each of its rates."""
        found: dict[str, list[Sum]] = {}
        for name in {joint for joint, _ in self.pushes}:
            part = self.mechanism.joint(name).v
            found[name] = [
                Sum(tuple(self.pushes.get((name, k), ()))) for k in range(part.stop - part.start)
            ]
        return found


def tree_of(
    system: FlexibleSystem,
    modes: Sequence[int] | None = None,
    segments: int | None = None,
    modules: bool | Collection[int] = False,
    slides: bool = False,
) -> Tree:
    """A system as a mechanism.

    Args:
        system: Which.
        modes: How many for each link; its own unless given.
        segments: Number of springs of each flexible link instead of modes.
        modules: Links, counted from 1, that are on free planar bases of their own, where their
            joints are loops; or whether all are.
        slides: Whether there is a pair of slides, along x and y of what carries it, at the root of
            each link, for the forces that they transmit while they do not move.
    """
    tree = Tree(empty_mechanism())
    ground = Frame(WORLD)
    if system.shake is not None:
        c, w = system.shake
        # its mass is no matter, since its motion is given
        tree.joint("base", "prismatic", "base", WORLD, (0, 0, 0), ALONG_X, Load(1.0))
        motion = Motion(z=Sine(-c, w / (2 * pi), 0.5 * pi, c))
        tree.constraints.append(Coupling("drive", {"base": 1.0}, motion=motion))
        ground = Frame("base", rpy=(0.0, -0.5 * pi, 0.0))
    number, counts = 0, modes or [link.modes for link in system.links]
    every = range(1, len(counts) + 1)
    apart = modules if not isinstance(modules, bool) else every if modules else ()
    for arm, x in zip(system.arms, system.bases, strict=True):
        on, angle = Frame(ground.link, (x, 0.0, 0.0), ground.rpy), 0.0
        place = np.array([x, 0.0])
        before: list[str] = []
        for link in arm:
            number += 1
            if number in apart:
                _add_module(tree, f"{number}", link, on, place, before)
                before = []
            else:
                if slides:
                    on = _add_slides(tree, f"{number}", on)
                tree.joint(
                    f"joint{number}", "revolute", f"root{number}", on.link, on.xyz, on.rpy, Load()
                )
                tree.start[f"joint{number}"] = radians(link.angle - angle)
                tree.push(f"joint{number}", link.torque)
            _add_link(tree, f"{number}", link, counts[number - 1], segments)
            on, angle = tree.ends[-1].tip, link.angle
            turn = radians(angle)
            place = place + link.length * np.array([np.cos(turn), np.sin(turn)])
            before = [*before, f"{number}"]
    _close(tree, system)
    return tree


def _add_slides(tree: Tree, k: str, on: Frame) -> Frame:
    """A pair of slides on a frame; the frame that they carry."""
    turn = matrix_rpy(rpy_matrix(on.rpy) @ rpy_matrix(ALONG_X))
    tree.joint(f"x{k}", "prismatic", f"x{k}", on.link, on.xyz, turn, Load())
    tree.joint(f"y{k}", "prismatic", f"y{k}", f"x{k}", (0, 0, 0), X_TO_Y, Load())
    return Frame(f"y{k}", rpy=BACK)


def _add_link(tree: Tree, k: str, link: FlexibleLink, modes: int, segments: int | None) -> None:
    """What bends, or does not, on the root of a link."""
    load = Load(link.tip_mass)
    rigid = segments is None and modes == 0 or link.modes == 0
    if rigid:
        tip = Frame(f"root{k}", (link.length, 0.0, 0.0))
        _add_rod(tree, f"root{k}", link.length)
        assert not link.tip_mass
    elif segments is None:
        beam = FlexibleBeam(link.length, STIFFNESS, DENSITY, modes)
        tree.mechanism = with_beam(
            tree.mechanism, f"beam{k}", beam, f"tip{k}", f"root{k}", load=load
        )
        tip = Frame(f"tip{k}")
    else:
        tip = _add_segments(tree, k, link, segments)
    tree.ends.append(Ends(Frame(f"root{k}"), tip))


def _add_segments(tree: Tree, k: str, link: FlexibleLink, n: int) -> Frame:
    """n springs EI n / L, half segments at both ends; the frame at the tip."""
    step = link.length / n
    _add_rod(tree, f"root{k}", 0.5 * step)
    on, reach = f"root{k}", 0.5 * step
    for i in range(1, n + 1):
        name, length = f"segment{k}_{i}", step if i < n else 0.5 * step
        load = rod(length)
        if i == n and link.tip_mass:
            load = together(load, link.tip_mass, length)
        tree.joint(f"bend{k}_{i}", "revolute", name, on, (reach, 0.0, 0.0), (0, 0, 0), load)
        tree.mechanism.axes[-1]["stiffness"] = STIFFNESS * n / link.length
        on, reach = name, step
    return Frame(on, (0.5 * step, 0.0, 0.0))


def rod(length: float) -> Load:
    """A slender piece of a link, from the origin along x."""
    mass = DENSITY * length
    J = mass * length**2 / 12.0
    return Load(mass, (0.5 * length, 0.0, 0.0), (0.0, J, J))


def together(load: Load, mass: float, at: float) -> Load:
    """A rod and a point mass at x = ``at`` [m]."""
    total = load.mass + mass
    centre = (load.mass * load.com[0] + mass * at) / total
    J = load.J[2, 2] + load.mass * mass / total * (at - load.com[0]) ** 2
    return Load(total, (centre, 0.0, 0.0), (0.0, J, J))


def _add_rod(tree: Tree, link: str, length: float) -> None:
    """Mass of a rigid piece on a body that has none."""
    body, load = tree.mechanism.bodies[tree.mechanism.link(link).body], rod(length)
    body["mass"], body["com"], body["J"] = load.mass, load.com, load.J


def _add_module(
    tree: Tree,
    k: str,
    link: FlexibleLink,
    on: Frame,
    place: np.ndarray,
    before: Sequence[str],
) -> None:
    """A free planar base for a link, its hinge as a loop, and its motor.

    The motor's case is on the tip of the last of the links ``before`` it in one module.
    """
    tree.joint(f"x{k}", "prismatic", f"x{k}", WORLD, (0, 0, 0), ALONG_X, Load())
    tree.joint(f"y{k}", "prismatic", f"y{k}", f"x{k}", (0, 0, 0), X_TO_Y, Load())
    tree.joint(f"joint{k}", "revolute", f"root{k}", f"y{k}", (0, 0, 0), BACK, Load())
    tree.start |= {f"x{k}": float(place[0]), f"y{k}": float(place[1])}
    tree.start[f"joint{k}"] = radians(link.angle)
    hinge = LoopJoint(f"hinge{k}", JointModel.REVOLUTE, on, Frame(f"root{k}"))
    tree.constraints.append(hinge)
    tree.push(f"joint{k}", link.torque)
    for b in before:
        tree.push(f"joint{b}", link.torque, -1.0)
        if f"beam{b}" in tree.mechanism.joints:
            beam = tree.mechanism.beams[
                tree.mechanism.bodies[tree.mechanism.link(f"tip{b}").body]["beam"]
            ]
            part = tree.mechanism.joint(f"beam{b}").v
            slopes = tree.mechanism.stations[beam["tip"]]["slope"]
            for i in range(part.stop - part.start):
                tree.push(f"beam{b}", link.torque, -float(slopes[i]), i)


def _close(tree: Tree, system: FlexibleSystem) -> None:
    """The loops of the system itself."""
    if system.closed == "line":
        a, b = Frame(WORLD, (0.0, LINE, 0.0)), tree.ends[-1].tip
        tree.constraints.append(LoopJoint("line", JointModel.POINT_ON_PLANE, a, b, Y))
        tree.loop = a, b
    elif system.closed == "tips":
        first = len(system.arms[0]) - 1
        a, b = tree.ends[-1].tip, tree.ends[first].tip
        tree.constraints.append(LoopJoint("tips", JointModel.BALL, a, b))
        tree.loop = a, b
