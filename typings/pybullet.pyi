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
def __getattr__(name: str) -> Any: ...
