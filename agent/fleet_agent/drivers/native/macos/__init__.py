"""Native notebooks on a Mac: the same environments, in the sandbox that macOS has."""
