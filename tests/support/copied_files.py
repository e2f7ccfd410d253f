"""Files of all sorts in a notebook folder, and what of them a copy is to keep."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

from fleet import Fleet


def ways(fleet: Fleet, class_name: str) -> list[str]:
    """Return the kinds of ways out that ada is offered for a class."""
    user_id, _ = fleet.key("ada").split("-")
    answer = fleet.controller(
        "POST",
        "offers",
        json={
            "principal": {"user_id": int(user_id), "name": "ada"},
            "key": {
                "user_id": int(user_id),
                "server_id": int(fleet.key("ada").split("-")[1]),
            },
        },
    )
    return [
        way["kind"]
        for offer in answer["offers"]
        if offer["class_name"] == class_name
        for way in offer["ways_out"]
    ]


def generation(folder: Path) -> int:
    """Return which start of the server a folder was made for."""
    _, _, *numbers = folder.name.split("-")
    return int(numbers[0]) if numbers else 1


def fill(folder: Path) -> None:
    """Put files of all sorts into a notebook folder, as its owner."""
    owner = folder.stat()
    (folder / "work" / "deep").mkdir(parents=True)
    (folder / "work" / "data.bin").write_bytes(os.urandom(3 << 20))
    (folder / "work" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "work" / "run.sh").chmod(0o750)
    (folder / "work" / "deep" / os.fsdecode(b"od\xffd\n name")).write_text("odd")
    (folder / "work" / "link").symlink_to("deep")
    (folder / "outside").symlink_to("/etc/passwd")
    with (folder / "work" / "holes").open("wb") as file:
        file.truncate(1 << 36)
    os.mkfifo(folder / "fifo")
    for path in folder.rglob("*"):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def content(folder: Path) -> dict[str, Any]:
    """Return the user's own part of a folder, by hash."""
    found: dict[str, Any] = {}
    for path in sorted((folder / "work").rglob("*")):
        status = path.lstat()
        kept = (stat.S_IMODE(status.st_mode), status.st_size)
        if path.is_symlink():
            found[path.name] = str(path.readlink())
        elif path.is_dir() or status.st_size > 1 << 30:
            found[path.name] = kept[0], status.st_blocks > 0 and path.is_dir()
        else:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[path.name] = (*kept, digest)
    return found
