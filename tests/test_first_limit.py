"""The instant at which a machine let go first reaches a joint limit, against MuJoCo's Runge-Kutta.

MuJoCo's constraints are soft: with a time constant of 1 ms they give way by its square, 1e-6, times
accelerations of some rad/s² that change meanwhile. So angles agree to 1e-6 rad (``test_mjcf.py``),
and instants to that over the rate at which the limit is reached.
"""

from importlib import import_module
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
from scipy.optimize import brentq
from support.mujoco_models import stiff_model

import bulletbridge as bb
from bulletbridge.models.bundled import find
from bulletbridge.models.formats.convert import convert
from bulletbridge.models.formats.recognise import read_model

mujoco = import_module("mujoco")
DT = 1 / 240
"""solref and solimp of equalities."""


def leg(folder):
    """The bundled leg with leaf springs: motors' armature, damping, limits of 20 to 80 degrees."""
    return find("leaf_leg")


def gripper(folder):
    """The bundled gripper, of a 2F-85's size, with such a one's armature, damping and range."""
    convert("gripper", folder / "gripper", "mjcf")
    path = folder / "gripper.xml"
    tree = Xml.parse(path)
    assert tree.getroot().find("compiler").get("angle") == "radian"
    for joint in tree.getroot().find("worldbody").iter("joint"):
        driver = joint.get("name").endswith("driver")
        joint.set("damping", "0.01" if driver else "0.00125")
        if driver:
            joint.set("armature", "0.005")
        if joint.get("name") == "left_driver":  # the gears' other one would be as early
            joint.set("limited", "true")
            joint.set("range", "-0.02 0.8")
    tree.write(path)
    return path


def beyond(system):
    """By how much the joint that is furthest beyond a limit is [rad], negative inside; its name."""
    found = [
        (max(joint.lower - x, x - joint.upper), name)
        for name, joint in system.mechanism.joints.items()
        if joint.kind == "revolute" and np.isfinite(joint.upper - joint.lower)
        for x in [system.q[joint.q.start]]
    ]
    return max(found)


def first_of_ours(path):
    """Instant [s], joint and rate [rad/s] there, and the start, without limits in action."""
    with bb.load(
        read_model(path, fixed_base=True), limits=False, integrator="dop853", dt=DT
    ) as loaded:
        system = loaded.system
        start = {name: system.q[joint.q] for name, joint in system.mechanism.joints.items()}
        while True:
            before = system.save()
            system.step()
            if beyond(system)[0] > 0.0:
                break

        def after(part):
            system.restore(before)
            if part > 0.0:
                system.dt = part * DT
                system.step()
                system.dt = DT
            return beyond(system)[0]

        part = brentq(after, 0.0, 1.0, xtol=1e-12)
        after(part)
        name = beyond(system)[1]
        rate = system.v[system.mechanism.joints[name].v.start]
        return before.t + part * DT, name, abs(rate), start


def first_of_mujoco(path, start, name):
    """The same instant, with stiff equalities and without limits in action."""
    model = stiff_model(path)
    data = mujoco.MjData(model)
    for joint, q in start.items():
        at = model.joint(joint).qposadr[0]
        data.qpos[at : at + len(q)] = np.roll(q, 1) if len(q) == 4 else q
    hinges = [
        (model.jnt_qposadr[j], *model.jnt_range[j])
        for j in range(model.njnt)
        if model.jnt_limited[j] and model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE
    ]
    own = model.jnt_qposadr[model.joint(name).id]
    most, at = -1.0, 0.0
    while most < 0.0:
        last, before = most, at
        mujoco.mj_step(model, data)
        each = [max(low - data.qpos[k], data.qpos[k] - high) for k, low, high in hinges]
        most, at = max(each), data.time
    assert hinges[int(np.argmax(each))][0] == own
    return before + (at - before) * last / (last - most)


@pytest.mark.parametrize("machine", [leg, gripper])
def test_the_first_limit_is_reached_when_mujoco_reaches_it(tmp_path, machine):
    path = machine(tmp_path)
    instant, name, rate, start = first_of_ours(path)
    assert instant > 10 * DT and rate > 0.1
    assert first_of_mujoco(path, start, name) == pytest.approx(instant, abs=1e-6 / rate)


@pytest.mark.parametrize("machine", [leg, gripper])
def test_the_first_step_that_a_limit_stops_is_the_one_in_which_it_is_reached(tmp_path, machine):
    """With limits in action and steps of a twentieth of those of games."""
    path = machine(tmp_path)
    instant, name, _, _ = first_of_ours(path)
    with bb.load(read_model(path, fixed_base=True), dt=DT / 20) as loaded:
        system = loaded.system
        while system.joint_loads[name].limit == 0.0:
            assert system.t < instant + DT
            system.step()
        assert system.t - system.dt - 1e-4 < instant < system.t + 1e-4
