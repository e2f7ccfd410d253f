"""Which machines have which devices, by what names a device everywhere."""

from __future__ import annotations

from collections.abc import Iterable


class DeviceIndex:
    """Knows at once which devices more than one machine has: hardly ever any."""

    def __init__(self) -> None:
        """Begin without any machine."""
        self._of: dict[str, frozenset[str]] = {}
        self._having: dict[str, set[str]] = {}
        self._shared: set[str] = set()

    def put(self, machine: str, devices: frozenset[str]) -> None:
        """Replace what *machine* has."""
        before = self._of.get(machine, frozenset())
        if devices == before:
            return
        self._of[machine] = devices
        for device in before - devices:
            self._having[device].discard(machine)
        for device in devices - before:
            self._having.setdefault(device, set()).add(machine)
        for device in before ^ devices:
            count = len(self._having[device])
            (self._shared.add if count > 1 else self._shared.discard)(device)
            if not count:
                del self._having[device]

    def having(self, device: str) -> list[str]:
        """Return the machines that have *device*, by name."""
        return sorted(self._having.get(device, ()))

    def shared_by(self, machine: str) -> list[str]:
        """Return the devices of *machine* that another one has as well."""
        if not self._shared:
            return []
        return sorted(self._of.get(machine, frozenset()) & self._shared)

    def beside(self, machines: Iterable[str]) -> set[str]:
        """Return those of *machines* that share a device, and with whom they do."""
        found: set[str] = set()
        for machine in machines:
            for device in self.shared_by(machine):
                found |= self._having[device]
        return found
