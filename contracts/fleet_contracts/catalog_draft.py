"""A catalog on its way: entries that are well-formed, with where each stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from fleet_contracts.catalog import Profile, Quota, ResourceClass, Runtime
from fleet_contracts.catalog_yaml import Document, Path


Model = TypeVar("Model")


class Place(NamedTuple):
    """Where an entry stands."""

    document: Document
    path: Path

    def blame(self, key: str | int | None, message: str, remedy: str) -> None:
        """Add a fault at *key* of the entry, or at the entry itself."""
        path = self.path if key is None else (*self.path, key)
        self.document.blame(path, message, remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed(Generic[Model]):
    """A well-formed entry and its place."""

    model: Model
    place: Place


@dataclass(slots=True)
class Draft:
    """All well-formed entries of all files."""

    classes: list[Placed[ResourceClass]] = field(default_factory=list)
    runtimes: list[Placed[Runtime]] = field(default_factory=list)
    profiles: list[Placed[Profile]] = field(default_factory=list)
    quotas: list[Placed[Quota]] = field(default_factory=list)
    malformed: dict[str, set[str]] = field(default_factory=dict)
    """By section, every text in an entry that is not well-formed: what it may name."""

    def class_models(self) -> dict[str, ResourceClass]:
        """Return the classes by name."""
        return {item.model.name: item.model for item in self.classes}

    def runtime_names(self) -> set[str]:
        """Return the names of the runtimes."""
        return {item.model.name for item in self.runtimes}

    def runtimes_of(self, profile: Profile) -> tuple[Runtime, ...]:
        """Return the profile's runtimes, in the order of the catalog."""
        return tuple(
            item.model for item in self.runtimes if item.model.name in profile.runtimes
        )
