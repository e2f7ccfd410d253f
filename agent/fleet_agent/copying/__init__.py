"""Carrying a notebook folder from one machine to another, whole or not at all."""
