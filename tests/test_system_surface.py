"""What users can call and ask of a system: names and signatures stay as they are here."""

import inspect

from bulletbridge import System

METHODS = {
    "__init__": (
        "(self, mechanism, constraints=(), *, world=None, forces=None, "
        "dt=0.004166666666666667, allow_structure=False, **options)"
    ),
    "acceleration": "(self)",
    "applied_power": "(self, q=None, v=None, t=None)",
    "applied_wrenches": "(self, q=None, v=None, t=None)",
    "assemble": "(self, q=None, v=None, guess=None, *, within_limits=False)",
    "carried": "(self, name, told, span=0.0)",
    "closing_impulse": "(self)",
    "compiled": "(self)",
    "connect": "(self, constraint, *, as_is=False, assemble=False, tolerance=1e-06)",
    "contact_forces": "(self, bodies)",
    "contacts": "(self)",
    "derivatives": "(self, parameters=())",
    "differentiable": "(self)",
    "differentiate_steps": "(self, asked)",
    "disconnect": "(self, name)",
    "evaluate": "(self, q=None, v=None, t=None)",
    "exchange": "(self, constraints)",
    "filter": "(self, sticking=None, open=(), assemble=False, found=None, write=True, led=True)",
    "forget": "(self, *, impulses=True)",
    "fork": "(self, number, spare=())",
    "gap_vectors": "(self, q=None, t=None, *, kept=False)",
    "tangent_solver": "(self)",
    "take_home": "(self, copies)",
    "joint_reactions": "(self, pushes=())",
    "lend": "(self, number=1)",
    "kinematics": "(self)",
    "linearise": (
        "(self, what='step', *, reduced=False, inputs=None, frames=(), reactions=(), gaps=(), "
        "by=None, smoothing=0.0)"
    ),
    "link_pose": "(self, name)",
    "gap_columns": "(self, run)",
    "misplaced_frames": "(self, guess=None)",
    "opening": "(self, rounding)",
    "loop_axes": "(self, name)",
    "place": "(self, name, frame)",
    "reactions": "(self)",
    "read": "(self)",
    "rebase": "(self, mechanism)",
    "recorded": "(self)",
    "restore": "(self, state, *, write=True)",
    "roll": "(self, tau, counts, table)",
    "rollout": "(self, steps, every=1, reactions=())",
    "run": "(self, duration, every=1, reactions=())",
    "save": "(self, *, world=True)",
    "set_max_force": "(self, name, force)",
    "set_offset": "(self, name, offset)",
    "set_parameters": "(self, values)",
    "set_state": "(self, q=None, v=None, t=None)",
    "smooth_step": "(self, smoothing)",
    "snapshot": "(self)",
    "spring_forces": "(self)",
    "start_from": "(self, start, parameters)",
    "recall_steps": "(self, memory)",
    "step": "(self, *given, write=True)",
    "step_derivatives": "(self, smoothing=0.0)",
    "step_with_derivatives": "(self)",
    "take_back": "(self, state)",
    "take_stiff_springs_implicitly": "(self)",
    "terms": "(self)",
    "widths": "(self, q)",
    "wrench": "(self, link, force, torque=None)",
    "write": "(self)",
}
"""Signatures without types, by name."""
TOLD = {
    "closing_allowance",
    "complementarity",
    "contact_points",
    "constraints",
    "decision",
    "dof",
    "dynamics",
    "encoded",
    "finds_contacts",
    "has_inequalities",
    "holding",
    "integrator",
    "joint_loads",
    "has_dependent_rows",
    "known_filter",
    "lone_step",
    "mechanism",
    "motors",
    "parameters",
    "q",
    "status",
    "steps_of_joints",
    "t",
    "tolerances",
    "v",
}
MAY_BE_SET = {
    "dt",
    "gravity",
    "tau",
    "world",
}


def signature(function):
    """Names, kinds and defaults of what a function takes."""
    whole = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in whole.parameters.values()]
    return str(whole.replace(parameters=bare, return_annotation=whole.empty))


def test_the_public_surface_of_a_system_is_this():
    public = {name: inspect.getattr_static(System, name) for name in dir(System)}
    public = {name: x for name, x in public.items() if not name.startswith("_")}
    properties = {name: x for name, x in public.items() if isinstance(x, property)}
    assert {name for name, x in properties.items() if x.fset is None} == TOLD
    assert {name for name, x in properties.items() if x.fset is not None} == MAY_BE_SET
    methods = {name: signature(x) for name, x in public.items() if name not in properties}
    assert methods | {"__init__": signature(System.__init__)} == METHODS


def test_what_is_public_is_described():
    for name, x in vars(System).items():
        if not name.startswith("_"):
            assert inspect.getdoc(x), name


def test_a_system_is_one_class():
    assert System.__mro__ == (System, object)
