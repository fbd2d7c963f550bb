"""Environments to learn in, on Gymnasium's API: mechanisms with closed loops, one or many at once.

``import bulletbridge.gym`` registers ``bulletbridge/Minitaur-v0``, ``bulletbridge/Gripper-v0`` and
``bulletbridge/DeltaReach-v0`` for ``gymnasium.make`` and ``make_vec``. docs/gym.md.
"""

from bulletbridge.errors import naming_the_extra

with naming_the_extra("environments need Gymnasium", "bulletbridge[gym]"):
    from gymnasium.envs import registration

from bulletbridge.gym.environments import LoopEnv, LoopVectorEnv
from bulletbridge.gym.tasks import Action, Observation, Start, Task, View

__all__ = ["Action", "LoopEnv", "LoopVectorEnv", "Observation", "Start", "Task", "View"]

REGISTERED = {
    "bulletbridge/Minitaur-v0": "bulletbridge.gym.minitaur:minitaur",
    "bulletbridge/Gripper-v0": "bulletbridge.gym.gripper:gripper",
    "bulletbridge/DeltaReach-v0": "bulletbridge.gym.delta_reach:delta_reach",
}
"""Environments by id: where their task is made."""

for name, made in REGISTERED.items():
    if name not in registration.registry:
        registration.register(
            name,
            entry_point="bulletbridge.gym.environments:LoopEnv",
            vector_entry_point="bulletbridge.gym.environments:LoopVectorEnv",
            kwargs={"task": made},
        )
