"""Force elements beside Bullet's own solver, which has none between links: as joint torques."""

import numpy as np

from bulletbridge.constraints.force_element_records import encode_closed
from bulletbridge.constraints.force_elements import ForceElement, Wrench
from bulletbridge.mechanism.dynamics import bias
from bulletbridge.mechanism.kinematics import kinematics
from bulletbridge.mechanism.model import Mechanism
from bulletbridge.mechanism.records import POSE
from bulletbridge.numerics.records import Array


class SpringTorques:
    """What force elements, and wrenches that are no functions, do to the joints of a mechanism."""

    def __init__(self, mechanism: Mechanism, elements: tuple[ForceElement | Wrench, ...]) -> None:
        self._mechanism, self._encoded = mechanism, encode_closed(mechanism, elements)
        self._elements = self._encoded.elements.copy()

    def __call__(self, q: Array, v: Array, t: float) -> Array:
        """Forces (nv,) on the rates at a state."""
        m, h = self._mechanism, np.zeros(self._mechanism.nv)
        targets = self._encoded.targets(np.array([t]))[0]
        for element in self._elements:
            if element["target"] >= 0:
                element["force"] = targets[element["target"]]["p"][2]
        poses, axes = np.zeros(len(m.bodies), POSE), m.axes.copy()
        poses["R"] = np.eye(3)
        beams, stations = m.beams.copy(), m.stations.copy()
        kinematics(m.bodies, beams, stations, q, poses, axes)
        # bodies without inertia need no other forces
        bias(m.bodies, beams, stations, self._elements, poses, axes, v, h)
        return -h
