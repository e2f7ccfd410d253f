"""A Hub with a pretended fleet: placement, lines and explanations within a minute."""
