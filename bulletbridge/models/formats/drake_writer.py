"""Couplings, springs and limits of sums of joints in Drake's words, in a URDF or an SDF model.

For what ``<mimic>`` cannot say: sums of several joints, of one, or chains. ``drake_elements`` reads
them back. Source: Drake, "Parsing model directives": drake:tendon_constraint,
drake:linear_spring_damper, drake:linear_bushing_rpy.
"""

from collections.abc import Callable
from xml.etree import ElementTree as Xml

from bulletbridge.constraints.force_elements import Bushing, ForceElement, Spring, Tendon
from bulletbridge.constraints.joints import Coupling, Frame
from bulletbridge.models.formats.drake_elements import PREFIX
from bulletbridge.models.formats.urdf_text import exact

Put = Callable[[Xml.Element, str, str], None]
"""Puts a child with a value below an element, as the format has it."""
Local = Callable[[str], str | None]
"""The name by which a file knows a joint or link; None for what it cannot name."""
PutFrame = Callable[[Xml.Element, str, str, str, Frame], None]
"""Puts a child that names a frame below an element, and that frame on the link, which come last."""


def put_attribute(parent: Xml.Element, tag: str, value: str) -> None:
    """A child with its value in an attribute, as in a URDF."""
    Xml.SubElement(parent, tag, value=value)


def put_text(parent: Xml.Element, tag: str, value: str) -> None:
    """A child with its value as its text, as in SDF."""
    Xml.SubElement(parent, tag).text = value


def drake_element(
    made: Coupling | ForceElement, joint: Local, link: Local, put: Put, put_frame: PutFrame
) -> Xml.Element | None:
    """What a coupling or force element is in Drake's words; None where they cannot say all of it.

    Args:
        made: What is to be written, with positions as the file counts them.
        joint: Names of joints in the file.
        link: Names of links in the file.
        put: How the format writes values.
        put_frame: How it writes frames.
    """
    if isinstance(made, Bushing):
        return _bushing(made, link, put, put_frame)
    if isinstance(made, Coupling):
        return None if made.higher else _sum(made.coefficients, joint, put, made.offset)
    if isinstance(made, Spring):
        return _line(made, link, put)
    if not isinstance(made, Tendon) or made.damping or made.friction or made.motor or made.force:
        return None
    if made.limits is None:
        bounds = made.rest - made.slack, made.rest + made.slack
        return _sum(made.coefficients, joint, put, *bounds, made.stiffness)
    return None if made.stiffness else _sum(made.coefficients, joint, put, *made.limits)


def _sum(
    factors: dict[str, float],
    joint: Local,
    put: Put,
    low: float,
    high: float | None = None,
    stiffness: float | None = None,
) -> Xml.Element | None:
    """Bounds of a sum of positions, hard unless there is a stiffness; one bound is both."""
    element = Xml.Element(f"{PREFIX}tendon_constraint")
    for name, factor in factors.items():
        known = joint(name)
        if known is None:
            return None
        tag = f"{PREFIX}tendon_constraint_joint"
        Xml.SubElement(element, tag, name=known, a=exact((factor,)))
    values = {"lower_limit": low, "upper_limit": low if high is None else high}
    for key, value in (values if stiffness is None else values | {"stiffness": stiffness}).items():
        put(element, f"{PREFIX}tendon_constraint_{key}", exact((value,)))
    return element


def _line(spring: Spring, link: Local, put: Put) -> Xml.Element | None:
    """A spring between two points, if it is no more than that."""
    more = spring.force or spring.slack or spring.limits or spring.friction or spring.motor
    a, b = link(spring.a.link), link(spring.b.link)
    if more or spring.via or a is None or b is None:
        return None
    tag = f"{PREFIX}linear_spring_damper"
    element = Xml.Element(tag)
    values = {
        "body_A": a,
        "p_AP": exact(spring.a.xyz),
        "body_B": b,
        "p_BQ": exact(spring.b.xyz),
        "free_length": exact((spring.length,)),
        "stiffness": exact((spring.stiffness,)),
        "damping": exact((spring.damping,)),
    }
    for key, value in values.items():
        put(element, f"{tag}_{key}", value)
    return element


def _bushing(made: Bushing, link: Local, put: Put, put_frame: PutFrame) -> Xml.Element | None:
    """Six springs between two frames, which are put for it."""
    ends = {"A": made.a, "C": made.b}
    links = {key: link(frame.link) for key, frame in ends.items()}
    element = Xml.Element(f"{PREFIX}linear_bushing_rpy")
    for key, frame in ends.items():
        known = links[key]
        if known is None or None in links.values():
            return None
        put_frame(element, f"{PREFIX}bushing_frame{key}", f"{made.name}_{key}", known, frame)
    values = {
        "force_stiffness": made.stiffness,
        "force_damping": made.damping,
        "torque_stiffness": made.turning_stiffness,
        "torque_damping": made.turning_damping,
    }
    for key, value in values.items():
        put(element, f"{PREFIX}bushing_{key}", exact(value))
    return element
