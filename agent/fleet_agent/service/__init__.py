"""The agent as a service of its machine: systemd on Linux, launchd on a Mac."""
