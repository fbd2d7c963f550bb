"""URDF text for tests: links and joints written by hand, or random trees of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bulletbridge.numerics.records import Array

Vector = Sequence[float] | Array
ALL_KINDS = ("revolute", "continuous", "prismatic", "spherical", "fixed")
ONE_DOF = tuple(kind for kind in ALL_KINDS if kind != "spherical")


def numbers(values: Vector) -> str:
    """As URDF wants them, with all digits."""
    return " ".join(repr(float(value)) for value in values)


def inertial(
    mass: float = 1.0,
    moments: Sequence[float] = (1.0, 1.0, 1.0),
    xyz: Vector = (0, 0, 0),
    rpy: Vector = (0, 0, 0),
    products: Sequence[float] = (0, 0, 0),
) -> str:
    """<inertial> with ixx iyy izz and ixy ixz iyz."""
    entries = zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), (*moments, *products), strict=True)
    tensor = " ".join(f'{key}="{value!r}"' for key, value in entries)
    return (
        f'<inertial><origin xyz="{numbers(xyz)}" rpy="{numbers(rpy)}"/>'
        f'<mass value="{mass!r}"/><inertia {tensor}/></inertial>'
    )


def link(name: str, content: str | None = None) -> str:
    """<link>; a unit mass with unit inertia unless told otherwise."""
    return f'<link name="{name}">{inertial() if content is None else content}</link>'


def joint(
    name: str,
    kind: str,
    parent: str,
    child: str,
    xyz: Vector = (0, 0, 0),
    rpy: Vector = (0, 0, 0),
    axis: str = "0 0 1",
    limits: tuple[float, float] = (-1.0, 1.0),
    damping: float = 0.0,
) -> str:
    """<joint>."""
    lower, upper = limits
    limit = f'<limit lower="{lower!r}" upper="{upper!r}" effort="100" velocity="100"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{numbers(xyz)}" rpy="{numbers(rpy)}"/><axis xyz="{axis}"/>'
        f"{limit if kind in ('revolute', 'prismatic') else ''}"
        f'<dynamics damping="{damping!r}"/></joint>'
    )


def robot(*elements: str, name: str = "robot") -> str:
    """<robot>."""
    return f'<?xml version="1.0"?>\n<robot name="{name}">\n' + "\n".join(elements) + "\n</robot>\n"


def one_joint(kind: str = "continuous", child: str | None = None, **options: Any) -> str:
    """A base that carries one link, ``child`` of which is its content, on joint ``j``."""
    return robot(link("base"), link("a", child), joint("j", kind, "base", "a", **options))


ARM = one_joint()


def random_inertial(
    rng: np.random.Generator, rotated: bool = True, full_tensor: bool = False
) -> str:
    """Possible inertia at an offset centre; full tensors Bullet diagonalises to 1e-6 only."""
    mass = rng.uniform(0.5, 3.0)
    a, b, c = mass * rng.uniform(0.01, 0.1, 3)  # second moments: their sums are moments of inertia
    products = mass * rng.uniform(-0.004, 0.004, 3) if full_tensor else np.zeros(3)
    rpy = rng.uniform(-2.0, 2.0, 3) if rotated else np.zeros(3)
    moments = [float(x) for x in (b + c, a + c, a + b)]
    return inertial(float(mass), moments, rng.normal(0, 0.2, 3), rpy, [float(x) for x in products])


def random_tree(
    rng: np.random.Generator,
    n: int,
    kinds: Sequence[str] = ALL_KINDS,
    *,
    rotated_inertials: bool = True,
    full_tensors: bool = False,
    branching: float = 0.3,
    damping: float = 0.0,
    limited: bool = True,
    name: str = "robot",
) -> str:
    """Tree of n joints ``j0``... that carry links ``l1``... on the base ``l0``, depth first.

    Whether the base is fixed is decided when the file is loaded.
    """
    elements = [link("l0", random_inertial(rng, rotated_inertials, full_tensors))]
    path = [0]  # links from the base to the last one
    for i in range(n):
        if rng.random() < branching:
            path = path[: int(rng.integers(1, len(path) + 1))]
        axis = rng.normal(size=3)
        elements += [
            link(f"l{i + 1}", random_inertial(rng, rotated_inertials, full_tensors)),
            joint(
                f"j{i}",
                str(rng.choice(list(kinds))),
                f"l{path[-1]}",
                f"l{i + 1}",
                rng.normal(0, 0.4, 3),
                rng.uniform(-3, 3, 3),
                numbers(axis / np.linalg.norm(axis)),
                (-float(rng.uniform(0.5, 1)), float(rng.uniform(0.5, 1)))
                if limited
                else (0.0, -1.0),
                damping * float(rng.uniform(0.5, 1.0)),
            ),
        ]
        path.append(i + 1)
    return robot(*elements, name=name)
