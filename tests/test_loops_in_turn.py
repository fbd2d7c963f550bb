"""Many loops that close one after the other, but not at once."""

import numpy as np
import pytest

import bulletbridge as bb
from bulletbridge.errors import BulletBridgeWarning

LEGS, DRAWN, GEAR, REACH, HAND = 4, 50.0, 3, 0.75, 0.3
BALL = '<geom size="0.05" contype="0" conaffinity="0"/>'


def geared_legs():
    """Arms that turn hands by a gear, whose tips are to meet rails beyond a nearer approach."""
    bodies, held = "", ""
    for k in range(LEGS):
        hand = (
            f'<body pos="1 0 0" euler="0 0 {GEAR * DRAWN}"><joint name="hand{k}" axis="0 0 1"/>'
            f'{BALL}<site name="tip{k}" pos="{HAND} 0 0"/></body>'
        )
        bodies += (
            f'<body pos="0 0 {k}" euler="0 0 {DRAWN}"><joint name="arm{k}" axis="0 0 1"/>{BALL}'
            f'{hand}</body><body pos="{REACH} 0 {k}"><joint type="slide" axis="0 1 0"/>{BALL}'
            f'<site name="rail{k}"/></body>'
        )
        held += (
            f'<joint joint1="hand{k}" joint2="arm{k}" polycoef="0 {GEAR} 0 0 0"/>'
            f'<connect site1="tip{k}" site2="rail{k}"/>'
        )
    free = f"<body><joint/>{BALL}</body>"
    return f"<mujoco><worldbody>{free}{bodies}</worldbody><equality>{held}</equality></mujoco>"


def test_loops_that_do_not_close_at_once_close_in_turn(tmp_path):
    """Of each leg some displacement of the arm leads to its rail, of all none that is tried."""
    path = tmp_path / "legs.xml"
    path.write_text(geared_legs())
    with (
        pytest.warns(BulletBridgeWarning, match="soft"),
        bb.load(path) as loaded,
    ):
        joints = loaded.system.mechanism.joints
        for k in range(LEGS):
            turned = loaded.system.q[joints[f"arm{k}"].q][0]
            assert loaded.system.q[joints[f"hand{k}"].q][0] == pytest.approx(
                GEAR * turned, abs=1e-14
            )
            arm = np.radians(DRAWN) + turned
            tip = np.cos(arm) + HAND * np.cos((1 + GEAR) * arm)
            assert tip == pytest.approx(REACH, abs=1e-14)
