"""MuJoCo's actuators: which joints have a drive, how strong it is, and what it would need."""

from typing import Any

import numpy as np

from bulletbridge.models.formats.mjcf_file import library
from bulletbridge.models.formats.mjcf_places import Places
from bulletbridge.models.formats.robot import listed

FREE = 0


def add_drives(model: Any, places: Places) -> None:
    """Actuated joints of a scene, with the effort of their drives."""
    scene = places.scene
    servos: list[str] = []
    for k in range(model.nu):
        name = model.actuator(k).name or f"actuator {k}"
        joints, gear = _driven(model, places, k)
        if not joints:
            scene.notes.append(f"actuator '{name}' acts on no joint and is left out")
            continue
        for j in joints:
            if model.jnt_type[j] == FREE:
                scene.notes.append(f"actuator '{name}' acts on a free joint and is left out")
                continue
            joint = places.joint(j)
            if model.actuator_forcelimited[k]:
                strongest = gear * float(np.abs(model.actuator_forcerange[k]).max())
                joint.effort = min(joint.effort, strongest)
            if len(joints) == 1 and hasattr(model, "actuator_armature"):
                # since MuJoCo 4 actuators may have their own
                joint.armature += gear**2 * float(model.actuator_armature[k])
                joint.damping += gear**2 * float(model.actuator_damping[k])
            full = places.full_joint(j)
            if full not in scene.actuated:
                scene.actuated.append(full)
        servo = _servo(model, k)
        if servo:
            servos.append(f"{name} ({servo})")
    if servos:
        scene.notes.append(
            "joints of actuators are listed as actuated and no force acts on them; actuators that"
            f" are more than a torque: {listed(servos)}"
        )


def _driven(model: Any, places: Places, k: int) -> tuple[list[int], float]:
    """Joints that an actuator pulls at, and the largest of its gears."""
    kinds = library().mjtTrn
    target = int(model.actuator_trnid[k, 0])
    gear = float(abs(model.actuator_gear[k, 0]))
    kind = kinds(model.actuator_trntype[k])
    if kind in (kinds.mjTRN_JOINT, kinds.mjTRN_JOINTINPARENT):
        return [target], gear
    if kind == kinds.mjTRN_TENDON:
        wraps = range(
            int(model.tendon_adr[target]), int(model.tendon_adr[target] + model.tendon_num[target])
        )
        if all(model.wrap_type[w] == library().mjtWrap.mjWRAP_JOINT for w in wraps):
            factors = [abs(float(model.wrap_prm[w])) for w in wraps]
            return [int(model.wrap_objid[w]) for w in wraps], gear * max(factors, default=0.0)
    return [], gear


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
