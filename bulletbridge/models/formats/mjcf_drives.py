"""MuJoCo's actuators: which joints have a drive, how strong it is, and servos as springs."""

from typing import Any, NamedTuple

import numpy as np

from bulletbridge.models.formats.mjcf_constraints import Path, element_name, path_of
from bulletbridge.models.formats.mjcf_file import library
from bulletbridge.models.formats.mjcf_places import Places
from bulletbridge.models.formats.mujoco_servo import Servo
from bulletbridge.models.formats.robot import Scene, told
from bulletbridge.models.model_spec import JointForce

FREE, BALL = range(2)


class Pull(NamedTuple):
    """Joints that an actuator pulls at, and by how much its length is longer for each.

    Of one along a line through points that line, and by how much it is longer than that.
    """

    joints: tuple[int, ...]
    gears: tuple[float, ...]
    path: Path | None = None

    @property
    def strongest(self) -> float:
        """The largest of its gears."""
        return max(map(abs, self.gears), default=0.0)


def add_drives(model: Any, places: Places, servos: bool) -> None:
    """Actuated joints of a scene, with the effort of their drives.

    Args:
        model: MuJoCo's.
        places: What is known of names, with the scene.
        servos: Whether those that are linear in positions and rates act, at the control that the
            first keyframe gives them: as springs and dampers, or as motors within bounds.
    """
    scene = places.scene
    idle, acting, nowhere, off = list[str](), list[str](), list[str](), list[str]()
    for k in range(int(getattr(model, "nactuator", model.nu))):
        name = model.actuator(k).name or f"actuator {k}"
        pull = _pull(model, places, k)
        if not (pull.joints or pull.path):
            nowhere.append(name)
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
        if pull.path and not servo:
            scene.notes.append(
                f"actuator '{name}' pulls along a line and no force acts: give a spring a 'force'"
            )
        if int(model.opt.disableactuator) >> int(model.actuator_group[k]) & 1:
            off.append(name)
            continue
        if not servo:
            continue
        if servos and _acts_as_spring(model, k, pull):
            acting.append(f"{name} ({_add_spring(model, places, k, pull)})")
        else:
            idle.append(f"{name} ({servo})")
    rest = "" if servos else "; servos=True (--servos) lets those act that are linear"
    said = {
        "actuators that act neither on joints nor along a line through points are left out:"
        " {}": nowhere,
        "actuators of groups that are disabled never act: {}": off,
        "servos act at the control of the first keyframe, or zero: as springs and dampers, or,"
        " where their force is bounded, as motors: {}": acting,
        "joints of actuators are listed as actuated and no force acts on them; actuators that"
        f" are more than a torque: {{}}{rest}": idle,
    }
    scene.notes += told(said)


def _first(model: Any, what: str, k: int) -> int:
    """Number of an actuator's first control (``ctrl``) or output (``out``).

    Since MuJoCo 4 an actuator may have several.
    """
    return int(getattr(model, f"actuator_{what}adr", range(model.nu))[k])


def _pull(model: Any, places: Places, k: int) -> Pull:
    """What an actuator pulls at."""
    kinds = library().mjtTrn
    target = int(model.actuator_trnid[k, 0])
    gear = float(model.actuator_gear[_first(model, "out", k), 0])
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
        path = path_of(model, places, target)
        return Pull((), (gear,), path)
    return Pull((), ())


def _acts_as_spring(model: Any, k: int, pull: Pull) -> bool:
    """Whether an actuator's force is linear in the positions and rates of its joints."""
    kinds = library()
    free = not np.isfinite(_bounds(model, k, pull)).any()
    return bool(
        pull.strongest > 0.0
        and all(model.jnt_type[j] not in (FREE, BALL) for j in pull.joints)
        and kinds.mjtDyn(model.actuator_dyntype[k]).name in ("mjDYN_NONE", "mjDYN_INTEGRATOR")
        and model.actuator_gaintype[k] == kinds.mjtGain.mjGAIN_FIXED
        and model.actuator_biastype[k] == kinds.mjtBias.mjBIAS_AFFINE
        and model.actuator_biasprm[k, 1] <= 0.0
        and model.actuator_biasprm[k, 2] <= 0.0
        and _bounds(model, k, pull)[0] <= 0.0 <= _bounds(model, k, pull)[1]
        and (pull.path is None or pull.path.straight or free)
    )


def _bounds(model: Any, k: int, pull: Pull) -> tuple[float, float]:
    """Lowest and highest force of an actuator, what its only joint or its tendon allows too."""
    ranges = [model.actuator_forcerange[k]] if model.actuator_forcelimited[k] else []
    gear = float(model.actuator_gear[_first(model, "out", k), 0])
    target = int(model.actuator_trnid[k, 0])
    if model.actuator_trntype[k] == library().mjtTrn.mjTRN_TENDON:
        if getattr(model, "tendon_actfrclimited", np.zeros(model.ntendon))[target]:
            ranges.append(np.sort(model.tendon_actfrcrange[target] / gear))
    elif len(pull.joints) == 1 and model.jnt_actfrclimited[target]:
        ranges.append(np.sort(model.jnt_actfrcrange[target] / gear))
    lowest = max((float(low) for low, _ in ranges), default=-np.inf)
    return lowest, min((float(high) for _, high in ranges), default=np.inf)


def _add_spring(model: Any, places: Places, k: int, pull: Pull) -> str:
    """Put a servo where it acts; what was put, in words.

    Its force along its length, the sum of gear q, is gain u + b0 + b1 length + b2 rate, u its
    control, or what an integrator of that starts from. Bounded it is a motor along a tendon;
    otherwise spring and damper of its only joint, or of a tendon.
    """
    u, control = 0.0, _first(model, "ctrl", k)
    if model.nkey:
        first = int(model.actuator_actadr[k])
        u = float(model.key_ctrl[0, control] if first < 0 else model.key_act[0, first])
    if model.actuator_ctrllimited[control] and model.actuator_actadr[k] < 0:
        u = float(np.clip(u, *model.actuator_ctrlrange[control]))
    constant, per_length, per_rate = (float(x) for x in model.actuator_biasprm[k, :3])
    force = float(model.actuator_gainprm[k, 0]) * u + constant
    servo = Servo(force, 0.0 - per_length, 0.0 - per_rate, _bounds(model, k, pull))
    scene = places.scene
    name = element_name(scene, model.actuator(k).name or f"actuator_{k}")
    if pull.path:
        return _add_line(scene, name, pull, servo)
    factors: dict[str, float] = {}
    for j, gear in zip(pull.joints, pull.gears, strict=True):
        factors[places.full_joint(j)] = factors.get(places.full_joint(j), 0.0) + gear
    if servo.is_motor or len(factors) > 1:
        if servo.acts:
            scene.elements.append(servo.along(name, factors))
        return f"{servo.said}{servo.between(name)}"
    ((full, gear),) = factors.items()
    own = servo.geared(gear)
    scene.joints()[full].add_spring(own.stiffness, own.rest, own.damping)
    if own.constant:
        scene.forces.append(JointForce(full, torque=own.constant))
        return f"damping {own.damping:g}, force {own.constant:g}"
    return own.said


def _add_line(scene: Scene, name: str, pull: Pull, servo: Servo) -> str:
    """Put a servo along a line through points; what was put, in words.

    It pushes it longer by the gear times force - stiffness gear length - damping gear rate.
    """
    assert pull.path is not None
    (gear,) = pull.gears
    own = servo.geared(gear)
    said = f"stiffness {own.stiffness:g}, damping {own.damping:g}, force {own.force:g} along a line"
    if own.is_motor:
        scene.elements.append(pull.path.spring(name, motor=own.motor))
    elif own.acts:
        force = own.force if own.stiffness else own.constant
        numbers = {"stiffness": own.stiffness, "damping": own.damping, "force": force}
        scene.elements.append(pull.path.spring(name, **numbers))
    return f"{said}{own.between(name)}"


def _servo(model: Any, k: int) -> str:
    """What an actuator does besides exerting its control as a force."""
    gain, bias = model.actuator_gainprm[k], model.actuator_biasprm[k]
    kinds = library()
    dynamics = kinds.mjtDyn(model.actuator_dyntype[k]).name.removeprefix("mjDYN_").lower()
    gained = kinds.mjtGain(model.actuator_gaintype[k]).name.removeprefix("mjGAIN_").lower()
    biased = kinds.mjtBias(model.actuator_biastype[k]).name.removeprefix("mjBIAS_").lower()
    said: list[str] = []
    if dynamics != "none":
        said.append(f"dynamics {dynamics}")
    if (gained, biased) == ("fixed", "affine"):
        offset = f"{gain[0]:g} control" + (f" {bias[0]:+g}" if bias[0] else "")
        position = f" {bias[1]:+g} position" if bias[1] else ""
        rate = f" {bias[2]:+g} rate" if bias[2] else ""
        said.append(f"force = {offset}{position}{rate}")
    elif (gained, biased) != ("fixed", "none"):  # other numbers than those of a line
        said.append(f"gain {gained}, bias {biased}")
    return ", ".join(said)
