"""A biped whose ankles are parallel mechanisms: two cranks on the shin, with rods to the foot."""

from generator.shapes import ALONG_Y, ball, block, joined, plate, rod, sheets, turned
from generator.urdf_writer import (
    Joint,
    Limits,
    Link,
    Model,
    Part,
    Touch,
    Triple,
    folded,
    number,
    of_solids,
)

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
HIP: Triple = (0.0, 0.09, -0.06)  # of the left leg, on the pelvis; forward, left, up
ROLL: Triple = (0.0, 0.0, -0.08)  # below the axis of yaw, where roll and pitch meet
LENGTH = 0.36  # of thigh and shin each
CRANK = 0.05  # long, and as far behind the ankle the rods hold the foot
MOTORS = {"upper": (0.055, -0.12), "lower": (-0.055, -0.19)}  # on the shin: left, up
HEEL = 0.04  # from the middle of the foot to the rods
KNEE = 0.6  # bent at the start [rad]
LIMITS = {
    "hip_yaw": Limits(-0.6, 0.6, 80.0, 12.0),
    "hip_roll": Limits(-0.5, 0.5, 100.0, 12.0),
    "hip_pitch": Limits(-1.8, 0.8, 120.0, 12.0),
    "knee": Limits(-0.05, 2.2, 180.0, 15.0),
    "ankle_pitch": Limits(-0.8, 0.6, 0.0, 100.0),
    "ankle_roll": Limits(-0.35, 0.35, 0.0, 100.0),
    "crank": Limits(-1.1, 1.1, 50.0, 15.0),
}
ROTORS = {
    "hip_yaw": (0.05, 0.25),
    "hip_roll": (0.08, 0.4),
    "hip_pitch": (0.08, 0.4),
    "knee": (0.1, 0.4),
    "crank": (0.02, 0.08),
}
"""Rotor inertia times the square of the gear's ratio [kg m²], damping [N m s/rad]."""


def _link(name: str, mass: float, *parts: Part, touch: tuple[Touch, ...] = ()) -> Link:
    return Link(name, of_solids(mass, parts), parts, touch)


def _pelvis() -> Link:
    box: Triple = (0.16, 0.26, 0.18)
    motors = [
        turned([(-0.06, 0.05), (-0.05, 0.055), (-0.03, 0.055)], (0.0, y, 0.0))
        for y in (HIP[1], -HIP[1])
    ]
    return _link(
        "pelvis",
        13.0,
        Part("biped_pelvis", block((0.0, 0.0, 0.06), box), "pearl"),
        Part("biped_yaw_motors", joined(motors), "graphite"),
        touch=(Touch(box, (0.0, 0.0, 0.06)),),
    )


def _shin_motors() -> list[Part]:
    """Motors of the cranks; those of the right leg are in the same places."""
    solids = []
    for y, z in MOTORS.values():
        side = 1.0 if y > 0.0 else -1.0
        solids.append(rod((0.0, side * 0.035, z), (0.0, side * 0.05, z), 0.034))
    return [Part("biped_crank_motors", joined(solids), "graphite")]


def _leg(side: str) -> list[Link]:
    """The links of one leg; both legs have the same solids."""
    colour = "orange" if side == "left" else "blue"
    yaw = [
        turned([(-0.02, 0.045), (0.0, 0.05)]),
        block((-0.07, 0.0, -0.055), (0.02, 0.05, 0.07)),
        rod((-0.075, 0.0, -0.13), (-0.05, 0.0, -0.13), 0.04),
    ]
    thigh = [
        *sheets([(0, 0, 0.05), (0, -0.1, 0.045)], 0.04, 0.06),
        block((0.0, 0.0, -0.215), (0.09, 0.12, 0.14)),
        *sheets([(0, -0.325, 0.04), (0, -LENGTH, 0.04)], 0.045, 0.06),
    ]
    tube = turned([(-0.335, 0.018), (-0.3, 0.028), (-0.06, 0.034), (-0.045, 0.03)])
    cross = [
        rod((0, -0.025, 0), (0, 0.025, 0), 0.009),
        rod((-0.028, 0, 0), (-0.009, 0, 0), 0.008),
        rod((0.009, 0, 0), (0.028, 0, 0), 0.008),
    ]
    sole: Triple = (0.2, 0.09, 0.02)
    foot = [
        block((0.03, 0.0, -0.055), sole),
        block((0.036, 0.0, -0.0225), (0.012, 0.03, 0.045)),
        block((-CRANK, 0.0, -0.0265), (0.02, 0.1, 0.037)),
    ]
    links = [
        _link(f"{side}_hip", 2.0, Part("biped_hip", joined(yaw), "steel")),
        _link(
            f"{side}_hip_cross",
            1.8,
            Part("biped_hip_cross", rod((-0.045, 0, 0), (0.045, 0, 0), 0.035), "graphite"),
        ),
        _link(
            f"{side}_thigh",
            5.0,
            Part("biped_thigh", joined(thigh), colour),
            touch=(Touch((0.09, 0.12, 0.14), (0.0, 0.0, -0.215)),),
        ),
        _link(
            f"{side}_shin",
            3.0,
            Part("biped_knee", rod((0, -0.044, 0), (0, 0.044, 0), 0.045), "graphite"),
            Part("biped_shin", tube, colour),
            *_shin_motors(),
            touch=(Touch((0.06, 0.06, 0.28), (0.0, 0.0, -0.19)),),
        ),
        _link(f"{side}_ankle", 0.1, Part("biped_ankle", joined(cross), "steel")),
        _link(
            f"{side}_foot",
            1.1,
            Part("biped_foot", joined(foot), "slate"),
            touch=(Touch(sole, (0.03, 0.0, -0.055)),),
        ),
    ]
    lever = plate([(0, 0, 0.013), (-CRANK, 0, 0.009)], -0.005, 0.005, ALONG_Y)
    for which in MOTORS:
        end = _rod_end(which)
        near, far = 0.05, 0.95
        start = tuple(near * each for each in end)
        stop = tuple(far * each for each in end)
        links += [
            _link(f"{side}_{which}_crank", 0.12, Part("biped_crank", lever, "gold")),
            _link(
                f"{side}_{which}_joint",
                0.02,
                Part("biped_rod_joint", ball((0, 0, 0), 0.008), "steel"),
            ),
            _link(
                f"{side}_{which}_rod",
                0.11,
                Part(f"biped_{which}_rod", rod(start, stop, 0.005), "steel"),
            ),
        ]
    return links


def _rod_end(which: str) -> Triple:
    """Where a rod holds the foot, seen from its crank's tip [m]."""
    y, z = MOTORS[which]
    return (0.0, round((HEEL if y > 0.0 else -HEEL) - y, 6), round(-LENGTH - z, 6))


def _joints(side: str) -> list[Joint]:
    """Hinges of one leg, parents first."""
    sign = 1.0 if side == "left" else -1.0
    hip = (HIP[0], sign * HIP[1], HIP[2])
    below = (0.0, 0.0, -LENGTH)
    chain: list[tuple[str, str, str, Triple, Triple]] = [
        ("hip_yaw", "pelvis", f"{side}_hip", hip, Z),
        ("hip_roll", f"{side}_hip", f"{side}_hip_cross", ROLL, X),
        ("hip_pitch", f"{side}_hip_cross", f"{side}_thigh", (0.0, 0.0, 0.0), Y),
        ("knee", f"{side}_thigh", f"{side}_shin", below, Y),
        ("ankle_pitch", f"{side}_shin", f"{side}_ankle", below, Y),
        ("ankle_roll", f"{side}_ankle", f"{side}_foot", (0.0, 0.0, 0.0), X),
    ]
    found = [
        Joint(f"{side}_{name}", "revolute", parent, child, place, axis=axis, limits=LIMITS[name])
        for name, parent, child, place, axis in chain
    ]
    for which, (y, z) in MOTORS.items():
        own, tip = f"{side}_{which}", (-CRANK, 0.0, 0.0)
        hinges: list[tuple[str, str, str, Triple, Triple, Limits | None]] = [
            ("crank", f"{side}_shin", f"{own}_crank", (0.0, y, z), Y, LIMITS["crank"]),
            ("rod_pitch", f"{own}_crank", f"{own}_joint", tip, Y, None),
            ("rod_roll", f"{own}_joint", f"{own}_rod", (0.0, 0.0, 0.0), X, None),
        ]
        found += [
            Joint(f"{own}_{name}", "revolute", parent, child, place, axis=axis, limits=limits)
            for name, parent, child, place, axis, limits in hinges
        ]
    return found


def _loop(side: str, which: str) -> str:
    """Ball at the end of a rod."""
    end = _rod_end(which)
    heel = (-CRANK, HEEL if MOTORS[which][0] > 0.0 else -HEEL, 0.0)
    rod_end, place = (", ".join(map(number, each)) for each in (end, heel))
    return f"""\
  - {{name: {side}_{which}_heel, type: ball, a: {{link: {side}_{which}_rod, xyz: [{rod_end}]}},
     b: {{link: {side}_foot, xyz: [{place}]}}}}
"""


def biped() -> Model:
    """Pelvis and two legs of six freedoms each, 40 kg, floating."""
    links, joints, loops = [_pelvis()], list[Joint](), list[str]()
    motors, properties, start, rates = list[str](), list[str](), list[str](), list[str]()
    for side in ("left", "right"):
        links += _leg(side)
        joints += _joints(side)
        loops += [_loop(side, which) for which in MOTORS]
        cranks = [f"{which}_crank" for which in MOTORS]
        for name in ("hip_yaw", "hip_roll", "hip_pitch", "knee", *cranks):
            armature, damping = ROTORS["crank" if name in cranks else name]
            motors.append(f"{side}_{name}")
            properties.append(
                f"  {side}_{name}: {{armature: {number(armature)}, damping: {number(damping)}}}\n"
            )
        # where crank and foot turn by the same angle, rods stay as they are drawn
        angles = {"hip_pitch": -KNEE / 2, "knee": KNEE, "ankle_pitch": -KNEE / 2}
        for which in MOTORS:
            angles |= {f"{which}_crank": -KNEE / 2, f"{which}_rod_pitch": KNEE / 2}
        start += [f"{side}_{name}: {number(angle)}" for name, angle in angles.items()]
        speed = 0.5 if side == "left" else 0.3
        moving = {"hip_pitch": speed, "knee": -2.0 * speed, "upper_crank": 0.5 * speed,
                  "lower_crank": speed}  # fmt: skip
        rates += [f"{side}_{name}: {number(rate)}" for name, rate in moving.items()]
    text = f"""\
# Biped of 40 kg in the air. Each leg has hips that turn about three axes, a knee, and a universal
# ankle without a motor: two cranks on the shin turn it by rods to the heel, both the same way for
# pitch, against each other for roll. Each rod hangs on its crank by two hinges; a ball closes it to
# the foot. Axes at zero: x forward, y left, z up. Knees are bent, soles level. Rotors (their inertia
# times the square of the gear's ratio) and damping of the motors are those of machines of this size.
bulletbridge: 1
urdf: biped.urdf
fixed_base: false
base: {{xyz: [0, 0, 1]}}
loops:
{"".join(loops)}\
actuated: [{folded(motors, 11)}]
gravity: [0, 0, -9.81]
start:
  q: {{{folded(start, 6)}}}
  v: {{{folded(rates, 6)}}}
joints:
{"".join(properties)}"""
    return Model(
        "biped", tuple(links), tuple(joints), text,
        "a legged robot with parallel ankles: small loops on a floating tree, rotors, limits",
        "own choice, of the size of today's small humanoids; inertias of the meshes",
    )  # fmt: skip
