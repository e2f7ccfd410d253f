"""What a notebook server does not import, and that nobody misses it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from native_machine import native_settings

from fleet_agent.drivers.native.driver import NativeDriver


pytestmark = [pytest.mark.slow, pytest.mark.asyncio, pytest.mark.timeout(600)]

CODE = """
import json, sys
sys.path.extend(sys.argv[1:])
from fleet_agent.drivers.native.inside.server import import_everything
import_everything()
unused = [name for name in ("alembic", "sqlalchemy", "jupyterhub.orm", "arrow",
                            "jupyterhub.handlers", "lark") if name in sys.modules]

import jupyterhub.orm, jupyterhub.handlers, sqlalchemy.exc
from jupyterhub import scopes
asked = scopes.orm.User.__tablename__
real = [jupyterhub.orm.__file__, jupyterhub.handlers.__file__, sqlalchemy.exc.__file__]
print(json.dumps({"unused": unused, "asked": asked, "real": all(real)}))
"""


async def test_the_hubs_database_is_not_imported_and_stays_importable(
    tmp_path: Path,
) -> None:
    """Its place is taken only until the server is imported, and never in the way."""
    environment = await NativeDriver(native_settings(tmp_path)).provide(
        "jupyter", lambda progress: None
    )

    process = await asyncio.create_subprocess_exec(
        str(environment.tree / "bin/python"),
        *("-I", "-c", CODE, *sys.path),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()

    assert process.returncode == 0
    assert json.loads(said) == {"unused": [], "asked": "users", "real": True}
