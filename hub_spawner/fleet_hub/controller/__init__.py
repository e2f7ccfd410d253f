"""The use cases of the fleet, over ports that adapters implement."""
