"""Asks a live nvidia-smi: query, fall back field by field, then card by card."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from fleet_agent.probes.answers import Answer, with_witness
from fleet_agent.probes.nvidia.computing import QUERY, read_computing, with_computing
from fleet_agent.probes.nvidia.devices import (
    broken_reason,
    conclude,
    nvidia_device,
    usage,
)
from fleet_agent.probes.nvidia.query import Row
from fleet_agent.probes.nvidia.reading import read_nvidia_smi, read_rows
from fleet_agent.probes.tools import Ask, ToolCall, ToolResult
from fleet_contracts.capabilities import (
    AcceleratorDevice,
    DeviceUsage,
    ProbeStatus,
)
from fleet_contracts.device_use import is_in_use


# The name is last: it alone may hold a comma.
FIELDS: Final = (
    "index",
    "uuid",
    "pci.bus_id",
    "driver_version",
    "memory.total",
    "compute_cap",
    "mig.mode.current",
    "memory.used",
    "memory.free",
    "utilization.gpu",
    "name",
)
_OPTIONAL: Final = frozenset(FIELDS[5:10]) | {"pci.bus_id"}
_TRIES: Final = 4
_PLACES: Final = (
    "/usr/lib/wsl/lib/nvidia-smi",
    "/usr/bin/nvidia-smi",
    "/usr/local/nvidia/bin/nvidia-smi",
    "/run/current-system/sw/bin/nvidia-smi",
)
_HANDLE_FAULTS: Final = ("gpu_lost", "device_handle_error")


@dataclass(frozen=True, slots=True, kw_only=True)
class NvidiaSighting:
    """The devices, and how busy they were."""

    answer: Answer
    usage: tuple[DeviceUsage, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NvidiaProbe:
    """Reports NVIDIA devices.  An absent tool is a fact, and not "no GPU".

    ``pci_ids`` are the cards that the kernel's driver lists: a second witness that
    names cards for another try and never makes a device by itself.
    """

    ask: Ask
    pci_ids: Callable[[], tuple[str, ...]] = tuple
    files: tuple[str, ...] = ()
    """By which the kernel offers NVIDIA cards: a witness that names none."""
    # With persistence mode off the first call initialises every card.
    seconds: float = 30.0
    clock: Callable[[], float] = time.monotonic

    def observe(self) -> NvidiaSighting:
        """Return what nvidia-smi says now; never raises."""
        started = self.clock()
        result, answer = self._query()
        if answer.reason in _HANDLE_FAULTS and not answer.devices:
            answer = self._card_by_card(answer, started)
        answer = self._with_instances(answer)
        return NvidiaSighting(
            answer=self._with_witness(answer),
            usage=_usage(result, answer),
            seconds=self.clock() - started,
        )

    def look(self) -> NvidiaSighting:
        """Return how busy the cards are now, and who computes on them.

        One call where the tool is well and nobody uses anything.
        """
        result, answer = self._query()
        busy = _usage(result, answer)
        if any(map(is_in_use, busy)):
            computing = read_computing(self._call(*QUERY))
            busy = tuple(with_computing(device, computing) for device in busy)
        return NvidiaSighting(answer=answer, usage=busy)

    def _query(self, *selection: str) -> tuple[ToolResult, Answer]:
        fields: tuple[str, ...] = FIELDS
        result, answer = self._run(fields, *selection)
        for _ in range(_TRIES):
            refused = set(answer.retry_without) & _OPTIONAL
            if answer.status is not ProbeStatus.UNSUPPORTED_QUERY or not refused:
                break
            fields = tuple(field for field in fields if field not in refused)
            result, answer = self._run(fields, *selection)
        return result, answer

    def _run(
        self, fields: tuple[str, ...], *selection: str
    ) -> tuple[ToolResult, Answer]:
        result = self._call(
            *selection,
            f"--query-gpu={','.join(fields)}",
            "--format=csv,noheader,nounits",
        )
        return result, read_nvidia_smi(result)

    def _call(self, *arguments: str) -> ToolResult:
        return self.ask(
            ToolCall(
                tool="nvidia-smi",
                argv=("nvidia-smi", *arguments),
                seconds=self.seconds,
                places=_PLACES,
            )
        )

    def _card_by_card(self, failure: Answer, started: float) -> Answer:
        """One dead card breaks the whole call: ask for each of them alone."""
        devices: list[AcceleratorDevice] = []
        reason = failure.reason
        for pci_id in self.pci_ids():
            if self.clock() - started > self.seconds:
                return failure
            _, answer = self._query("-i", pci_id)
            if len(answer.devices) == 1:
                devices.extend(answer.devices)
            elif answer.status is ProbeStatus.TOOL_ERROR:
                devices.append(
                    nvidia_device(
                        pci_bus_id=pci_id, healthy=False, execution_supported=False
                    )
                )
            else:
                return failure
        if not any(device.healthy is True for device in devices):
            return failure
        return conclude(tuple(devices), partial=reason, warnings=failure.warnings)

    def _with_instances(self, answer: Answer) -> Answer:
        if not any(device.mig_enabled for device in answer.devices):
            return answer
        listed = {
            device.uuid: device.mig_instances
            for device in read_nvidia_smi(self._call("-L")).devices
            if device.uuid is not None
        }
        devices = tuple(
            device.model_copy(update={"mig_instances": listed.get(device.uuid, ())})
            if device.uuid is not None
            else device
            for device in answer.devices
        )
        return replace(answer, devices=devices)

    def _with_witness(self, answer: Answer) -> Answer:
        return with_witness(answer, self.pci_ids() or self.files)


def _usage(result: ToolResult, answer: Answer) -> tuple[DeviceUsage, ...]:
    return tuple(usage(row) for row in _rows(result)) if answer.devices else ()


def _rows(result: ToolResult) -> tuple[Row, ...]:
    rows = read_rows(result).rows
    return () if broken_reason(rows) else rows
