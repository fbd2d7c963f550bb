"""Any mechanism with its loops as MuJoCo's XML, so that peers run the same robot."""

from xml.etree import ElementTree as Xml

import numpy as np
from scipy.spatial.transform import Rotation

from bulletbridge.constraints.encode import Encoded
from bulletbridge.constraints.layout import FREE_ROTATION, FULL
from bulletbridge.mechanism.layout import FREE, PRISMATIC, REVOLUTE, SPHERICAL
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array

JOINTS = {REVOLUTE: "hinge", PRISMATIC: "slide", SPHERICAL: "ball"}


def mjcf(mechanism: Mechanism, encoded: Encoded) -> str:
    """XML with joints in the mechanism's order; ball, weld and revolute loops only.

    A revolute loop is two connects, as MuJoCo's documentation advises.

    Raises:
        ValueError: A loop has no equality constraint that stands for it.
    """
    root = Xml.Element("mujoco")
    Xml.SubElement(root, "compiler", angle="radian")
    option = Xml.SubElement(root, "option", gravity=_numbers(mechanism.gravity))
    Xml.SubElement(option, "flag", contact="disable", limit="disable")
    elements = [Xml.SubElement(root, "worldbody")]
    for i, record in enumerate(mechanism.bodies[1:], start=1):
        body = Xml.SubElement(
            elements[int(record["parent"])],
            "body",
            name=f"body{i}",
            pos=_numbers(record["p"]),
            quat=_quaternion(record["R"]),
        )
        inertia = record["J"]
        Xml.SubElement(
            body,
            "inertial",
            pos=_numbers(record["com"]),
            mass=repr(float(record["mass"])),
            fullinertia=_numbers(inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]),
        )
        if record["joint"] == FREE:
            Xml.SubElement(body, "freejoint")
        else:
            axis = mechanism.axes[record["v"]]
            kind = JOINTS[int(record["joint"])]
            names = {"damping": "damping", "stiffness": "stiffness", "springref": "rest"}
            given = {name: repr(float(axis[ours])) for name, ours in names.items()}
            Xml.SubElement(body, "joint", {"type": kind, "axis": "0 0 1"} | given)
        elements.append(body)
    equality = Xml.SubElement(root, "equality")
    for n, loop in enumerate(encoded.loops):
        points = [np.zeros(3)]
        if loop["variable"] or loop["rows"] < 3:
            raise ValueError("MuJoCo has no equality constraint for this loop")
        if loop["rotation"] not in (FREE_ROTATION, FULL):
            points.append(np.array([0, 0, 0.1]))
        kind = "weld" if loop["rotation"] == FULL else "connect"
        for k, offset in enumerate(points):
            names: dict[str, str] = {}
            for side, end in enumerate("ab", start=1):
                R, p = loop[f"R_{end}"], loop[f"p_{end}"] + loop[f"R_{end}"] @ offset
                name = names[f"site{side}"] = f"site{n}_{k}_{end}"
                place = {"name": name, "pos": _numbers(p), "quat": _quaternion(R)}
                Xml.SubElement(elements[int(loop[f"body_{end}"])], "site", place)
            Xml.SubElement(equality, kind, names)
    return Xml.tostring(root, encoding="unicode")


def _numbers(values: Array) -> str:
    return " ".join(repr(float(x)) for x in values)


def _quaternion(R: Array) -> str:
    return _numbers(np.roll(Rotation.from_matrix(R).as_quat(), 1))
