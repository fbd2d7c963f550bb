"""MuJoCo's actuators: which joints have a drive, how strong it is, and servos as springs."""

from typing import Any, NamedTuple

import numpy as np

from bulletbridge.models.formats.mjcf_file import library
from bulletbridge.models.formats.mjcf_places import Places
from bulletbridge.models.formats.robot import listed
from bulletbridge.models.model_spec import JointForce

FREE, BALL = range(2)


class Pull(NamedTuple):
    """Joints that an actuator pulls at, and by how much its length is longer for each."""

    joints: tuple[int, ...]
    gears: tuple[float, ...]

    @property
    def strongest(self) -> float:
        """The largest of its gears."""
        return max(map(abs, self.gears), default=0.0)


def add_drives(model: Any, places: Places, servos: bool) -> None:
    """Actuated joints of a scene, with the effort of their drives.

    Args:
        model: MuJoCo's.
        places: What is known of names, with the scene.
        servos: Whether those that act on one joint by its position or rate do so, at the control
            that the first keyframe gives them, as springs and dampers.
    """
    scene = places.scene
    idle: list[str] = []
    acting: list[str] = []
    for k in range(model.nu):
        name = model.actuator(k).name or f"actuator {k}"
        pull = _pull(model, k)
        if not pull.joints:
            scene.notes.append(f"actuator '{name}' acts on no joint and is left out")
            continue
        for j in pull.joints:
            if model.jnt_type[j] == FREE:
                scene.notes.append(f"actuator '{name}' acts on a free joint and is left out")
                continue
            joint = places.joint(j)
            if model.actuator_forcelimited[k]:
                most = float(np.abs(model.actuator_forcerange[k]).max())
                joint.effort = min(joint.effort, pull.strongest * most)
            if len(pull.joints) == 1 and hasattr(model, "actuator_armature"):
                # since MuJoCo 4 actuators may have their own
                joint.armature += pull.strongest**2 * float(model.actuator_armature[k])
                joint.damping += pull.strongest**2 * float(model.actuator_damping[k])
            full = places.full_joint(j)
            if full not in scene.actuated:
                scene.actuated.append(full)
        servo = _servo(model, k)
        if not servo:
            continue
        if servos and _acts_as_spring(model, k, pull):
            acting.append(f"{name} ({_add_spring(model, places, k, pull)})")
        else:
            idle.append(f"{name} ({servo})")
    if acting:
        scene.notes.append(
            "servos act as springs and dampers at the control of the first keyframe, or zero, with"
            f" no bound on their force: {listed(acting)}"
        )
    if idle:
        rest = "" if servos else "; servos=True (--servos) lets those of one joint act"
        scene.notes.append(
            "joints of actuators are listed as actuated and no force acts on them; actuators that"
            f" are more than a torque: {listed(idle)}{rest}"
        )


def _pull(model: Any, k: int) -> Pull:
    """Joints that an actuator pulls at."""
    kinds = library().mjtTrn
    target = int(model.actuator_trnid[k, 0])
    gear = float(model.actuator_gear[k, 0])
    kind = kinds(model.actuator_trntype[k])
    if kind in (kinds.mjTRN_JOINT, kinds.mjTRN_JOINTINPARENT):
        return Pull((target,), (gear,))
    if kind == kinds.mjTRN_TENDON:
        wraps = range(
            int(model.tendon_adr[target]), int(model.tendon_adr[target] + model.tendon_num[target])
        )
        if all(model.wrap_type[w] == library().mjtWrap.mjWRAP_JOINT for w in wraps):
            joints = tuple(int(model.wrap_objid[w]) for w in wraps)
            return Pull(joints, tuple(gear * float(model.wrap_prm[w]) for w in wraps))
    return Pull((), ())


def _acts_as_spring(model: Any, k: int, pull: Pull) -> bool:
    """Whether an actuator's force is linear in the position and rate of one joint."""
    kinds = library()
    return bool(
        len(pull.joints) == 1
        and pull.strongest > 0.0
        and model.jnt_type[pull.joints[0]] not in (FREE, BALL)
        and kinds.mjtDyn(model.actuator_dyntype[k]).name in ("mjDYN_NONE", "mjDYN_INTEGRATOR")
        and model.actuator_gaintype[k] == kinds.mjtGain.mjGAIN_FIXED
        and model.actuator_biastype[k] == kinds.mjtBias.mjBIAS_AFFINE
        and model.actuator_biasprm[k, 1] <= 0.0
        and model.actuator_biasprm[k, 2] <= 0.0
    )


def _add_spring(model: Any, places: Places, k: int, pull: Pull) -> str:
    """Put a servo's spring and damper onto its joint; what was put, in words.

    Its force along the joint is gear (gain u + b0 + b1 gear q + b2 gear v), u its control, or what
    an integrator of that starts from.
    """
    (j,), (gear,) = pull
    u = 0.0
    if model.nkey:
        first = int(model.actuator_actadr[k])
        u = float(model.key_ctrl[0, k] if first < 0 else model.key_act[0, first])
    if model.actuator_ctrllimited[k] and model.actuator_actadr[k] < 0:
        u = float(np.clip(u, *model.actuator_ctrlrange[k]))
    constant, per_length, per_rate = (float(x) for x in model.actuator_biasprm[k, :3])
    force = gear * (float(model.actuator_gainprm[k, 0]) * u + constant)
    stiffness, damping = -(gear**2) * per_length, -(gear**2) * per_rate
    rest = force / stiffness if stiffness else 0.0
    places.joint(j).add_spring(stiffness, rest, damping)
    if force and not stiffness:
        places.scene.forces.append(JointForce(places.full_joint(j), torque=force))
        return f"damping {damping:g}, force {force:g}"
    return f"stiffness {stiffness:g}, damping {damping:g}, at {rest:g}"


def _servo(model: Any, k: int) -> str:
    """What an actuator does besides exerting its control as a force."""
    gain, bias = model.actuator_gainprm[k], model.actuator_biasprm[k]
    dynamics = library().mjtDyn(model.actuator_dyntype[k]).name
    said: list[str] = []
    if dynamics != "mjDYN_NONE":
        said.append(f"dynamics {dynamics.removeprefix('mjDYN_').lower()}")
    if library().mjtBias(model.actuator_biastype[k]).name != "mjBIAS_NONE":
        offset = f"{gain[0]:g} control" + (f" {bias[0]:+g}" if bias[0] else "")
        position = f" {bias[1]:+g} position" if bias[1] else ""
        rate = f" {bias[2]:+g} rate" if bias[2] else ""
        said.append(f"force = {offset}{position}{rate}")
    return ", ".join(said)
