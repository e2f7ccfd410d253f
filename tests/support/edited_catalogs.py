"""A small catalog that is edited, and what reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from fleet_hub.service.catalogs import FileCatalog


GOOD: Final = """\
classes:
- name: small
  cpu: 1
  memory: 1G
runtimes:
- name: lab
  accelerators: [cpu]
  driver_refs: {native: lab}
profiles:
- name: nb
  classes: [small]
  runtimes: [lab]
"""


def edit(file: Path, text: str | bytes) -> None:
    """Write another catalog, and let it be seen that it is another one."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1_000_000))


def looked(catalogs: FileCatalog) -> bool:
    """Look as often as it takes to see that nobody writes any more."""
    assert catalogs.look() is None
    return catalogs.take(catalogs.look())
