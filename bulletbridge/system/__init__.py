"""The system: its state, assembly, constraints that come and go, evaluation, rollouts."""
