"""How does the fleet's own part of a notebook get into its environment?

The agent packs the installed ``fleet_lab`` package and the contracts that it speaks
into a wheel whose bytes depend on its files alone, so that it can be pinned by hash
like every other package.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import fleet_contracts


_EPOCH = (1980, 1, 1, 0, 0, 0)
_DISTRIBUTION = "jupyterhub_fleet_lab"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel in memory, with the requirement line that pins it."""

    file_name: str
    content: bytes
    requirement: str

    @property
    def sha256(self) -> str:
        """The hash that pins it."""
        return hashlib.sha256(self.content).hexdigest()


def installed_lab_package() -> Path:
    """Return the folder of the ``fleet_lab`` package beside this agent.

    Raises:
        FileNotFoundError: it is not installed.
    """
    # Found, not imported: agent and notebook meet only in the contracts.
    spec = importlib.util.find_spec("fleet_lab")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the fleet_lab package is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


CONTRACTS = Path(fleet_contracts.__file__).parent
"""The folder of the contracts, which a kernel needs to say why it waited."""


def pack(package: Path, *others: Path) -> Wheel:
    """Return *package* and *others* as a wheel; the same files give the same bytes.

    A ``jupyter-config`` folder in it becomes Jupyter configuration of the environment,
    and a ``labextension`` folder a front-end extension.
    """
    files: dict[str, bytes] = {}
    for folder in (package, *others):
        files |= _contents(folder)
    # The version carries the content's hash, so that no cache mixes two of them up.
    digest = hashlib.sha256(
        json.dumps(
            {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
            sort_keys=True,
        ).encode()
    ).hexdigest()[:16]
    version = f"1+{digest}"
    info = f"{_DISTRIBUTION}-{version}.dist-info"
    data_folder = f"{_DISTRIBUTION}-{version}.data/data"
    members = {
        name.replace("{data}", data_folder): data for name, data in files.items()
    }
    members[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: jupyterhub-fleet-lab\nVersion: {version}\n"
    ).encode()
    members[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: fleet-agent\n"
        b"Root-Is-Purelib: true\nTag: py3-none-any\n"
    )
    # JupyterLab looks for the panel's words in other languages beside this module.
    members[f"{info}/entry_points.txt"] = (
        b"[jupyterlab.locale]\nfleet_lab = fleet_contracts\n"
    )
    members[f"{info}/RECORD"] = _record(members, f"{info}/RECORD")
    content = _zip(members)
    checksum = hashlib.sha256(content).hexdigest()
    return Wheel(
        file_name=f"{_DISTRIBUTION}-{version}-py3-none-any.whl",
        content=content,
        requirement=f"jupyterhub-fleet-lab=={version} --hash=sha256:{checksum}\n",
    )


def _contents(package: Path) -> dict[str, bytes]:
    """Return the wheel's files; ``{data}`` stands for its data folder."""
    targets = {
        "jupyter-config": "{data}/etc/jupyter",
        "labextension": _labextension_target(package),
    }
    files = {}
    for path in sorted(package.rglob("*")):
        relative = path.relative_to(package)
        if not path.is_file() or "__pycache__" in relative.parts:
            continue
        name = f"{package.name}/{relative.as_posix()}"
        target = targets.get(relative.parts[0])
        if target is not None:
            name = f"{target}/{Path(*relative.parts[1:]).as_posix()}"
        files[name] = path.read_bytes()
    return files


def _labextension_target(package: Path) -> str | None:
    manifest = package / "labextension" / "package.json"
    if not manifest.is_file():
        return None
    name = json.loads(manifest.read_text())["name"]
    return f"{{data}}/share/jupyter/labextensions/{name}"


def _record(members: dict[str, bytes], itself: str) -> bytes:
    lines = [
        f"{name},sha256={record_hash(data)},{len(data)}"
        for name, data in sorted(members.items())
    ]
    return "\n".join([*lines, f"{itself},,", ""]).encode()


def record_hash(data: bytes) -> str:
    """Return the hash of *data* as wheels write it in their RECORD."""
    digest = hashlib.sha256(data).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _zip(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    # Stored, not deflated: compressed bytes differ between versions of zlib.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, members[name])
    return buffer.getvalue()
