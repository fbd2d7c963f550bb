"""Scenes with contacts as MJCF, so that every simulator has the same: boxes, arms, walls, piles."""

import math
from typing import NamedTuple

DT = 1 / 240  # [s]
HALF = 0.03  # [m] of a box
BOX = f'<geom type="box" size="{HALF} {HALF} {HALF}" mass="0.2"/>'


class Scene(NamedTuple):
    """A world, its motors, and how long it is left to itself before it is timed.

    Attributes:
        bodies: MJCF of what is in the world.
        targets: Where motors hold joints, by their names [rad or m]; they reach it in a second.
        force: What each can do [N m or N].
        settle: Steps before it is timed.
    """

    bodies: str
    targets: dict[str, float]
    force: float = 200.0
    settle: int = 120

    def xml(self) -> str:
        """The whole file."""
        servos = "".join(
            f'<position joint="{joint}" kp="{self.force}" kv="{0.1 * self.force}"'
            f' forcerange="{-self.force} {self.force}"/>'
            for joint in self.targets
        )
        return (
            f'<mujoco><option timestep="{DT}" integrator="implicitfast"/><worldbody>'
            f'<geom type="plane" size="5 5 0.1"/>{self.bodies}</worldbody>'
            f"<actuator>{servos}</actuator></mujoco>"
        )


def free(name: str, place: tuple[float, float, float], geom: str = BOX, turn: float = 0.0) -> str:
    """A free body, turned about z [rad]."""
    at = " ".join(f"{x:.6f}" for x in place)
    how = f"{math.cos(turn / 2):.6f} 0 0 {math.sin(turn / 2):.6f}"
    return f'<body name="{name}" pos="{at}" quat="{how}"><freejoint/>{geom}</body>'


def spread(count: int, radius: float = 0.0, height: float = 0.0) -> str:
    """Boxes apart from each other on a square grid, none nearer to the middle than ``radius``."""
    found, ring, pitch = list[str](), 0, 4 * HALF
    side = math.ceil(math.sqrt(count)) + 2 * math.ceil(radius / pitch)
    for k in range(side * side):
        x, y = (pitch * (n - (side - 1) / 2) for n in divmod(k, side))
        if len(found) < count and math.hypot(x, y) >= radius:
            found.append(free(f"box{ring}", (x, y, height + HALF), turn=0.1 * ring))
            ring += 1
    return "".join(found)


def arm() -> str:
    """Seven capsules on a foot, as an iiwa stands."""
    links, last = "", 7
    for k in range(last):
        axis = "0 0 1" if k % 2 == 0 else "0 1 0"
        links += (
            f'<body name="link{k}" pos="0 0 {0.15 if k else 0.1}"><joint name="arm{k}"'
            f' axis="{axis}"/><geom type="capsule" fromto="0 0 0.03 0 0 0.12" size="0.04"'
            ' mass="2"/>'
        )
    return links + "</body>" * last


def gripper(height: float) -> str:
    """A lift with two fingers about the box in the middle of a table of that height."""
    fingers = "".join(
        f'<body name="{side}" pos="{sign * 0.05} 0 0"><joint name="{side}" type="slide"'
        f' axis="{-sign} 0 0"/><geom type="box" size="0.008 0.02 0.03" mass="0.1"/></body>'
        for side, sign in (("left", -1), ("right", 1))
    )
    return (
        f'<body name="hand" pos="0 0 {height + 0.05}"><joint name="lift" type="slide"'
        f' axis="0 0 1"/><geom type="box" size="0.08 0.02 0.01" pos="0 0 0.06" mass="0.5"/>'
        f"{fingers}</body>"
    )


def among(count: int) -> Scene:
    """An arm that its motors hold, with boxes on the plane around it."""
    targets = {f"arm{k}": 0.3 * (-1) ** k for k in range(7)}
    return Scene(arm() + spread(count, 0.5), targets)


def grasp(count: int) -> Scene:
    """A gripper lifts one of the boxes on a table."""
    table, height = '<geom type="box" size="1.5 1.5 0.2" pos="0 0 0.2"/>', 0.4
    others = spread(count - 1, 0.2, height)
    middle = free("grasped", (0.0, 0.0, height + HALF))
    targets = {"lift": 0.1, "left": 0.02, "right": 0.02}
    return Scene(table + gripper(height) + middle + others, targets, 60.0, 360)


def kick(count: int) -> Scene:
    """A leg swings into a heap of boxes."""
    heap, k, layer = "", 0, 0
    while k < count:
        side = max(5 - layer, 1)
        for m in range(min(side, count - k)):
            x = 0.35 + 2.05 * HALF * (k % 2)
            y = 2.05 * HALF * (m - (side - 1) / 2)
            heap += free(f"box{k}", (x, y, HALF * (1 + 2.02 * layer)))
            k += 1
        layer += 1
    leg = (
        '<body name="thigh" pos="0 0 0.7"><joint name="hip" axis="0 -1 0"/><geom type="capsule"'
        ' fromto="0 0 0 0 0 -0.3" size="0.03" mass="3"/><body name="shank" pos="0 0 -0.3">'
        '<joint name="knee" axis="0 -1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.3"'
        ' size="0.03" mass="2"/></body></body>'
    )
    return Scene(leg + heap, {"hip": 0.8, "knee": 0.1}, 100.0, 0)


def stack(count: int) -> Scene:
    """Boxes on one another."""
    return Scene("".join(free(f"box{k}", (0, 0, HALF * (1 + 2 * k))) for k in range(count)), {})


def wall() -> Scene:
    """Twenty bricks in bond."""
    brick, bricks, k = '<geom type="box" size="0.1 0.05 0.03" mass="1"/>', "", 0
    for row in range(5):
        for m in range(4):
            x = 0.202 * m + (0.101 if row % 2 else 0.0)
            bricks += free(f"brick{k}", (x, 0.0, 0.03 + 0.06 * row), brick)
            k += 1
    return Scene(bricks, {})


def pile(count: int) -> Scene:
    """Capsules that fall into a bin."""
    capsule, walls, bodies = '<geom type="capsule" size="0.03 0.05" mass="0.2"/>', "", ""
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        size = "0.02 0.3 0.4" if x else "0.3 0.02 0.4"
        walls += f'<geom type="box" size="{size}" pos="{0.28 * x} {0.28 * y} 0.4"/>'
    for k in range(count):
        x, y = 0.13 * (k % 3 - 1), 0.13 * (k // 3 % 3 - 1)
        shift, layer = 0.01 * math.sin(k), k // 9
        place = (x + shift, y - shift, 0.1 + 0.14 * layer)
        bodies += free(f"capsule{k}", place, capsule, 0.7 * k)
    return Scene(walls + bodies, {}, settle=150)


SCENES = {
    **{f"boxes_{n}": Scene(spread(n), {}) for n in (10, 50, 100)},
    **{f"arm_among_{n}": among(n) for n in (10, 30, 60)},
    **{f"grasp_{n}": grasp(n) for n in (10, 30, 60)},
    "kick_15": kick(15),
    "stack_10": stack(10),
    "wall": wall(),
    **{f"capsules_{n}": pile(n) for n in (50, 100)},
}
