"""What lives on is spared the search for garbage, and garbage is found all the same."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from fleet_hub.service.garbage import Memory


class Loop:
    """Something that only a search finds."""

    def __init__(self) -> None:
        """Refer to itself."""
        self.me = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_garbage_is_found_before_the_rest_is_put_aside() -> None:
    """What nobody uses any more is not kept with it."""
    lost = weakref.ref(Loop())
    Memory().put_aside()
    assert lost() is None


def test_what_was_put_aside_is_not_searched_again_at_once() -> None:
    """Whatever lives on costs no search any more, neither ours nor Python's own."""
    memory, loop = Memory(), Loop()
    memory.put_aside()
    lost = weakref.ref(loop)
    del loop
    gc.collect()
    memory.put_aside()
    assert lost() is not None


def test_everything_is_searched_once_there_is_a_quarter_more() -> None:
    """Garbage among what was put aside does not fill the memory."""
    memory = Memory()
    memory.put_aside()
    loops = [Loop() for _ in range(gc.get_freeze_count() // 3)]
    memory.put_aside()
    lost = weakref.ref(loops[0])
    del loops
    memory.put_aside()
    assert lost() is None
