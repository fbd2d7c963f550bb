"""Control of closed chains: kinematics, inverse dynamics, tracking of motion and force."""
