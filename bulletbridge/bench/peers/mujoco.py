"""MuJoCo: loops as equality constraints, which are soft by nature."""

from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
from scipy.spatial.transform import Rotation

from bulletbridge.bench.peers.base import Stepped, library
from bulletbridge.bench.problem import Problem
from bulletbridge.mechanism.records import FREE, PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.models.formats.urdf_text import exact
from bulletbridge.numerics.records import Array

JOINTS = {REVOLUTE: "hinge", PRISMATIC: "slide", SPHERICAL: "ball"}
STIFF_IMPEDANCE = (0.9999, 0.9999, 0.001, 0.5, 2.0)
STIFF_TOLERANCE = 1e-14


def _leave_to_the_judge(_warning: str) -> None:
    """Say nothing of numbers that are not finite: the run is judged by its states."""


class Mujoco(Stepped):
    """``mj_step`` with the Newton solver, contacts and limits off.

    Args:
        made: The problem.
        dt: Step [s].
        integrator: ``EULER``, ``IMPLICIT``, ``IMPLICITFAST``, ``DISCRETE``, ``RK4``.
        stiff: Time constant of the constraints in steps, with impedance 0.9999 and a solver
            tolerance of 1e-14; None for MuJoCo's defaults.
        exact_diagonal: Whether constraints are regularised by the exact diagonal.
        jacobian: ``DENSE``, ``SPARSE``, or ``AUTO``, which is sparse from 60 rates on.
    """

    def __init__(
        self,
        made: Problem,
        dt: float,
        integrator: str = "EULER",
        stiff: float | None = None,
        exact_diagonal: bool = False,
        jacobian: str = "AUTO",
    ) -> None:
        super().__init__(made, dt)
        self.library: Any = library("mujoco")
        self.library.set_mju_user_warning(_leave_to_the_judge)  # else MUJOCO_LOG.TXT is written
        softness: dict[str, str] = {}
        if stiff is not None:
            softness = {"solref": exact((stiff * dt, 1.0)), "solimp": exact(STIFF_IMPEDANCE)}
        self.model: Any = self.library.MjModel.from_xml_string(mjcf(made, softness))
        option = self.model.opt
        option.timestep = dt
        option.integrator = getattr(self.library.mjtIntegrator, f"mjINT_{integrator}")
        option.jacobian = getattr(self.library.mjtJacobian, f"mjJAC_{jacobian}")
        if stiff is not None:
            option.tolerance = STIFF_TOLERANCE
        if exact_diagonal:
            option.enableflags |= self.library.mjtEnableBit.mjENBL_DIAGEXACT
        rods = [tie.length for tie in made.ties if tie.kind == "rod"]
        self.model.tendon_length0[: len(rods)] = rods
        self.data: Any = self.library.MjData(self.model)
        joints = made.mechanism.joints.values()
        self.quats = [j.q.stop - 4 for j in joints if j.kind in ("free", "spherical")]
        self.reset()

    def reset(self) -> None:
        """Go back to the start."""
        self.library.mj_resetData(self.model, self.data)
        q, v = self.problem.q.copy(), self.problem.v.copy()
        if self.problem.floating:
            R = Rotation.from_quat(q[3:7])
            v[:3], v[3:6] = self.problem.v[3:6], R.inv().apply(self.problem.v[:3])
        for k in self.quats:
            q[k : k + 4] = np.roll(q[k : k + 4], 1)
        self.data.qpos[:], self.data.qvel[:] = q, v
        if not self.problem.floating:
            self.data.qfrc_applied[:] = self.problem.mechanism.axes["torque"]
        self.library.mj_forward(self.model, self.data)

    def call(self, steps: int) -> None:
        """A Python call a step."""
        step, model, data = self.library.mj_step, self.model, self.data
        for _ in range(steps):
            step(model, data)

    def loop(self, steps: int) -> None:
        """Many steps in one call."""
        self.library.mj_step(self.model, self.data, nstep=steps)

    def state(self) -> tuple[Array, Array]:
        """q and v now."""
        q, v = np.array(self.data.qpos), np.array(self.data.qvel)
        for k in self.quats:
            q[k : k + 4] = np.roll(q[k : k + 4], -1)
        return q, self._rates(q, v)

    def acceleration(self) -> Array | None:
        """As at the start."""
        self.reset()
        q, _ = self.state()
        return self._rates(q, np.array(self.data.qacc))

    def _rates(self, q: Array, v: Array) -> Array:
        """MuJoCo's rates, or accelerations, of a free base as ours: angular first, in the world."""
        if self.problem.floating:
            turn = Rotation.from_quat(q[3:7]).apply(v[3:6])
            v = np.concatenate([turn, v[:3], v[6:]])
        return v


def mjcf(made: Problem, softness: dict[str, str]) -> str:
    """XML with joints in the mechanism's order; attributes of all equality constraints.

    A revolute loop is two connects, as MuJoCo's documentation advises; a rod is a tendon of
    constant length, a spring one with stiffness. Rods come first.
    """
    mechanism = made.mechanism
    root = Xml.Element("mujoco")
    Xml.SubElement(root, "compiler", angle="radian")
    option = Xml.SubElement(root, "option", gravity=exact(mechanism.gravity))
    Xml.SubElement(option, "flag", contact="disable", limit="disable")
    elements = [Xml.SubElement(root, "worldbody")]
    for i, record in enumerate(mechanism.bodies[1:], start=1):
        place = {"pos": exact(record["p"]), "quat": _quaternion(record["R"])}
        body = Xml.SubElement(
            elements[int(record["parent"])], "body", {"name": f"body{i}", **place}
        )
        inertia = record["J"]
        Xml.SubElement(
            body,
            "inertial",
            pos=exact(record["com"]),
            mass=repr(float(record["mass"])),
            fullinertia=exact(inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]),
        )
        if record["joint"] == FREE:
            Xml.SubElement(body, "freejoint")
        else:
            axis = mechanism.axes[record["v"]]
            names = {"damping": "damping", "stiffness": "stiffness", "springref": "rest"}
            given = {key: repr(float(axis[name])) for key, name in names.items()}
            kind = JOINTS[int(record["joint"])]
            Xml.SubElement(body, "joint", {"type": kind, "axis": "0 0 1", **given})
        elements.append(body)
    tendons = Xml.Element("tendon")
    equality = Xml.SubElement(root, "equality")
    for n, tie in enumerate(made.ties):
        sites: dict[str, str] = {}
        for k, (p_a, p_b) in enumerate(tie.points()):
            for side, (on, R, p) in enumerate(((tie.a, tie.R_a, p_a), (tie.b, tie.R_b, p_b)), 1):
                sites[f"site{side}"] = _site(elements[on], f"site{n}_{k}_{side}", p, R)
            if tie.kind == "rod":
                rod = _tendon(tendons, f"rod{n}", sites)
                Xml.SubElement(equality, "tendon", {"tendon1": rod, **softness})
                continue
            kind = "weld" if tie.kind == "weld" else "connect"
            Xml.SubElement(equality, kind, {**sites, **softness})
    for n, strut in enumerate(made.struts):
        ends = ((strut.a, strut.p_a), (strut.b, strut.p_b))
        sites = {
            f"site{side}": _site(elements[on], f"strut{n}_{side}", p, np.eye(3))
            for side, (on, p) in enumerate(ends, 1)
        }
        given = {"stiffness": strut.stiffness, "damping": strut.damping}
        given["springlength"] = strut.length
        _tendon(tendons, f"strut{n}", sites, {key: repr(value) for key, value in given.items()})
    if len(tendons):
        root.append(tendons)
    return Xml.tostring(root, encoding="unicode")


def _site(on: Xml.Element, name: str, p: Array, R: Array) -> str:
    Xml.SubElement(on, "site", {"name": name, "pos": exact(p), "quat": _quaternion(R)})
    return name


def _tendon(
    tendons: Xml.Element, name: str, sites: dict[str, str], given: dict[str, str] | None = None
) -> str:
    """A straight line between two sites."""
    made = Xml.SubElement(tendons, "spatial", {"name": name, **(given or {})})
    for site in sites.values():
        Xml.SubElement(made, "site", site=site)
    return name


def _quaternion(R: Array) -> str:
    return exact(np.roll(Rotation.from_matrix(R).as_quat(), 1))
