"""Inverse dynamics of closed chains: joint forces for an acceleration, on actuated joints only.

Source: the projected equation of motion, Kövecses and Piedbœuf 2003, eq. 27.
"""

from collections.abc import Collection, Mapping

import numpy as np

from bulletbridge.control.distribution import Distribution, Names, rounding, row_names
from bulletbridge.control.free_motion import FreeMotion
from bulletbridge.control.laws_kernel import RTOL
from bulletbridge.errors import InfeasibleError, ModelError
from bulletbridge.formulations.equations import Equations
from bulletbridge.formulations.system_dynamics import SystemDynamics
from bulletbridge.mechanism.by_joint import Values, put_values, rate_names
from bulletbridge.numerics.records import Array
from bulletbridge.numerics.triangles import solve_triangle
from bulletbridge.system.system import System


def undriven(system: System) -> SystemDynamics:
    """The equations of motion of a system, its ``tau`` left out."""
    return SystemDynamics(system.dynamics.solver, driven=False)


def distribution(
    system: System,
    actuated: Collection[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Distribution:
    """Which joints of a system are actuated, and how their forces are weighed.

    Args:
        system: Where they are.
        actuated: Names of joints; unless given those of the robot's file (``actuated``), or, where
            it names none, all but floating bases and beams.
        weights: Of the norm that is least, by joint; 1 for the others. See ``Distribution``.

    Raises:
        ModelError: A joint does not exist, or a weight is not positive.
    """
    mechanism = system.mechanism
    if isinstance(actuated, str):
        raise ModelError(f"actuated is '{actuated}'; give a list of names, as ['{actuated}']")
    if actuated is None:
        passive = ("free", "beam")
        able = [n for n, joint in mechanism.joints.items() if joint.kind not in passive]
        actuated = mechanism.actuated or able
    mask, scale = np.zeros(mechanism.nv, bool), np.ones(mechanism.nv)
    for name in actuated:
        mask[mechanism.joint(name).v] = True
    for name, weight in (weights or {}).items():
        if not (np.isfinite(weight) and weight > 0.0):
            raise ModelError(f"the weight of joint '{name}' is {weight}; give a positive number")
        scale[mechanism.joint(name).v] = weight
    encoded = undriven(system).solver.encoded
    names = Names(list(rate_names(mechanism)), row_names(encoded.rows, encoded.nc))
    return Distribution(mask, scale, names)


def inverse_dynamics(
    system: System,
    vdot: Array | Values,
    *,
    actuated: Collection[str] | None = None,
    reactions: Mapping[str, Array] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Array:
    """Joint forces that give an acceleration at the present state, none on passive joints.

    Gravity, springs, dampers, constant torques and link damping are accounted for; ``tau`` of the
    system is not, since the result is what to put there. Where there are more actuated joints than
    freedoms, the result has the least norm, or the internal forces that are prescribed.

    Args:
        system: Mechanism and state; nothing of it changes.
        vdot: (nv,) acceleration [rad/s² or m/s²], which must satisfy the constraints, or that of
            some joints by name; the others move as they must, or as costs least force.
        actuated: Names of the joints that may act; unless given those of the robot's file
            (``actuated``), or, where it names none, all but floating bases and beams.
        reactions: Wrench (6,), moment [N m] first, then force [N], world axes, at the origin of
            frame b on the link of frame b, by name of the loop: as ``reactions`` reports it. Only
            what the loop can transmit counts. Couplings and users' rows take their multipliers.
        weights: Of the norm that is least, by joint: see ``Distribution``.

    Returns:
        tau (nv,) [N m or N].

    Raises:
        ModelError: A name does not exist, or a number is missing or not finite.
        InfeasibleError: The constraints do not admit the acceleration, or the actuated joints
            cannot produce it; the message says by how much and where.

    Source: Kövecses and Piedbœuf 2003, eq. 27.
    """
    share = distribution(system, actuated, weights)
    e = undriven(system).equations(system.q, system.v, system.t)
    here = FreeMotion.of(e)
    lam = None if reactions is None else multipliers(system, reactions)
    if isinstance(vdot, Mapping):
        wanted = np.zeros(system.mechanism.nv)
        named = put_values(system.mechanism, vdot, wanted, "v")
        return share.forces(here, here.free.T[named], (wanted - here.unforced)[named], lam)
    if np.shape(vdot) != (system.mechanism.nv,) or not np.all(np.isfinite(vdot)):
        raise ModelError(f"give {system.mechanism.nv} finite accelerations, or some by joint name")
    _require_admissible(here, e, share.names, vdot)
    return share.forces(here, None, here.reduce(vdot - here.unforced), lam)


def multipliers(system: System, reactions: Mapping[str, Array]) -> Array:
    """Multipliers (nc,) of the kept rows for wrenches by constraint; NaN where none is given.

    Args:
        system: At the state where they are to act.
        reactions: Wrench (6,) of each loop, as in ``inverse_dynamics``; multipliers of couplings
            and users' rows.

    Raises:
        ModelError: There is no such constraint, or not as many numbers as it has.
    """
    solver = undriven(system).solver
    poses, t = solver.poses_at(np.asarray(system.q, np.float64)), system.t
    lam = np.full(solver.encoded.nc, np.nan)
    order = list(solver.encoded.rows)
    for name, wanted in reactions.items():
        if name not in order:
            raise ModelError(f"there is no constraint '{name}'; there are {', '.join(order)}")
        part, wrench = solver.encoded.rows[name], np.asarray(wanted, float)
        if order.index(name) < len(solver.encoded.loops):
            _require_numbers(name, wrench, 6)
            _, rows = solver.wrench_rows(poses, order.index(name), t)
            lam[part] = np.linalg.lstsq(rows.T, wrench)[0]
        else:
            _require_numbers(name, wrench, part.stop - part.start)
            lam[part] = wrench
    return lam


def _require_numbers(name: str, numbers: Array, count: int) -> None:
    if numbers.shape != (count,) or not np.all(np.isfinite(numbers)):
        raise ModelError(f"reaction '{name}' needs {count} finite numbers, not {numbers}")


def _require_admissible(here: FreeMotion, e: Equations, names: Names, vdot: Array) -> None:
    """Refuse accelerations that would open the constraints."""
    if not len(e.gamma):
        return
    # what of it the rows can tell at all: dependent rows may be off by what is imposed on others
    kept = e.unit * (e.J @ here.imposed(e.J @ vdot + e.gamma))
    off = np.abs(solve_triangle(here.L, np.eye(len(vdot))))
    off = rounding(here) * (off @ (off.T @ e.sizes))  # of accelerations, for want of digits
    size = np.abs(e.J) @ (RTOL * np.abs(vdot) + off) + RTOL * np.abs(e.gamma)
    limit, worst = float(np.max(e.unit * size)), int(np.argmax(np.abs(kept)))
    if np.abs(kept[worst]) <= limit:
        return
    unit = e.unit[worst]
    raise InfeasibleError(
        f"the acceleration opens '{names.rows[worst]}' by {abs(kept[worst]) / unit:.3g} m/s² or "
        f"rad/s² (limit {limit / unit:.1g}); command accelerations of some joints by name, or "
        "project them on the constraints"
    )
