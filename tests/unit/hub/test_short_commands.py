"""A command of the terminal takes no longer than it must."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


RUN_EACH = """
import json, sys
from fleet_hub.cli import main
for words in json.loads(sys.argv[1]):
    status = main(words)
    slow = {*json.loads(sys.argv[2])} & {*sys.modules}
    print(json.dumps([words[0], status, sorted(slow)]))
"""
SLOW = ("jupyterhub", "sqlalchemy", "tornado")
"""Each of those takes longer to import than a short command to run."""
ENGINE = ("asyncio", "fleet_hub.scheduling.planner", "fleet_hub.controller.core")


def test_a_short_command_imports_no_jupyterhub(tmp_path: Path) -> None:
    """Its answer is there in half a second instead of in three."""
    (tmp_path / "catalog.yaml").write_text("profiles: []\n")
    (tmp_path / "data" / "hub").mkdir(parents=True)
    beside = ["--data-dir", str(tmp_path / "data")]
    commands = [
        ["catalog", "check", str(tmp_path / "catalog.yaml")],
        *(
            [*words, *beside]
            for words in (
                ["catalog", "status"],
                ["login-code", "ada"],
                ["machines"],
                ["redetect", "box"],
                ["queue"],
                ["explain", "ada/"],
                ["export"],
                ["enrol", "box", "--owner", "ada"],
                ["drain", "box"],
                ["audit"],
                ["usage"],
                # Itself no short one, but it starts all others.
                ["run", "--config", str(tmp_path / "nowhere.py")],
            )
        ),
    ]

    answer = subprocess.run(
        [sys.executable, "-c", RUN_EACH, json.dumps(commands), json.dumps(SLOW)],
        capture_output=True,
        text=True,
        check=False,
    )

    told = [json.loads(line) for line in answer.stdout.splitlines() if line[:1] == "["]
    assert [name for name, _, _ in told] == [words[0] for words in commands]
    # No controller runs here: all others end with a word about that.
    assert [name for name, status, _ in told if status == 0] == ["login-code"]
    assert {name: slow for name, _, slow in told if slow} == {}, answer.stderr


def test_a_question_to_the_controller_imports_no_engine(tmp_path: Path) -> None:
    """The controller has one that runs; only an exported state needs another."""
    beside = ["--data-dir", str(tmp_path)]
    commands = [["explain", "w1", *beside], ["queue", *beside], ["drain", "m", *beside]]
    answer = subprocess.run(
        [
            sys.executable,
            *("-c", RUN_EACH, json.dumps(commands)),
            json.dumps([*SLOW, *ENGINE]),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    told = [json.loads(line) for line in answer.stdout.splitlines()]
    assert told == [[words[0], 1, []] for words in commands], answer.stderr
