"""The part of PyBullet that this package calls; extend it with the next call."""

from collections.abc import Sequence
from typing import Any

Floats = Sequence[float]
Triple = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

JOINT_REVOLUTE: int
JOINT_PRISMATIC: int
JOINT_SPHERICAL: int
JOINT_PLANAR: int
JOINT_FIXED: int
JOINT_POINT2POINT: int
JOINT_GEAR: int
VELOCITY_CONTROL: int
POSITION_CONTROL: int
TORQUE_CONTROL: int
URDF_USE_INERTIA_FROM_FILE: int
DIRECT: int
GUI: int
ER_TINY_RENDERER: int
COV_ENABLE_GUI: int
COV_ENABLE_SHADOWS: int
COV_ENABLE_RENDERING: int

class error(Exception): ...

def isConnected(physicsClientId: int = 0) -> int: ...
def getNumBodies(physicsClientId: int = 0) -> int: ...
def getBodyUniqueId(serialIndex: int, physicsClientId: int = 0) -> int: ...
def getBodyInfo(bodyUniqueId: int, physicsClientId: int = 0) -> tuple[bytes, bytes]: ...
def getNumJoints(bodyUniqueId: int, physicsClientId: int = 0) -> int: ...
def getJointInfo(
    bodyUniqueId: int, jointIndex: int, physicsClientId: int = 0
) -> tuple[
    int,
    bytes,
    int,
    int,
    int,
    int,
    float,
    float,
    float,
    float,
    float,
    float,
    bytes,
    Triple,
    Triple,
    Quaternion,
    int,
]: ...
def getDynamicsInfo(
    bodyUniqueId: int, linkIndex: int, physicsClientId: int = 0
) -> tuple[
    float, float, Triple, Triple, Quaternion, float, float, float, float, float, int, float
]: ...
def getPhysicsEngineParameters(physicsClientId: int = 0) -> dict[str, float]: ...
def getBasePositionAndOrientation(
    bodyUniqueId: int, physicsClientId: int = 0
) -> tuple[Triple, Quaternion]: ...
def getBaseVelocity(bodyUniqueId: int, physicsClientId: int = 0) -> tuple[Triple, Triple]: ...
def getJointStatesMultiDof(
    bodyUniqueId: int, jointIndices: Sequence[int], physicsClientId: int = 0
) -> tuple[
    tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...], tuple[float, ...]], ...
]: ...
def getLinkStates(
    bodyUniqueId: int,
    linkIndices: Sequence[int],
    computeLinkVelocity: int = 0,
    computeForwardKinematics: int = 0,
    physicsClientId: int = 0,
) -> tuple[
    tuple[Triple, Quaternion, Triple, Quaternion, Triple, Quaternion, Triple, Triple], ...
]: ...
def resetJointStatesMultiDof(
    bodyUniqueId: int,
    jointIndices: Sequence[int],
    targetValues: Sequence[Floats],
    targetVelocities: Sequence[Floats] = ...,
    physicsClientId: int = 0,
) -> None: ...
def resetBasePositionAndOrientation(
    bodyUniqueId: int, posObj: Floats, ornObj: Floats, physicsClientId: int = 0
) -> None: ...
def resetBaseVelocity(
    objectUniqueId: int,
    linearVelocity: Floats = ...,
    angularVelocity: Floats = ...,
    physicsClientId: int = 0,
) -> None: ...
def addUserData(
    bodyUniqueId: int,
    key: str,
    value: str,
    linkIndex: int = -1,
    visualShapeIndex: int = -1,
    physicsClientId: int = 0,
) -> int: ...
def getUserDataId(
    bodyUniqueId: int,
    key: str,
    linkIndex: int = -1,
    visualShapeIndex: int = -1,
    physicsClientId: int = 0,
) -> int: ...
def getUserData(userDataId: int, physicsClientId: int = 0) -> bytes | None: ...
def saveWorld(worldFileName: str, clientServerId: int = 0) -> None: ...
def connect(method: int, *, options: str = "") -> int: ...
def disconnect(physicsClientId: int = 0) -> None: ...
def loadURDF(
    fileName: str,
    basePosition: Floats = ...,
    baseOrientation: Floats = ...,
    useMaximalCoordinates: int = 0,
    useFixedBase: int = 0,
    flags: int = 0,
    globalScaling: float = 1.0,
    physicsClientId: int = 0,
) -> int: ...
def removeBody(bodyUniqueId: int, physicsClientId: int = 0) -> None: ...
def setGravity(gravX: float, gravY: float, gravZ: float, physicsClientId: int = 0) -> None: ...
def setTimeStep(timeStep: float, physicsClientId: int = 0) -> None: ...
def stepSimulation(physicsClientId: int = 0) -> None: ...
def setPhysicsEngineParameter(
    *,
    numSolverIterations: int = ...,
    erp: float = ...,
    solverResidualThreshold: float = ...,
    enableFileCaching: int = ...,
    physicsClientId: int = 0,
) -> None: ...
def changeDynamics(
    bodyUniqueId: int,
    linkIndex: int,
    *,
    mass: float = ...,
    linearDamping: float = ...,
    angularDamping: float = ...,
    localInertiaDiagonal: Floats = ...,
    maxJointVelocity: float = ...,
    lateralFriction: float = ...,
    rollingFriction: float = ...,
    spinningFriction: float = ...,
    restitution: float = ...,
    jointDamping: float = ...,
    jointLowerLimit: float = ...,
    jointUpperLimit: float = ...,
    physicsClientId: int = 0,
) -> None: ...
def setCollisionFilterGroupMask(
    bodyUniqueId: int,
    linkIndexA: int,
    collisionFilterGroup: int,
    collisionFilterMask: int,
    physicsClientId: int = 0,
) -> None: ...
def setJointMotorControl2(
    bodyUniqueId: int,
    jointIndex: int,
    controlMode: int,
    *,
    targetVelocity: float = ...,
    force: float = ...,
    physicsClientId: int = 0,
) -> None: ...
def setJointMotorControlMultiDof(
    bodyUniqueId: int,
    jointIndex: int,
    controlMode: int,
    *,
    targetPosition: Floats = ...,
    positionGain: float = ...,
    velocityGain: float = ...,
    force: Floats = ...,
    physicsClientId: int = 0,
) -> None: ...
def getJointState(
    bodyUniqueId: int, jointIndex: int, physicsClientId: int = 0
) -> tuple[float, float, tuple[float, ...], float]: ...
def createConstraint(
    parentBodyUniqueId: int,
    parentLinkIndex: int,
    childBodyUniqueId: int,
    childLinkIndex: int,
    jointType: int,
    jointAxis: Floats,
    parentFramePosition: Floats,
    childFramePosition: Floats,
    parentFrameOrientation: Floats = ...,
    childFrameOrientation: Floats = ...,
    physicsClientId: int = 0,
) -> int: ...
def changeConstraint(
    userConstraintUniqueId: int,
    *,
    jointChildPivot: Sequence[float] = ...,
    jointChildFrameOrientation: Sequence[float] = ...,
    gearRatio: float = ...,
    erp: float = ...,
    relativePositionTarget: float = ...,
    maxForce: float = ...,
    physicsClientId: int = 0,
) -> None: ...
def calculateMassMatrix(
    bodyUniqueId: int, objPositions: Floats, flags: int = 0, physicsClientId: int = 0
) -> tuple[tuple[float, ...], ...]: ...
def computeViewMatrix(
    cameraEyePosition: Floats, cameraTargetPosition: Floats, cameraUpVector: Floats
) -> tuple[float, ...]: ...
def computeProjectionMatrixFOV(
    fov: float, aspect: float, nearVal: float, farVal: float
) -> tuple[float, ...]: ...
def getCameraImage(
    width: int,
    height: int,
    viewMatrix: Floats = ...,
    projectionMatrix: Floats = ...,
    lightDirection: Floats = ...,
    *,
    shadow: int = ...,
    renderer: int = ...,
    physicsClientId: int = 0,
) -> tuple[int, int, Sequence[int], Floats, Sequence[int]]: ...
def configureDebugVisualizer(flag: int, enable: int, *, physicsClientId: int = 0) -> None: ...
def resetDebugVisualizerCamera(
    cameraDistance: float,
    cameraYaw: float,
    cameraPitch: float,
    cameraTargetPosition: Floats,
    physicsClientId: int = 0,
) -> None: ...
def addUserDebugText(
    text: str,
    textPosition: Floats,
    textColorRGB: Floats = ...,
    textSize: float = ...,
    lifeTime: float = ...,
    *,
    replaceItemUniqueId: int = -1,
    physicsClientId: int = 0,
) -> int: ...
def addUserDebugLine(
    lineFromXYZ: Floats,
    lineToXYZ: Floats,
    lineColorRGB: Floats = ...,
    lineWidth: float = ...,
    lifeTime: float = ...,
    *,
    replaceItemUniqueId: int = -1,
    physicsClientId: int = 0,
) -> int: ...
def __getattr__(name: str) -> Any: ...
