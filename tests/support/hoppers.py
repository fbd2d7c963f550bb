"""A box that stands on a five-bar leg, whose motors drive it against joint limits and the floor.

Run as a program, in a process of its own, it prints a hash of a trajectory:
``hoppers.py bridge FOLDER``, ``hoppers.py system FOLDER``, or ``hoppers.py pickle FOLDER``, which
goes on with the system in ``FOLDER/system.pickle``; of several, ``bridge,system``, all in turn.
"""

import hashlib
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pybullet

import bulletbridge as bb
from bulletbridge.bullet.reader import read_bullet
from bulletbridge.constraints.encode import Constraint
from bulletbridge.drop_in.client import BulletClient

UPPER, LOWER, HALF = 0.2, 0.3, 0.1  # lengths of the links, half of the distance of the hips [m]
OUT = 0.5  # angle of the upper links from straight down [rad]
IN = float(np.arcsin((HALF + UPPER * np.sin(OUT)) / LOWER))  # that of the lower ones
FLAGS = pybullet.URDF_USE_INERTIA_FROM_FILE
WARM, STEPS = 60, 240

LINK = """<link name="{name}"><inertial><origin xyz="0 0 {middle}"/><mass value="{mass}"/>
<inertia ixx="{i}" iyy="{i}" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial>{shape}</link>"""
JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="{xyz}"/><axis xyz="0 1 0"/>
<limit lower="{lower}" upper="{upper}" effort="9" velocity="99"/></joint>"""
BOX = '<collision><geometry><box size="0.4 0.3 0.1"/></geometry></collision>'
FOOT = """<collision><origin xyz="0 0 -0.3"/><geometry><sphere radius="0.03"/></geometry>
</collision>"""
FLOOR = """<robot name="floor"><link name="floor"><inertial><mass value="0"/>
<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0 0 -0.5"/><geometry><box size="9 9 1"/></geometry></collision>
</link></robot>"""


def urdf() -> str:
    """The box and its leg, open at the foot."""
    parts = [LINK.format(name="box", middle=0, mass=2.0, i=0.02, shape=BOX)]
    for side, sign in (("left", 1), ("right", -1)):
        foot = FOOT if sign < 0 else ""
        for name, length, shape in (("upper", UPPER, ""), ("lower", LOWER, foot)):
            i = 0.2 * length**2 / 12
            text = LINK.format(
                name=f"{side}_{name}", middle=-length / 2, mass=0.2, i=i, shape=shape
            )
            parts.append(text)
        hip = sorted((sign * (OUT - 0.2), sign * (OUT + 0.2)))
        for name, parent, child, xyz, limits in (
            ("hip", "box", f"{side}_upper", f"{-sign * HALF} 0 0", hip),
            ("knee", f"{side}_upper", f"{side}_lower", f"0 0 {-UPPER}", (-3, 3)),
        ):
            values = dict(lower=limits[0], upper=limits[1], xyz=xyz)
            parts.append(JOINT.format(name=f"{side}_{name}", parent=parent, child=child, **values))
    return f'<robot name="hopper">{"".join(parts)}</robot>'


def fill(client: Any, folder: Path) -> int:
    """Put floor and hopper into the world of a client, ours or PyBullet's; the hopper's id."""
    for name, text in (("floor", FLOOR), ("hopper", urdf())):
        if not (folder / f"{name}.urdf").exists():
            (folder / f"{name}.urdf").write_text(text)
    client.setPhysicsEngineParameter(deterministicOverlappingPairs=1)
    client.setGravity(0, 0, -9.81)
    client.loadURDF(str(folder / "floor.urdf"), useFixedBase=True)
    height = UPPER * np.cos(OUT) + LOWER * np.cos(IN) + 0.04
    body = client.loadURDF(str(folder / "hopper.urdf"), [0, 0, height], flags=FLAGS)
    for k, start in enumerate((OUT, -OUT - IN, -OUT, OUT + IN)):
        client.resetJointState(body, k, start)
        client.setJointMotorControl2(body, k, pybullet.VELOCITY_CONTROL, force=0)
    return body


def bridge(folder: Path) -> tuple[BulletClient, int]:
    """The hopper in exact mode, closed by Bullet's own kind of constraint."""
    client = BulletClient(pybullet.DIRECT, mode="exact")
    body = fill(client, folder)
    tip = [0, 0, -LOWER / 2]  # from the centre of mass
    client.createConstraint(body, 1, body, 3, pybullet.JOINT_POINT2POINT, [0, 0, 0], tip, tip)
    return client, body


def wanted(step: int) -> float:
    """Angle of the hips [rad], beyond their limits at times."""
    return OUT + 0.4 * np.sin(0.07 * step)


def drive(client: BulletClient, body: int, first: int, steps: int) -> tuple[str, list[str]]:
    """Step and command; a hash of all states, and what was met: contacts, limits."""
    found, met = hashlib.sha256(), set[str]()
    for n in range(first, first + steps):
        for joint, sign in ((0, 1), (2, -1)):
            client.setJointMotorControl2(
                body, joint, pybullet.POSITION_CONTROL, sign * wanted(n), force=6.0
            )
        client.stepSimulation()
        states = client.getJointStates(body, range(4))
        numbers = [
            *client.getBasePositionAndOrientation(body),
            *client.getBaseVelocity(body),
            *([*state[:2]] for state in states),
        ]
        found.update(np.concatenate(numbers).tobytes())
        if client.getContactPoints(bodyA=body):
            met.add("contact")
        if abs(states[0][0] - OUT) > 0.2 - 1e-6:
            met.add("limit")
    return found.hexdigest(), sorted(met)


def tip(side: str) -> bb.Frame:
    """The foot on one of the lower links."""
    return bb.Frame(f"{side}_lower", (0, 0, -LOWER))


LOOP = bb.LoopJoint("foot", bb.JointModel.BALL, tip("left"), tip("right"))


def client_of(folder: Path) -> tuple[int, int]:
    """A client of PyBullet's own with floor and hopper, and the hopper's id."""
    from pybullet_utils.bullet_client import BulletClient as Native

    native: Any = Native(pybullet.DIRECT)
    body, number = fill(native, folder), native._client
    native._client = -1  # whose destructor would close it
    return number, body


def system(folder: Path, constraints: Sequence[Constraint] = (LOOP,), **options: Any) -> bb.System:
    """The hopper as a system, in a world of its own."""
    client, body = client_of(folder)
    options = {"contacts": True, "limits": True, **options}
    return bb.attach(body, constraints, client, **options)


def advance(made: bb.System, first: int, steps: int, drives: bool = True) -> str:
    """Step and command; a hash of all states."""
    found = hashlib.sha256()
    for n in range(first, first + steps):
        for side, sign in (("left", 1), ("right", -1)) if drives else ():
            made.motors.set(f"{side}_hip", force=6.0, position=sign * wanted(n))
        made.step()
        found.update(made.q.tobytes() + made.v.tobytes())
    return found.hexdigest()


def main(what: str, folder: Path) -> str:
    """Hash of a trajectory in this process."""
    if "," in what:
        return ",".join(main(one, folder) for one in what.split(","))
    if what == "bridge":
        client, body = bridge(folder)
        return drive(client, body, 0, STEPS // 2)[0]
    if what == "system":
        return advance(system(folder), 0, STEPS // 2)
    made = pickle.loads((folder / "system.pickle").read_bytes())
    client, body = client_of(folder)
    made.world = read_bullet(body, client)
    return advance(made, WARM, STEPS)


if __name__ == "__main__":
    print("hash", main(sys.argv[1], Path(sys.argv[2])))
