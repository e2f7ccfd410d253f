"""Pinned environments: built once from a hashed lock, verified, shared read-only."""
