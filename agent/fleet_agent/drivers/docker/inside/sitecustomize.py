"""Lets a notebook server that is known well start without what it never uses.

Python imports this by itself, because its folder is in PYTHONPATH.  It does something
in the notebook server's process only, and there it leaves nothing behind: kernels and
terminals find PYTHONPATH as the image has it.  A server of another version, and one
whose imports go wrong, starts as it does anywhere.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from importlib.util import module_from_spec
from typing import Any


_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib costs time at each start of Python
_PROGRAM = "jupyterhub-singleuser"
_KNOWN = "6.1."
"""The JupyterHub whose server was tried with the shorter imports."""
_MODULES = (
    "jupyter_server.serverapp",
    "jupyterhub.singleuser.extension",
    "jupyter_server_terminals.app",
    "jupyterlab.labapp",
)


def make_way() -> None:
    """Run the image's own module of this name, which this one hides."""
    sys.path[:] = [path for path in sys.path if path != _HERE]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


def is_known_server() -> bool:
    """Whether this process is a notebook server that may start quickly."""
    started = getattr(sys, "orig_argv", ())[1:3]
    if not any(os.path.basename(part) == _PROGRAM for part in started):  # noqa: PTH119 - as above
        return False
    try:
        return version("jupyterhub").startswith(_KNOWN)
    except PackageNotFoundError:
        return False


def leave_nothing_behind() -> None:
    """Give the server's children PYTHONPATH as the image has it."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [path for path in paths if path and path != _HERE]
    os.environ.pop("PYTHONPATH", None)
    if others:
        os.environ["PYTHONPATH"] = os.pathsep.join(others)


def import_less() -> None:
    """Import what the server needs, which is most of the time that a start takes."""
    sys.path.insert(0, _HERE)
    try:
        trimmed: Any = import_module("fleet_trimming").trimmed
    finally:
        sys.path.remove(_HERE)
    with trimmed():
        _ask_no_node()
        for name in _MODULES:
            # An image need not have all of them.
            with suppress(ModuleNotFoundError):
                import_module(name)


def _ask_no_node() -> None:
    """Keep Lab from asking node at each start what only building Lab needs."""
    # An image may have neither of the two.
    with suppress(ImportError):
        lab: Any = import_module("jupyterlab.commands")
        if hasattr(lab, "_yarn_config"):
            lab._yarn_config = lambda logger: {"yarn config": {}, "npm config": {}}  # noqa: SLF001 - there is no public way
    with suppress(ImportError):
        languages: Any = import_module("jupyter_lsp.types").LanguageServerManagerAPI
        if hasattr(languages, "_npm_prefix"):
            languages._npm_prefix = lambda manager, npm: ""  # noqa: SLF001 - as above


make_way()
if is_known_server():
    leave_nothing_behind()
    try:
        import_less()
    except Exception as error:  # noqa: BLE001 - the server starts as it does anywhere
        sys.stderr.write(f"fleet: no quick start: {type(error).__name__}: {error}\n")
