"""What the campaign's judge says of energy, momenta and rates that jump."""

import numpy as np
import pytest
from _campaign_cases import Case, Parts, make_case
from _campaign_conserved import Conserved, Drift
from _campaign_judge import Judge
from _campaign_run import Run

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning
from bulletbridge.mechanism.build import Load, empty_mechanism, with_joint
from bulletbridge.system.recording import Recording

DT = 1e-3


def spinning_pair(push):
    """Two free bodies held by a ball, one with a wheel."""
    mechanism = empty_mechanism((0.0, 0.0, -9.81))
    load = Load(1.0, (0.2, 0.0, 0.0), (0.02, 0.03, 0.04))
    mechanism = with_joint(mechanism, "one", "free", "frame", load=load)
    wheel = Load(2.0, (0.0, 0.0, 0.0), (0.01, 0.01, 0.02))
    turn = (0.0, np.pi / 2, 0.0)
    mechanism = with_joint(
        mechanism, "spin", "revolute", "wheel", "frame", (0.5, 0.0, 0.0), turn, wheel
    )
    mechanism = with_joint(mechanism, "other", "free", "other", load=load)
    ball = bb.LoopJoint("ball", bb.JointModel.BALL, bb.Frame("frame"), bb.Frame("other"))
    q, v, tau = np.zeros(15), np.zeros(13), np.zeros(13)
    q[6] = q[14] = 1.0
    v[6], tau[2] = 30.0, push
    return Case(0, "closed", Parts(mechanism, (ball,), q, v, tau, DT))


def test_the_judge_sees_momenta_that_forces_inside_cannot_change():
    """A force from outside does; what is held to the world, or pushed, is not judged by them."""
    case = spinning_pair(0.0)
    record = Run(case, "rk4", 50).record()
    assert record["faults"] == []
    assert record["momentum"] < 1e-9 and record["energy_loss"] < 1e-9
    judge = Judge(case.parts.mechanism, case.parts.constraints)
    assert Conserved(judge, True, 0 * case.parts.tau).groups == [[1, 2, 3]]
    assert Conserved(judge, True, spinning_pair(1.0).parts.tau).groups == []
    drift = Drift(Conserved(judge, True, 0 * case.parts.tau))
    system = case.system("rk4")
    drift.look(system.q[None], system.v[None], np.zeros(1))
    system.tau[2] = 1e-2  # [N m], for 0.05 s, of 0.6 kg m²/s
    recording = system.rollout(50)
    drift.look(recording.q, recording.v, recording.t)
    share = drift.shares[drift.conserved.names.index("angular momentum 0")]
    assert share == pytest.approx(1e-2 * 0.05 / 0.6, rel=0.05)


@pytest.mark.parametrize("kept", [0.98, 1.02])
def test_the_judge_sees_energy_gained_and_lost_by_no_force(kept, monkeypatch):
    """The wheel's rate is scaled once, after 0.022 s, however long steps are."""
    exact, instant = bb.System.rollout, 0.022

    def scaled(self, steps, every=1):
        lines = [exact(self, 1)]
        for _ in range(1, steps):
            if abs(self.t - instant) < 0.1 * self.dt:
                v = self.v
                v[6] *= kept
                self.set_state(None, v, self.t)
            lines.append(exact(self, 1))
        return Recording.joined(lines)

    monkeypatch.setattr(bb.System, "rollout", scaled)
    record = Run(spinning_pair(0.0), "verlet", 50).record()
    assert {"energy", "momentum"} <= set(record["faults"])
    share = record["energy_gain"] if kept > 1 else record["energy_loss"]
    assert share == pytest.approx(abs(kept**2 - 1), rel=0.1)  # most of it is in the wheel
    assert len(record["drift"]["energy"]) == 4  # at a fourth, a 16th and a 64th of the step, too


@pytest.mark.parametrize("told", [0.5, 1.0, 1.5])
def test_the_judge_asks_of_energy_that_what_is_told_is_lost(told):
    """A wheel loses 5.8 % as its first step rocks it, which ``status.lost`` tells: as much."""
    case = make_case(970630)
    judge = Judge(case.parts.mechanism, case.parts.constraints)
    drift, system = Drift(Conserved(judge, True, case.parts.tau)), case.system("verlet")
    drift.look(system.q[None], system.v[None], np.zeros(1))
    with pytest.warns(BulletBridgeWarning, match="lost at a singular position"):
        recording = system.rollout(10)
    lost = system.status.lost
    drift.look(recording.q, recording.v, recording.t, told * lost)
    system.step()
    drift.look(system.q[None], system.v[None], np.array([system.t]), told * lost)
    assert drift.loss == pytest.approx(max(1.0 - told, 0.0) * lost, abs=1e-3 * lost)
    assert drift.gain == pytest.approx(max(told - 1.0, 0.0) * lost, abs=1e-3 * lost)


def test_steps_within_which_rates_turn_jump_nowhere():
    """What is driven past a singular position by 0.04 rad a step turns its rates within two."""
    assert Run(make_case(970492), "verlet", 210).record()["faults"] == []


def test_the_judge_sees_rates_that_jump(monkeypatch):
    """A wheel whose rate turns around keeps its energy; in steps fine enough, its rate, too."""
    exact = bb.System.rollout

    def turned(self, steps, every=1):
        lines = []
        for _ in range(steps):
            lines.append(exact(self, 1))
            if self.dt > DT / 8 and abs(self.t - 0.02) < 0.1 * self.dt:
                v = self.v
                v[6] *= -1.0
                self.set_state(None, v, self.t)
                lines[-1].v[:] = v
        return Recording.joined(lines)

    monkeypatch.setattr(bb.System, "rollout", turned)
    record = Run(spinning_pair(0.0), "verlet", 50).record()
    assert "jump" in record["faults"]
    assert record["jump"] == pytest.approx(2.0, rel=0.1)
