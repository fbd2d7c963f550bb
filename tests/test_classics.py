"""The papers' small systems: elimination, its modified integration, and tangent-space charts.

Numbers of 12 digits are the reference values of independent prototypes (other coordinates, other
integrators), not of this package.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.stats import special_ortho_group

import bulletbridge as bb
from bulletbridge.errors import ChartError, ModelError, StepError
from bulletbridge.formulations.chart import Chart, Iterations
from bulletbridge.formulations.charts import ChartMotion, Condition, Norm, Tilt
from bulletbridge.formulations.classics import particle, slider_crank, three_link, top
from bulletbridge.formulations.elimination import Elimination, condense
from bulletbridge.formulations.equations import Coordinates, Equations
from bulletbridge.formulations.first_order import rk4, rk45
from bulletbridge.formulations.modified import Modified, Unmodified
from bulletbridge.formulations.projector import Projector

SYSTEMS = [
    particle.OnCylinder(),
    particle.AtSpeed(),
    three_link.ThreeLink(),
    top.Top(),
    slider_crank.SliderCrank(),
]
STEP = np.finfo(float).eps ** (1 / 3)  # of central differences: balances h² and eps / h


def precise(dynamics, q, v, t, atol=1e-13):
    """q and v at t by the projector and an integrator of order 8."""

    def rate(t, y):
        q, v = np.split(y, 2)
        return np.concatenate([v, Projector(dynamics)(q, v, t).vdot])

    return solve_ivp(rate, (0, t), np.r_[q, v], "DOP853", rtol=1e-13, atol=atol).y[:, -1]


def chart_run(dynamics, q, v, duration, h, **options):
    motion = ChartMotion(dynamics, q, v, **options)
    for _ in range(round(duration / h)):
        motion.step(h)
    return motion


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: type(s).__name__)
def test_each_level_is_the_rate_of_the_one_before(system, rng):
    q, v, a = rng.normal(size=(3, system.nq))
    now, t = system.equations(q, v, 0.3), 0.3

    def at(s):
        e = system.equations(q + s * v + 0.5 * s * s * a, v + s * a, t + s)
        return e.g, e.J @ (v + s * a) + e.g_t

    later, earlier = at(STEP), at(-STEP)
    atol = 1e3 * STEP**2  # third derivatives of rows quadratic in these coordinates
    if not isinstance(system, particle.AtSpeed):  # no position level
        assert_allclose((later[0] - earlier[0]) / (2 * STEP), now.J @ v + now.g_t, atol=atol)
    assert_allclose((later[1] - earlier[1]) / (2 * STEP), now.J @ a + now.gamma, atol=atol)


@pytest.mark.parametrize(
    ("system", "t", "x", "y"),
    [
        (particle.OnCylinder(), 1, 1.49028557348, 1.61880199354),
        (particle.OnCylinder(), 5, 1.74284360016, 0.0597654643174),
        (particle.AtSpeed(), 1, 2.06160242383, 0.442598041925),
        (particle.AtSpeed(), 10, 19.6015921327, -3.77191367376),
    ],
)
def test_particle_follows_its_reduced_equation(system, t, x, y):
    end = precise(system, *system.start(), t)
    assert_allclose(end[:2], [x, y], rtol=0, atol=1e-10)
    assert_allclose(end[:3], system.exact(t), rtol=0, atol=1e-10)


def test_three_link_robot_starts_with_reference_accelerations_and_reactions():
    robot, q, v = three_link.ThreeLink(), three_link.START, three_link.CONSISTENT_SPEED
    found, e = Elimination(robot)(q, v, 0.0), robot.equations(q, v, 0.0)
    assert_allclose(e.J @ v + e.g_t, 0, atol=1e-15)
    assert_allclose(found.vdot, [-9.72820991462, -4.43460120071, 8.16010787724], rtol=2e-12)
    torque = [-594.986522407, -335.348203541, -3.75786808178]
    assert_allclose(e.J.T @ found.lam, torque, rtol=2e-12)
    rest = robot.equations(q, np.zeros(3), 0.0)  # the start is a static equilibrium for g = 9.8
    assert_allclose(rest.f, [-0.00438201775, 0.00134681499, 0.00030732126], atol=1e-10)


def test_three_link_robot_moves_as_the_reference():
    robot = three_link.ThreeLink()
    y = np.r_[three_link.START, three_link.CONSISTENT_SPEED]
    rate = Modified(robot, np.eye(3)).rate
    end = solve_ivp(rate, (0, 1), y, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    angles = [0.8402592607946, 1.82370997651, 2.005279554959]
    rates = [1.057831443752, -1.686518688976, 5.220797001316]
    assert_allclose(end, [*angles, *rates], rtol=0, atol=1e-9)  # grown rounding of the tolerance


@pytest.mark.parametrize(
    ("weight", "x", "y"),
    [((1, 1, 1), 1.0e-6, 1.5e-6), ((7, 3, 7), 9.9e-7, 1.5e-6), ((1, 3, 5), 9.0e-7, 1.7e-6)],
)
def test_modified_integration_leaves_only_quadrature_errors(weight, x, y):
    robot = three_link.ThreeLink()
    field = Modified(robot, np.diag(np.array(weight, float)))
    times, path = rk4(field.rate, np.r_[three_link.START, three_link.SPEED], 5.0, 500)
    states = [(q[:3], q[3:], t) for t, q in zip(times, path, strict=True)]
    errors = np.array([robot.equations(*s).g for s in states])
    assert_allclose(np.abs(errors).max(axis=0), [x, y], rtol=0.06)  # two printed digits
    for s in states[::100]:
        v = field.velocity(*s)
        e = robot.equations(s[0], v, s[2])
        assert_allclose(e.J @ v + e.g_t, 0, atol=1e-14)


def test_integration_without_modification_drifts():
    robot, y = three_link.ThreeLink(), np.r_[three_link.START, three_link.CONSISTENT_SPEED]
    _, path = rk45(Unmodified(robot).rate, y, 5.0, 1e-3, 1e-6)
    error = robot.equations(path[-1, :3], path[-1, 3:], 5.0).g
    assert_allclose(error, [4.2e-2, -0.46], rtol=0.02)


class Linear:
    """Constant M, f and rows that mention the first coordinates only, one of them twice."""

    nq = nv = 7

    def __init__(self, rng):
        turn = special_ortho_group.rvs(7, random_state=rng)
        self.M = turn @ np.diag(np.geomspace(0.1, 10, 7)) @ turn.T
        self.f = rng.normal(size=7)
        self.J = np.zeros((3, 7))
        self.J[:2, [0, 2, 3, 5]] = rng.normal(size=(2, 4))
        self.J[2] = self.J[0]
        self.gamma = rng.normal(size=3)
        self.gamma[2] = self.gamma[0]

    def equations(self, q, v, t):
        zero = np.zeros(3)
        return Equations(self.M, self.f, self.J, self.J @ q, zero, self.gamma, np.ones(3))

    def displace(self, q, step):
        return q + step


def test_elimination_agrees_with_the_projector(rng):
    for system in [*SYSTEMS[:3], *SYSTEMS[4:], *(Linear(rng) for _ in range(20))]:
        q, v = rng.normal(size=(2, system.nq))
        one, other = Elimination(system)(q, v, 0.4), Projector(system)(q, v, 0.4)
        e = system.equations(q, v, 0.4)
        assert_allclose(one.vdot, other.vdot, rtol=1e-10, atol=1e-10)
        scale = np.abs(e.f).max() + np.abs(other.lam).max()
        assert_allclose(e.J.T @ one.lam, e.J.T @ other.lam, atol=1e-10 * scale)


def test_floating_base_is_eliminated(rng):
    with bb.load("space_arm") as model:  # its rows mention only joints
        dynamics, q = model.system.dynamics, model.system.q
        v = 0.1 * rng.normal(size=dynamics.nv)
        one, other = Elimination(dynamics)(q, v, 0.0), Projector(dynamics)(q, v, 0.0)
        assert condense(dynamics.equations(q, v, 0.0)).a.sum() <= 7
    assert_allclose(one.vdot, other.vdot, atol=1e-10 * np.abs(other.vdot).max())
    assert_allclose(one.lam, other.lam, rtol=1e-10)


def test_regularised_mass_matrix_leaves_accelerations_alone(rng):
    q, v = top.start(0.3, 9.0)
    singular = np.linalg.eigvalsh(top.Top(alpha=0.0).equations(q, v, 0.0).M)
    assert_allclose(singular, [0, 30, 30, 30, 120, 360, 360], atol=1e-12)
    light, heavy = (Projector(top.Top(alpha=a))(q, v, 0.0).vdot for a in (1.0, 100.0))
    assert_allclose(light, heavy, atol=1e-12 * np.abs(heavy).max())
    motion = ChartMotion(top.Top(alpha=0.0), q, v)  # charts need no inverse of M
    assert_allclose(motion.acceleration, heavy, atol=1e-12 * np.abs(heavy).max())


TOP_AT_1 = [0.0865505174828, 0.042331443238, 0.000148653050557, 0.89189156894, -0.0236904337428]
TOP_AT_1 += [0.0236474251893, 0.451008860095, 0.0464285293924, 0.185621122307, 0.00591090882168]
TOP_AT_1 += [-0.0706802805462, -0.0426246123843, 13.5]


def top_state(q, v):
    return np.r_[q, v[:3], top.angular_velocity(q, v)]


def test_top_moves_as_the_reference():
    q, v = np.split(precise(top.Top(), *top.start(0.1, 13.5), 1.0), 2)
    assert_allclose(top_state(q, v), TOP_AT_1, rtol=0, atol=1e-11)


def test_nystrom_on_charts_is_of_order_four():
    errors = []
    for h in (0.008, 0.004, 0.002):
        end = chart_run(top.Top(alpha=0.0), *top.start(0.1, 13.5), 1.0, h)
        errors.append(np.abs(top_state(end.q, end.v) - TOP_AT_1).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert_allclose(orders, 4, atol=0.15)
    assert errors[-1] < 1.2e-7  # 1/16 a halving from there: 6e-9 at 1 ms


@pytest.mark.parametrize(
    ("mass", "inertia", "gravity"),
    [(30.0, (90.0, 90.0, 30.0), 1.62), (2.0, (0.5, 0.5, 0.8), 9.81), (10.0, (1.0, 1.0, 40.0), 3.7),
     (1.0, (30.0, 30.0, 0.2), 9.81), (50.0, (3.0, 3.0, 3.0), 20.0)],
)  # fmt: skip
def test_critical_spin_of_any_inertia_is_where_the_roots_say(mass, inertia, gravity):
    body = top.Top(mass, inertia, gravity)
    critical = body.critical_spin()
    spins = critical * np.linspace(1.001, 20.0, 200)
    assert body.growth(0.999 * critical) > 1e-4 * critical
    assert max(body.growth(spin) for spin in spins) < 1e-6 * critical
    low, high = top.threshold(body, 0.5 * critical, 1.5 * critical, 1e-6 * critical)
    assert low - 1e-5 * critical < critical < high + 1e-5 * critical


def test_tops_that_are_not_symmetrical_have_no_critical_spin():
    with pytest.raises(ModelError, match="give equal ones"):
        top.Top(inertia=(90.0, 80.0, 30.0)).critical_spin()


def test_upright_top_is_stable_above_the_critical_spin():
    body = top.Top()
    assert body.critical_spin() == pytest.approx(12.9557245465, abs=1e-10)
    for spin, growth in ((5.0, 1.4361), (8.0, 1.1535), (10.0, 0.87577), (12.0, 0.47885)):
        assert body.growth(spin) == pytest.approx(growth, rel=5e-5)
    low, high = top.threshold(body, 10.0, 15.0)
    assert low < body.critical_spin() < high


@pytest.mark.parametrize("tol", [1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("first", [False, True])
def test_chart_reaches_each_tolerance(tol, first):
    rule = Iterations(tol, tol, first, first)
    run = chart_run(
        top.Top(alpha=0.0), *top.start(0.5, 10.0), 0.3, 1e-3, rule=Norm(), iterations=rule
    )
    # A q̇ = (I - A U B) A V v̇: B is off by its tolerance times speeds of 5/s, accelerations of 40/s²
    assert run.error[0] <= tol
    assert run.error[1] <= 10 * tol
    assert run.error[2] <= 1e3 * tol
    if first:  # both iterations square their error
        assert run.error[0] < max(100 * tol**2, 1e-14)
        assert run.error[1] < max(1e3 * tol**2, 1e-13)


@pytest.mark.parametrize("component", [1, 3])
@pytest.mark.parametrize(
    ("rule", "atol"),
    [(Norm(), 1e-7), (Tilt(), 1e-7), (Condition(100.0), 1e-4)],  # stretched far: larger constants
    ids=["norm", "tilt", "condition"],
)
def test_slider_crank_moves_as_the_reference(component, rule, atol):
    body = slider_crank.SliderCrank("sq")
    run = chart_run(body, *slider_crank.start(component), 0.5, 1e-3, rule=rule)
    positions, rates = {
        1: (
            [1.5195916795, 0.821194398979, 1.5195916795, -1.30032347037],
            [-5.48844704192, 0.898596528196, -5.48844704192, -6.41394133712],
        ),
        3: (
            [1.44872395882, 0.5219017465, 3.1824693006, -1.37883969015],
            [-5.78966580891, -1.06704731447, -4.72575644495, -6.08310569448],
        ),
    }[component]
    assert_allclose(run.q[slider_crank.MINIMAL], positions, rtol=0, atol=atol)
    assert_allclose(run.v[slider_crank.MINIMAL], rates, rtol=0, atol=10 * atol)
    assert body.energy(run.q, run.v) == pytest.approx(272.0, abs=100 * atol)


def test_tilt_stays_safe_where_the_norm_blows_up():
    body, (q, v) = top.Top(alpha=0.0), top.start(0.5, 1.0)
    first = body.energy(q, v)
    safe = chart_run(body, q, v, 2.0, 4e-3, rule=Tilt())
    loose = chart_run(body, q, v, 2.0, 4e-3, rule=Norm(0.75))
    assert safe.retries == 0
    assert body.energy(safe.q, safe.v) == pytest.approx(first, rel=2e-5)  # 256 times 2e-8 at 1 ms
    assert abs(body.energy(loose.q, loose.v) / first - 1) > 1e-3


def test_chart_refuses_a_singular_position():
    body = slider_crank.SliderCrank(K=0.0)
    q, v = slider_crank.place(np.array([0, np.pi / 2, 0, 2.0]), np.zeros(4))
    assert np.linalg.matrix_rank(body.equations(q, v, 0.0).J) == 9
    with pytest.raises(ChartError, match="singular position"):
        Chart(body, q, 0.0, rank=10)
    q, v = slider_crank.place(np.array([0, 1.4, 2 * np.cos(1.4), 2.0]), np.array([0, 2.0, 0, 0]))
    v[slider_crank.X3] = -4.0 * np.sin(1.4)
    with pytest.raises(StepError, match="singular"):  # driven onto it by nothing but its own speed
        chart_run(body, q, v, 0.2, 1e-3)


def test_chart_and_modified_integration_refuse_quaternions():
    class Turning(Linear):
        nq = 8

    system = Turning(np.random.default_rng(1))
    with pytest.raises(ModelError, match="projector"):
        Chart(system, np.zeros(8), 0.0)
    with pytest.raises(ModelError, match="8 positions"):
        Modified(system).rate(0.0, np.zeros(16))


class InPython(Coordinates):
    """A top whose equations no kernel knows."""

    nq = nv = 7

    def equations(self, q, v, t):
        if t > 0.0203:
            raise ZeroDivisionError("no more")
        return top.Top(alpha=0.0).equations(q, v, t)


def test_charts_ask_for_equations_in_python_and_hand_on_what_they_raise():
    """The same arithmetic but for how the compiler orders sums: 20 steps of round-off."""
    q, v = top.start(0.1, 13.5)
    known, asked = (ChartMotion(d, q, v) for d in (top.Top(alpha=0.0), InPython()))
    for _ in range(20):
        known.step(1e-3)
        asked.step(1e-3)
    assert_allclose(asked.q, known.q, rtol=0, atol=1e-13)
    assert_allclose(asked.acceleration, known.acceleration, rtol=0, atol=1e-10)
    with pytest.raises(ZeroDivisionError, match="no more"):
        asked.step(1e-3)
    assert asked.t == pytest.approx(0.02)


def test_chart_that_starts_at_a_singular_position_says_so_before_rows_open():
    body = slider_crank.SliderCrank(K=0.0)
    q, v = slider_crank.place(np.array([0, np.pi / 2, 0, 2.0]), np.array([0, 2.0, -4.0, 0]))
    motion = ChartMotion(body, q, v)  # one row of ten depends on the others here only
    with pytest.raises(StepError, match="singular position, which|origin is singular"):
        for _ in range(10):
            motion.step(1e-3)
    assert np.abs(body.equations(motion.q, motion.v, 0.0).g).max() < 1e-10  # before: 7e-4
    with pytest.raises(ModelError, match="velocity level"):
        Chart(particle.AtSpeed(), np.zeros(3), 0.0)
