"""What exactly does an environment consist of?

A lock names every package with its version and the hashes of its files.  Nothing else
may stand in it: no index, no path, no other file, so that a lock means the same on
every machine and nothing unhashed can come in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fleet_agent.drivers.base import DriverError
from fleet_contracts.base import SLUG_PATTERN
from fleet_contracts.reasons import Reason


OWN_LOCKS = Path(__file__).parent.parent / "locks"
"""The locks that come with the agent."""

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==[^\s;]+"
    r"(?:\s*;(?:(?!--).)+?)?"
    r"(?:\s+--hash=sha256:[0-9a-f]{64})+"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """One complete list of hashed requirements."""

    content: bytes
    packages: tuple[str, ...]
    """Names in the lock's order; one whose marker rules it out here included."""


class Locks:
    """The locks of some folders: one of an earlier folder hides its namesakes."""

    def __init__(self, *folders: Path) -> None:
        """Look in *folders* at each question: what is put there counts at once."""
        self._folders: Sequence[Path] = folders

    def refs(self) -> tuple[str, ...]:
        """Return the names by which there is a lock, sound or not."""
        return tuple(
            sorted(
                {
                    path.stem
                    for folder in self._folders
                    for path in folder.glob("*.lock")
                    if re.fullmatch(SLUG_PATTERN, path.stem) and path.is_file()
                }
            )
        )

    def read(self, ref: str) -> Lock:
        """Return the lock that *ref* names.

        Raises:
            DriverError: there is none, it cannot be read, or it could let something
                unhashed in.
        """
        paths = [folder / f"{ref}.lock" for folder in self._folders]
        found = next((path for path in paths if path.is_file()), None)
        if not re.fullmatch(SLUG_PATTERN, ref) or found is None:
            raise DriverError(
                Reason.RUNTIME_MISSING,
                f"there is no lock named {ref!r} in "
                + " or ".join(str(folder) for folder in self._folders),
                detail="This machine's agent does not know the environment that the "
                "profile asks for. Its owner can add it, or you pick another profile.",
            )
        try:
            return parse_lock(found.read_bytes())
        except (OSError, UnicodeDecodeError) as error:
            raise DriverError(
                Reason.RUNTIME_MISSING,
                f"the lock {found} cannot be read: {error}",
                detail="This machine's list of packages for that environment cannot "
                "be read. Tell the person who runs this machine.",
            ) from error

    def sound(self) -> dict[str, Lock]:
        """Return the locks that can be used, by name."""
        found = {}
        for ref in self.refs():
            # A bad one costs itself only; whoever asks for it is told why.
            with suppress(DriverError):
                found[ref] = self.read(ref)
        return found


def parse_lock(content: bytes) -> Lock:
    """Return *content* as a lock.

    Raises:
        DriverError: an entry is not pinned, has no hash, or is no requirement.
    """
    packages = []
    joined = content.decode().replace("\\\n", " ")
    for line in joined.splitlines():
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        requirement = _REQUIREMENT.fullmatch(entry)
        if requirement is None:
            raise _unsafe(entry)
        packages.append(requirement["name"])
    if not packages:
        raise _unsafe("(nothing)")
    return Lock(content=content, packages=tuple(packages))


def _unsafe(entry: str) -> DriverError:
    return DriverError(
        Reason.ENVIRONMENT_HASH_MISMATCH,
        f"the lock has an entry that is not a pinned, hashed requirement: {entry:.80}",
        detail="The environment's lock names a package without its hash, so it is "
        "not installed. Tell the person who runs this machine.",
    )
