"""The daemon that lends one machine to the fleet."""

from fleet_contracts import __version__


__all__ = ["__version__"]
