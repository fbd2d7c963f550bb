"""Exudyn: a kinematic tree with joints between its links, implicit integrators with Newton."""

from time import perf_counter
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bulletbridge.bench.peers.base import Stepped, library, require_joints
from bulletbridge.bench.problem import Problem, Strut, Tie
from bulletbridge.mechanism.records import FREE, PRISMATIC
from bulletbridge.numerics.records import Array

BASE = ("PrismaticX", "PrismaticY", "PrismaticZ", "RevoluteX", "RevoluteY", "RevoluteZ")
"""Joints of a free base; all but the last one carry nothing."""
NEVER = 1e9


class Exudyn(Stepped):
    """``SolveDynamic``, nothing written to files.

    Balls of planar loops have their two rows in the plane only, since rows too many make its
    Jacobian singular.

    Args:
        made: The problem.
        dt: Step [s].
        solver: ``alpha`` (generalized-alpha, index 3) or ``trapezoidal`` (index 2).
        radius: Spectral radius of generalized-alpha.
        modified: Whether Newton's Jacobian is kept over steps.
        linear: Linear solver.
        redundant: Whether rows may be dependent, which a full pivoting solver passes over.
    """

    def __init__(
        self,
        made: Problem,
        dt: float,
        solver: str = "alpha",
        radius: float = 0.9,
        modified: bool = True,
        linear: str = "EXUdense",
        redundant: bool = False,
    ) -> None:
        super().__init__(made, dt)
        require_joints(made, "this adapter")
        self.library: Any = library("exudyn")
        self.items: Any = library("exudyn.itemInterface")
        self.system: Any = self.library.SystemContainer().AddSystem()
        self._tree()
        ground = self.system.AddObject(self.items.ObjectGround())
        for tie in made.ties:
            self._tie(tie, ground)
        for strut in made.struts:
            self._strut(strut, ground)
        self.system.Assemble()
        settings = self.settings = self.library.SimulationSettings()
        settings.solutionSettings.writeSolutionToFile = False
        settings.solutionSettings.sensorsWritePeriod = NEVER
        settings.displayStatistics = settings.displayComputationTime = False
        settings.linearSolver.solverType = getattr(self.library.LinearSolverType, linear)
        settings.linearSolver.ignoreSingularJacobian = redundant
        time = settings.timeIntegration
        time.verboseMode, time.adaptiveStep = 0, False
        time.newton.useModifiedNewton = modified
        time.generalizedAlpha.spectralRadius = radius
        time.generalizedAlpha.computeInitialAccelerations = True
        kinds = self.library.DynamicSolverType
        self.kind = kinds.GeneralizedAlpha if solver == "alpha" else kinds.TrapezoidalIndex2
        self.done = 0
        self.reset()

    def _tree(self) -> None:
        """The kinematic tree; link numbers are those of bodies, less one, plus a free base's."""
        lists, made, kinds = self.library, self.problem, self.library.JointType
        self.skip = len(BASE) - 1 if made.floating else 0
        links: list[tuple[Any, int, Array, Array, Array, Array, float]] = []
        gains = dict[str, list[float]](stiffness=[], damping=[], rest=[], torque=[])
        for body in made.mechanism.bodies[1:]:
            inertia = (np.array(body["J"]), np.array(body["com"]), float(body["mass"]))
            if body["joint"] == FREE:
                nothing = (np.zeros((3, 3)), np.zeros(3), 0.0)
                for name in BASE:
                    J, com, mass = inertia if name == BASE[-1] else nothing
                    kind, parent = getattr(kinds, name), len(links) - 1
                    links.append((kind, parent, np.eye(3), np.zeros(3), J, com, mass))
                    for values in gains.values():
                        values.append(0.0)
                continue
            kind = kinds.PrismaticZ if body["joint"] == PRISMATIC else kinds.RevoluteZ
            parent = int(body["parent"]) - 1
            place = (parent + self.skip if parent >= 0 else -1, body["R"].copy(), body["p"].copy())
            links.append((kind, *place, *inertia))
            for name, values in gains.items():
                values.append(float(made.mechanism.axes[body["v"]][name]))
        types, parents, R, p, moments, centres, masses = (
            list(column) for column in zip(*links, strict=True)
        )
        n = len(types)
        forced = any(any(values) for values in gains.values())
        self.node = self.system.AddNode(
            self.items.NodeGenericODE2(
                referenceCoordinates=[0.0] * n,
                initialCoordinates=[0.0] * n,
                initialCoordinates_t=[0.0] * n,
                numberOfODE2Coordinates=n,
            )
        )
        self.tree = self.system.AddObject(
            self.items.ObjectKinematicTree(
                nodeNumber=self.node,
                jointTypes=types,
                linkParents=parents,
                jointTransformations=lists.Matrix3DList(R),
                jointOffsets=lists.Vector3DList(p),
                linkInertiasCOM=lists.Matrix3DList(moments),
                linkCOMs=lists.Vector3DList(centres),
                linkMasses=masses,
                gravity=[float(x) for x in made.mechanism.gravity],
                jointPControlVector=gains["stiffness"] if forced else [],
                jointDControlVector=gains["damping"] if forced else [],
                jointPositionOffsetVector=gains["rest"] if forced else [],
                jointVelocityOffsetVector=[0.0] * n if forced else [],
                jointForceVector=gains["torque"] if forced else [],
            )
        )
        outputs = self.library.OutputVariableType
        self.sensors = [
            self.system.AddSensor(
                self.items.SensorNode(
                    nodeNumber=self.node, storeInternal=True, outputVariableType=kind
                )
            )
            for kind in (outputs.Coordinates, outputs.Coordinates_t)
        ]

    def _tie(self, tie: Tie, ground: int) -> None:
        rows, R_a, R_b = [1, 1, 1, 0, 0, 0], tie.R_a, tie.R_b
        if tie.kind == "weld":
            rows = [1] * 6
        elif tie.kind == "revolute":
            rows = [1, 1, 1, 1, 1, 0]
        elif tie.normal is not None:
            z = tie.R_a @ tie.normal
            x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
            x /= np.linalg.norm(x)
            rows, R_a = [1, 1, 0, 0, 0, 0], np.column_stack([x, np.cross(z, x), z])
        markers = [self._marker(*end, ground) for end in ((tie.a, tie.p_a), (tie.b, tie.p_b))]
        if tie.kind == "rod":
            rod = self.items.ObjectConnectorDistance(markerNumbers=markers, distance=tie.length)
            self.system.AddObject(rod)
            return
        joint = self.items.ObjectJointGeneric(
            markerNumbers=markers, constrainedAxes=rows, rotationMarker0=R_a, rotationMarker1=R_b
        )
        self.system.AddObject(joint)

    def _strut(self, strut: Strut, ground: int) -> None:
        ends = ((strut.a, strut.p_a), (strut.b, strut.p_b))
        self.system.AddObject(
            self.items.ObjectConnectorSpringDamper(
                markerNumbers=[self._marker(*end, ground) for end in ends],
                referenceLength=strut.length,
                stiffness=strut.stiffness,
                damping=strut.damping,
            )
        )

    def _marker(self, body: int, p: Array, ground: int) -> int:
        if not body:
            marker = self.items.MarkerBodyRigid(bodyNumber=ground, localPosition=p.tolist())
        else:
            marker = self.items.MarkerKinematicTreeRigid(
                objectNumber=self.tree, linkNumber=body - 1 + self.skip, localPosition=p.tolist()
            )
        return self.system.AddMarker(marker)

    def reset(self) -> None:
        """Go back to the start."""
        data, where = self.system.systemData, self.library.ConfigurationType
        x, rates = self._into(self.problem.q, self.problem.v)
        for place in (where.Initial, where.Current):
            data.SetODE2Coordinates(x.tolist(), place)
            data.SetODE2Coordinates_t(rates.tolist(), place)
        self.done = 0

    def loop(self, steps: int) -> None:
        """Many steps in one call."""
        time = self.settings.timeIntegration
        time.startTime, time.endTime = self.done * self.dt, (self.done + steps) * self.dt
        time.numberOfSteps = steps
        if self.done:
            data, where = self.system.systemData, self.library.ConfigurationType
            data.SetSystemState(data.GetSystemState(where.Current), where.Initial)
        self.system.SolveDynamic(self.settings, solverType=self.kind, updateInitialValues=False)
        self.done += steps

    def call(self, steps: int) -> None:
        """A Python call a step."""
        for _ in range(steps):
            self.loop(1)

    def record(self, steps: int, every: int) -> tuple[Array, Array, Array]:
        """All states in one call, which alone keeps its accelerations from step to step."""
        self.reset()
        self.settings.solutionSettings.sensorsWritePeriod = every * self.dt
        begun = perf_counter()
        self.loop(steps)
        seconds = perf_counter() - begun
        self.settings.solutionSettings.sensorsWritePeriod = NEVER
        x, rates = (np.array(self.system.GetSensorStoredData(k)) for k in self.sensors)
        pairs = [self._out(*pair) for pair in zip(x[:, 1:], rates[:, 1:], strict=True)]
        q, v = (np.array(part) for part in zip(*pairs, strict=True))
        return seconds * x[:, 0] / (steps * self.dt), q, v

    def state(self) -> tuple[Array, Array]:
        """q and v now."""
        data = self.system.systemData
        return self._out(np.array(data.GetODE2Coordinates()), np.array(data.GetODE2Coordinates_t()))

    def _into(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Our state in its coordinates: a free base has displacements and angles about x, y, z."""
        if not self.problem.floating:
            return q, v
        turn = Rotation.from_quat(q[3:7])
        angles = turn.as_euler("XYZ")
        spin = turn.inv().apply(v[:3])
        rates: Array = np.linalg.inv(_rates_of_angles(angles)) @ spin
        angles = np.asarray(angles, np.float64)
        return (
            np.concatenate([q[:3], angles, q[7:]]),
            np.concatenate([v[3:6], rates, v[6:]]),
        )

    def _out(self, x: Array, rates: Array) -> tuple[Array, Array]:
        if not self.problem.floating:
            return x, rates
        turn = Rotation.from_euler("XYZ", x[3:6])
        w = turn.apply(_rates_of_angles(x[3:6]) @ rates[3:6])
        return (
            np.concatenate([x[:3], turn.as_quat(), x[6:]]),
            np.concatenate([w, rates[:3], rates[6:]]),
        )


def _rates_of_angles(angles: Array) -> Array:
    """(3, 3): angular velocity in body axes of unit rates of intrinsic angles about x, y, z."""
    last = Rotation.from_euler("Z", angles[2]).as_matrix().T
    middle = Rotation.from_euler("Y", angles[1]).as_matrix().T
    x, y, z = np.eye(3)
    return np.column_stack([last @ middle @ x, last @ y, z])
