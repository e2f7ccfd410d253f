"""Placement as a function: a snapshot in, a plan out."""
