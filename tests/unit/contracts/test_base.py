"""Names are matched whole."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from fleet_contracts.base import Slug


SLUG = TypeAdapter(Slug)


@pytest.mark.parametrize("name", ["a", "cpu-small", "a" * 63, "0"])
def test_a_slug_is_accepted(name: str) -> None:
    """Lower-case letters, digits and inner hyphens, at most 63 of them."""
    assert SLUG.validate_python(name) == name


@pytest.mark.parametrize(
    "name", ["", "A", "a_b", "-a", "a-", "a\n", "a b", "ä", "a" * 64, "../a", "a/b"]
)
def test_what_is_no_slug_is_refused(name: str) -> None:
    """A trailing newline too: the pattern covers the whole value."""
    with pytest.raises(ValidationError):
        SLUG.validate_python(name)
