"""Reads ``nvidia-smi -q -x``.

By patterns and not with an XML parser: the text may be cut anywhere, and whoever
controls the tool must not control a parser's memory.
"""

from __future__ import annotations

import re
from typing import Final

from fleet_agent.probes.answers import Answer
from fleet_agent.probes.nvidia.devices import conclude, mig_facts, nvidia_device
from fleet_agent.probes.nvidia.fields import BROKEN, cell, mib
from fleet_contracts.capabilities import AcceleratorDevice


_LOG: Final = re.compile(r"<nvidia_smi_log>")
_END: Final = re.compile(r"</nvidia_smi_log>")
_GPU: Final = re.compile(r"<gpu id=\"([^\"]{1,40})\">(.*?)</gpu>", re.DOTALL)
_OPENED: Final = re.compile(r"<gpu id=")
_MEMORY: Final = re.compile(r"<fb_memory_usage>\s*<total>([^<]*)</total>")


def read_xml(text: str) -> Answer | None:
    """Return the devices of an XML log, or None if *text* is none."""
    if not _LOG.search(text):
        return None
    head = text[: opened.start()] if (opened := _OPENED.search(text)) else text
    driver = _value(head, "driver_version", "driver_version")
    devices = tuple(_device(bus, body, driver) for bus, body in _GPU.findall(text))
    if not devices:
        return None
    attached = _value(head, "attached_gpus", "count")
    whole = _END.search(text) is not None and (
        attached is None or int(attached) == len(devices)
    )
    broken = next(
        (reason for word, reason in BROKEN.items() if f">{word}<" in text.lower()), None
    )
    return conclude(
        devices,
        complete=whole,
        partial=broken or (None if whole else "devices_missing"),
        note=_note(devices, text),
        facts=mig_facts(devices),
    )


def _note(devices: tuple[AcceleratorDevice, ...], text: str) -> str | None:
    if any(device.mig_enabled for device in devices):
        return "mig_enabled"
    asked = _MEMORY.search(text) is not None
    silent = any(device.memory_mib is None for device in devices)
    return "memory_not_reported" if asked and silent else None


def _device(bus: str, body: str, driver: str | None) -> AcceleratorDevice:
    broken = any(f">{word}<" in body.lower() for word in BROKEN)
    mig = _value(body, "current_mig", "mig.mode.current")
    mig_enabled = None if mig is None else mig.lower() == "enabled"
    memory = _MEMORY.search(body)
    total = cell("memory.total", memory[1]) if memory else None
    return nvidia_device(
        uuid=_value(body, "uuid", "uuid"),
        name=_value(body, "product_name", "name"),
        memory_mib=mib(total.value) if total else None,
        driver_version=driver,
        healthy=not broken,
        execution_supported=False if broken else None if mig_enabled else True,
        pci_bus_id=bus,
        mig_enabled=mig_enabled,
    )


def _value(text: str, tag: str, field: str) -> str | None:
    match = re.search(rf"<{tag}>([^<]{{0,200}})</{tag}>", text)
    found = cell(field, match[1]) if match else None
    return None if found is None else found.value
