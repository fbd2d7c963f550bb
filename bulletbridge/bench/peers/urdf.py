"""A problem as URDF, for simulators that read nothing else."""

from xml.etree import ElementTree as Xml

import numpy as np

from bulletbridge.bench.peers.base import require_joints
from bulletbridge.bench.problem import Problem
from bulletbridge.mechanism.frames import matrix_rpy
from bulletbridge.mechanism.records import FREE, PRISMATIC
from bulletbridge.models.formats.urdf_text import principal
from bulletbridge.numerics.records import Array


def urdf(made: Problem) -> str:
    """Links ``body1`` and so on, joints by their names, ``base`` below them unless they float.

    Raises:
        UnsupportedError: A joint that URDF does not have.
    """
    require_joints(made, "URDF")
    mechanism = made.mechanism
    root = Xml.Element("robot", name=made.name)
    names = {joint.v.start: name for name, joint in mechanism.joints.items()}
    if not made.floating:
        Xml.SubElement(root, "link", name="base")
    for k, record in enumerate(mechanism.bodies[1:], start=1):
        link = Xml.SubElement(root, "link", name=f"body{k}")
        axes, moments = principal(record["J"])
        inertial = Xml.SubElement(link, "inertial")
        rpy = numbers(matrix_rpy(axes))
        Xml.SubElement(inertial, "origin", xyz=numbers(record["com"]), rpy=rpy)
        Xml.SubElement(inertial, "mass", value=repr(float(record["mass"])))
        entries = dict(zip(("ixx", "iyy", "izz"), map(repr, moments.tolist()), strict=True))
        Xml.SubElement(inertial, "inertia", {**entries, "ixy": "0", "ixz": "0", "iyz": "0"})
        if record["joint"] == FREE:
            continue
        kind = "prismatic" if record["joint"] == PRISMATIC else "continuous"
        joint = Xml.SubElement(root, "joint", name=names[int(record["v"])], type=kind)
        parent = int(record["parent"])
        Xml.SubElement(joint, "parent", link=f"body{parent}" if parent else "base")
        Xml.SubElement(joint, "child", link=f"body{k}")
        xyz, rpy = numbers(record["p"]), numbers(matrix_rpy(record["R"]))
        Xml.SubElement(joint, "origin", xyz=xyz, rpy=rpy)
        Xml.SubElement(joint, "axis", xyz="0 0 1")
        if kind == "prismatic":  # required by the format; an upper end below the lower one is none
            Xml.SubElement(joint, "limit", lower="0", upper="-1", effort="1e9", velocity="1e9")
        damping = repr(float(mechanism.axes[record["v"]]["damping"]))
        Xml.SubElement(joint, "dynamics", damping=damping, friction="0")
    Xml.indent(root)  # Bullet breaks lines of more than 8 kB in the middle of a word
    return Xml.tostring(root, encoding="unicode")


def numbers(values: Array | tuple[float, ...]) -> str:
    """With all digits."""
    return " ".join(repr(float(x)) for x in np.ravel(np.asarray(values)))
