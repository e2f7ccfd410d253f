"""The base of all contracts: how strict a model is about what it is given."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


MACHINE_NAME_PATTERN = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
"""A machine is named like a DNS label, so that its name is safe in URLs and logs."""

SLUG_PATTERN = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
"""Classes, runtimes and profiles are named by slugs of at most 63 characters."""

# pydantic's own engine reads `$` as the very end: a trailing newline does not match.
MachineName = Annotated[str, Field(pattern=f"^{MACHINE_NAME_PATTERN}$")]
Slug = Annotated[str, Field(pattern=f"^{SLUG_PATTERN}$")]


class Contract(BaseModel):
    """A value that two processes agree on: immutable, and closed to unknown fields."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", use_enum_values=False
    )


class Message(BaseModel):
    """A contract on a versioned wire: fields of a newer peer are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")
