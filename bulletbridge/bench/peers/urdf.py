"""A problem as URDF, for simulators that read nothing else."""

from pathlib import Path
from xml.etree import ElementTree as Xml

from bulletbridge.bench.peers.base import require_joints
from bulletbridge.bench.problem import Problem
from bulletbridge.mechanism.records import FREE, PRISMATIC
from bulletbridge.models.formats.robot import Inertial, Joint, Link, Pose
from bulletbridge.models.formats.urdf_text import joint_element, link_element


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
        inertial = Inertial(float(record["mass"]), record["com"], record["J"])
        root.append(link_element(Link(f"body{k}", inertial), Path()))
        if record["joint"] == FREE:
            continue
        kind = "prismatic" if record["joint"] == PRISMATIC else "revolute"
        parent = f"body{record['parent']}" if record["parent"] else "base"
        joint = Joint(names[int(record["v"])], kind, parent, f"body{k}")
        joint.place = Pose(record["R"], record["p"])
        joint.damping = float(mechanism.axes[record["v"]]["damping"])
        root.append(joint_element(joint))
    Xml.indent(root)  # Bullet breaks lines of more than 8 kB in the middle of a word
    return Xml.tostring(root, encoding="unicode")
