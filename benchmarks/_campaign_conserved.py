"""What no force can change: energy without drives, forces and dampers, and momenta of groups.

A group is the robots that constraints hold together. One that nothing holds to the world keeps its
angular momentum about its centre of mass, and its linear one but for its weight, whatever its
joints and drives do. Twists are the judge's, inertias the mechanism's.
"""

import numpy as np
from _campaign_judge import Judge, Values, cross, norm, turned

import bulletbridge as bb
from bulletbridge.mechanism.records import FREE

SAG = 1e-5
"""Share of a weight times the length of what hangs that it may rise or fall by in closed loops:
a chain at its reach bends by the root of a gap of 1e-12, and nothing tells how."""
SETTLED = 1e-9
"""Share of linear momentum times the size of a group, and of what weights have made of it, that is
round-off."""


class Conserved:
    """Measures of a mechanism that stay.

    Args:
        judge: Of its motion.
        energy: Whether nothing drives, pushes or brakes it.
        pushed: (nv,) forces on the rates.
    """

    def __init__(self, judge: Judge, energy: bool, pushed: Values) -> None:
        self.judge, self.energy = judge, energy
        self.groups = free_groups(judge, pushed)
        self.names = ["energy"] * energy
        for n in range(len(self.groups)):
            self.names += [f"momentum {n}", f"angular momentum {n}"]

    def measure(self, q: Values, v: Values, t: Values) -> tuple[Values, Values, Values]:
        """What stays at n states, the size of its terms, and what is told from nothing.

        Returns:
            (n, k, 3) with energy as the first of three, (n, k), (n, k).
        """
        m, bodies = self.judge.moving(q, v), self.judge.mechanism.bodies
        gravity = self.judge.mechanism.gravity
        place = m.p + turned(m.R, bodies["com"])
        span = np.ptp(place[:, 1:], axis=1).max(axis=1) + norm(bodies["p"]).sum()
        found, sizes, floors = list[Values](), list[Values](), list[Values]()
        if self.energy:
            kinetic, potential = self.judge.energies(q, v)
            total = np.zeros((len(t), 3))
            total[:, 0] = kinetic + potential
            found.append(total)
            sizes.append(kinetic)
            floors.append(SAG * np.linalg.norm(gravity) * bodies["mass"].sum() * span)
        for group in self.groups:
            mass, R, w = bodies["mass"][group], m.R[:, group], m.w[:, group]
            speed = m.u[:, group] + cross(w, turned(R, bodies["com"][group]))
            whole = mass.sum()
            centre = np.einsum("b,nbi->ni", mass, place[:, group]) / whole
            linear = np.einsum("b,nbi->ni", mass, speed)
            own = np.einsum("bij,nbj->nbi", bodies["J"][group], turned(np.swapaxes(R, 2, 3), w))
            relative = place[:, group] - centre[:, None]
            around = cross(relative, mass[:, None] * (speed - (linear / whole)[:, None]))
            parts = turned(R, own) + around
            weight = whole * gravity
            fast = norm(speed) @ mass
            found += [linear - t[:, None] * weight, parts.sum(axis=1)]
            sizes += [fast, norm(parts).sum(axis=1)]
            least = SETTLED * (fast + t * np.linalg.norm(weight))
            floors += [least, least * span]
        if not found:
            return np.zeros((len(t), 0, 3)), np.zeros((len(t), 0)), np.zeros((len(t), 0))
        return np.stack(found, axis=1), np.stack(sizes, axis=1), np.stack(floors, axis=1)


class Drift:
    """How far what stays has come off in the states of a run.

    Args:
        conserved: What stays.
    """

    def __init__(self, conserved: Conserved) -> None:
        self.conserved, k = conserved, len(conserved.names)
        self.start: Values | None = None
        self.sizes, self.off, self.floors = np.zeros(k), np.zeros(k), np.zeros(k)
        self.gain = self.loss = self.told = 0.0  # of energy [J]

    def look(self, q: Values, v: Values, t: Values, told: float = 0.0) -> None:
        """Take states (n, nq), (n, nv), (n,) into account; the first one ever is the start.

        Args:
            q: Configurations.
            v: Rates.
            t: Times [s].
            told: Energy [J] that it was said is lost since the start, by the last of them.
        """
        found, sizes, floors = self.conserved.measure(q, v, t)
        if self.start is None:
            self.start = found[0]
        change = found - self.start
        self.sizes = np.maximum(self.sizes, sizes.max(axis=0))
        self.floors = np.maximum(self.floors, floors.max(axis=0))
        if self.conserved.energy:
            up, down = change[:, 0, 0] + self.told, -change[:, 0, 0] - told
            self.gain, self.loss = (
                max(self.gain, float(up.max())),
                max(self.loss, float(down.max())),
            )
            change[:, 0] = 0.0
            self.off[0], self.told = max(self.gain, self.loss), told
        self.off = np.maximum(self.off, norm(change).max(axis=0))

    @property
    def shares(self) -> Values:
        """(k,) of the largest size of its terms, beyond what is told from nothing."""
        beyond = np.maximum(self.off - self.floors, 0.0)
        return np.where(beyond > 0.0, beyond / np.maximum(self.sizes, 1e-300), 0.0)


def free_groups(judge: Judge, pushed: Values) -> list[list[int]]:
    """Bodies of each group of robots that nothing but weight acts on from outside."""
    mechanism = judge.mechanism
    bodies = mechanism.bodies
    root = list(range(len(bodies)))
    for i in range(1, len(bodies)):
        if bodies[i]["joint"] != FREE:
            root[i] = root[int(bodies[i]["parent"])]
    group = {r: r for r in root}

    def find(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    for c in judge.constraints:
        if isinstance(c, bb.Coupling):
            first = {mechanism.joints[name].v.start for name in c.coefficients}
            carried = {find(root[i]) for i in range(1, len(bodies)) if bodies[i]["v"] in first}
        else:
            carried = {find(root[mechanism.links[f.link].body]) for f in (c.a, c.b)}
        least = min(carried)
        for one in carried:
            group[one] = least
    for i in range(1, len(bodies)):
        first = int(bodies[i]["v"])
        outside = bodies[i]["joint"] == FREE and (
            pushed[first : first + 6].any() or mechanism.axes["damping"][first : first + 6].any()
        )
        if outside:
            group[find(root[i])] = 0
            group[0] = 0
    groups: dict[int, list[int]] = {}
    for i in range(1, len(bodies)):
        if find(root[i]) != 0:
            groups.setdefault(find(root[i]), []).append(i)
    return list(groups.values())
