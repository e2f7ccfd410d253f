"""The subcommands of fleet-agent."""
