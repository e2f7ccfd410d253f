"""The ways a machine can run a workload."""
