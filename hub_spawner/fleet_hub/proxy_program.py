"""Where JupyterHub's proxy is."""

from __future__ import annotations

import shutil
from pathlib import Path


def find_proxy() -> list[str] | None:
    """Return the command of configurable-http-proxy, from PATH or a checkout."""
    found = shutil.which("configurable-http-proxy")
    if found is None:
        folders = [Path.cwd(), *Path(__file__).resolve().parents]
        for folder in folders:
            script = folder / "node_modules" / ".bin" / "configurable-http-proxy"
            if script.exists():
                return [str(script)]
        return None
    return [found]
