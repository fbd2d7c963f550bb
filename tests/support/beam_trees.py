"""Trees with flexible beams: random ones, the thesis's arms, and a second way to compute them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from bulletbridge.mechanism.beams import FlexibleBeam
from bulletbridge.mechanism.build import Load, empty_mechanism, with_beam, with_joint
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.numerics.records import Array

Vector = tuple[float, float, float]
Numbers = NDArray[Any]
"""Real, or complex for a complex step."""
STIFFNESS = 7e10 * 0.08 * 0.002**3 / 12
"""EI [N m²] of the thesis's links: aluminium, 80 mm by 2 mm."""
DENSITY = 0.448  # [kg/m]
LONG, SHORT = (FlexibleBeam(length, STIFFNESS, DENSITY) for length in (1.0, 0.5))


@dataclass(frozen=True)
class PlanarLink:
    """A pin, a beam on it, and a load at its tip, with its centre ahead of it."""

    beam: FlexibleBeam
    mass: float = 0.0
    ahead: float = 0.0
    inertia: float = 0.0


def planar_arm(links: Sequence[PlanarLink], gravity: Vector = (0.0, 0.0, 0.0)) -> Mechanism:
    """Links in the x-y plane: joints j0, b0, j1, b1, ..., bodies hub0, tip0, ..."""
    mechanism, on = empty_mechanism(gravity), "world"
    for i, link in enumerate(links):
        mechanism = with_joint(mechanism, f"j{i}", "revolute", f"hub{i}", on)
        load = Load(link.mass, (link.ahead, 0.0, 0.0), (0.0, 0.0, link.inertia))
        mechanism = with_beam(mechanism, f"b{i}", link.beam, f"tip{i}", f"hub{i}", load=load)
        on = f"tip{i}"
    return mechanism


def triple(x: Array) -> Vector:
    """Three numbers as descriptions hold them."""
    return float(x[0]), float(x[1]), float(x[2])


def random_beam_tree(
    rng: np.random.Generator, kinds: Sequence[str], gravity: bool = True
) -> Mechanism:
    """A branched tree of the given kinds of joints with offset and turned frames."""
    mechanism = empty_mechanism(triple(rng.normal(0, 6, 3)) if gravity else (0.0, 0.0, 0.0))
    links = ["world"]
    for i, kind in enumerate(kinds):
        on = (
            "world"
            if kind == "free"
            else links[-1 if rng.random() < 0.7 else int(rng.integers(len(links)))]
        )
        at, turn = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if kind != "free":
            at = triple(rng.normal(0, 0.4, 3))
            turn = triple(Rotation.random(rng=rng).as_euler("xyz"))
        a, mass = rng.normal(0, 0.2, (3, 3)), rng.uniform(0.5, 3.0)
        J = mass * (np.trace(a @ a.T) * np.eye(3) - a @ a.T + 0.01 * np.eye(3))
        load = Load(mass, triple(rng.normal(0, 0.2, 3)), J)
        if kind == "beam":
            if rng.random() < 0.3:
                load = Load()
            beam = FlexibleBeam(*rng.uniform(0.5, 1.5, 3), modes=int(rng.integers(1, 4)))
            mechanism = with_beam(mechanism, f"j{i}", beam, f"l{i}", on, at, turn, load)
        else:
            mechanism = with_joint(mechanism, f"j{i}", kind, f"l{i}", on, at, turn, load)
        links.append(f"l{i}")
    return mechanism


def random_beam_state(rng: np.random.Generator, mechanism: Mechanism) -> tuple[Array, Array]:
    """Configuration with beams bent by a tenth of their length, and velocity."""
    q = rng.normal(0, 0.8, mechanism.nq)
    for joint in mechanism.joints.values():
        if joint.kind in ("spherical", "free"):
            q[joint.q.stop - 4 : joint.q.stop] = Rotation.random(rng=rng).as_quat()
        elif joint.kind == "beam":
            q[joint.q] *= 0.1
    return q, rng.normal(0, 1.0, mechanism.nv)


class Oracle:
    """A planar arm in absolute coordinates of points: shapes by the textbook's formula, point
    masses by quadrature on other points, derivatives by complex steps."""

    def __init__(
        self, links: Sequence[PlanarLink], gravity: Vector = (0.0, 0.0, 0.0), points: int = 24
    ) -> None:
        self.links, self.gravity, self.points = links, np.array(gravity[:2]), points
        self.tables = [self._table(link.beam) for link in links]
        self.n = sum(1 + link.beam.modes for link in links)

    def _table(self, beam: FlexibleBeam) -> tuple[Array, Array, Array, Array, Array]:
        """Points x, weights, sigma, slope (modes, n), S (n, modes, modes); the tip is the last."""
        wave = np.array([1.8751040687119612, 4.694091132974175, 7.854757438237613])[: beam.modes]

        def shapes(x: Array) -> tuple[Array, Array]:
            s = np.outer(wave, x) / beam.length
            g = (np.sinh(wave) - np.sin(wave)) / (np.cosh(wave) + np.cos(wave))
            sigma = np.cosh(s) - np.cos(s) - g[:, None] * (np.sinh(s) - np.sin(s))
            slope = np.sinh(s) + np.sin(s) - g[:, None] * (np.cosh(s) - np.cos(s))
            return sigma, slope * wave[:, None] / beam.length

        nodes, weights = np.polynomial.legendre.leggauss(self.points)
        x = np.append(0.5 * beam.length * (1 + nodes), beam.length)
        S = list[Array]()
        for end in x:
            pieces = np.linspace(0, float(end), 9)
            fine = np.concatenate(
                [
                    a + 0.5 * (b - a) * (1 + nodes)
                    for a, b in zip(pieces[:-1], pieces[1:], strict=True)
                ]
            )
            w = np.tile(0.5 * end / 8 * weights, 8)
            slope = shapes(fine)[1]
            S.append((slope * w) @ slope.T)
        mass = np.append(0.5 * beam.length * beam.density * weights, 0.0)
        return x, mass, *shapes(x), np.array(S)

    def place(self, q: Numbers) -> tuple[Array, Numbers, Numbers, Numbers]:
        """Masses, points (n, 2) and angles of the loads, for real or complex q."""
        origin, angle, k = np.zeros(2, q.dtype), 0.0 * q[0], 0
        masses, points, angles = list[Array](), list[Numbers](), list[Any]()
        for link, (x, mass, sigma, slope, S) in zip(self.links, self.tables, strict=True):
            angle = angle + q[k]
            a = q[k + 1 : k + 1 + link.beam.modes]
            along, across = x - 0.5 * np.einsum("i,nij,j->n", a, S, a), a @ sigma
            c, s = np.cos(angle), np.sin(angle)
            here = origin + np.stack([c * along - s * across, s * along + c * across], axis=1)
            angle, origin = angle + a @ slope[:, -1], here[-1]
            centre = origin + link.ahead * np.array([np.cos(angle), np.sin(angle)])
            masses.append(np.append(mass, link.mass))
            points.append(np.vstack([here, centre]))
            angles.append(angle)
            k += 1 + link.beam.modes
        return np.concatenate(masses), np.concatenate(points), np.array(angles), origin

    def slopes(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Rates along v of what ``place`` gives, by a complex step."""
        _, points, angles, tip = self.place(q + 1e-40j * v)
        return np.imag(points) * 1e40, np.imag(angles) * 1e40, np.imag(tip) * 1e40

    def curvatures(self, q: Array, v: Array, step: float = 1e-5) -> list[Array]:
        """Second derivatives along v: differences of complex steps, Richardson's twice."""

        def once(h: float) -> list[Array]:
            pairs = zip(self.slopes(q + h * v, v), self.slopes(q - h * v, v), strict=True)
            return [(a - b) / (2 * h) for a, b in pairs]

        return [(4 * a - b) / 3 for a, b in zip(once(step), once(2 * step), strict=True)]

    def terms(self, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        """M, h, tip Jacobian (2, n) and the tip's acceleration at zero accelerations."""
        masses = self.place(q)[0]
        inertias = np.array([link.inertia for link in self.links])
        columns = [self.slopes(q, e) for e in np.eye(self.n)]
        P = np.array([c[0] for c in columns])
        A = np.array([c[1] for c in columns])
        J = np.array([c[2] for c in columns]).T
        acceleration, turning, tip = self.curvatures(q, v)
        M = np.einsum("n,ind,jnd->ij", masses, P, P) + (A * inertias) @ A.T
        h = np.einsum("n,ind,nd->i", masses, P, acceleration - self.gravity)
        return M, h + A @ (inertias * turning), J, tip
