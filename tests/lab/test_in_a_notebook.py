"""The timeline as the output of a cell, in a real kernel and in a real terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from jupyter_client import BlockingKernelClient, KernelManager
from patience import PATIENCE
from timeline_peer import Story, TimelinePeer, an_admission
from typing_extensions import override

from fleet_lab.snapshot import MIME_TYPE


TOKEN = "timeline-token-of-ada"
HOSTILE = "<img src=x onerror=alert(1)>\u202e"
PLAIN_HTML = {
    *("p", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li", "br"),
}
"""What the sanitisers of Jupyter, GitHub and VS Code all keep."""


@pytest.fixture
def peer() -> Iterator[TimelinePeer]:
    """A controller that tells one timeline."""
    with TimelinePeer(an_admission().document(), token=TOKEN) as peer:
        yield peer


def environment_of(peer: TimelinePeer, **changes: str) -> dict[str, str]:
    """Return what a kernel inherits from its notebook server."""
    return {
        **os.environ,
        "JUPYTERHUB_FLEET_URL": peer.url,
        "JUPYTERHUB_FLEET_TIMELINE_TOKEN": TOKEN,
        "JUPYTERHUB_USER": "ada",
        "JUPYTERHUB_SERVER_NAME": "gpu",
        **changes,
    }


class Kernel:
    """One kernel, asked to run cells."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        """Talk through *client*."""
        self.manager = manager
        self.client = client

    def run(self, code: str) -> dict[str, Any]:
        """Return the MIME bundle of a cell's value, or its printed text."""
        bundle: dict[str, Any] = {}

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] in {"execute_result", "display_data"}:
                bundle.update(content["data"])
            elif message["msg_type"] == "stream":
                bundle["printed"] = bundle.get("printed", "") + content["text"]

        reply = self.client.execute_interactive(
            code, timeout=PATIENCE, output_hook=take, allow_stdin=False
        )
        assert reply["content"]["status"] == "ok", reply["content"]
        return bundle

    def heard(self, kind: str) -> dict[str, Any]:
        """Return the content of the next message of this kind."""
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["msg_type"] == kind:
                content: dict[str, Any] = message["content"]
                return content


class a_kernel:  # noqa: N801 - reads as a function
    """A real kernel with this environment."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._folder = TemporaryDirectory()
        # A port that is chosen for a kernel may be another's when it listens there.
        self._manager = KernelManager(
            kernel_name="python3", transport="ipc", ip=f"{self._folder.name}/kernel"
        )

    def __enter__(self) -> Kernel:
        self._manager.start_kernel(env=self._environment)
        client = self._manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE)
        self._client = client
        return Kernel(self._manager, client)

    def __exit__(self, *exception: object) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._folder.cleanup()


class Tags(HTMLParser):
    """Collects the elements and the attributes of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_a_cell_shows_the_timeline_in_three_forms(peer: TimelinePeer) -> None:
    """A document for JupyterLab, a plain table for others, text for a terminal."""
    with a_kernel(environment_of(peer)) as kernel:
        kernel.run("%load_ext fleet_lab")
        shown = kernel.run("%admission")

    assert set(shown) == {"text/plain", "text/html", MIME_TYPE}
    assert shown[MIME_TYPE]["schema"] == "jupyterhub-fleet/timeline/v1"
    html = shown["text/html"]
    assert "Ready on gpu-17, admitted in 3 min 12 s." in html
    assert html.count('<th scope="row">') == 5
    assert "held by grace (GPU large) until" in html
    text = shown["text/plain"]
    assert "✓ done        Waiting in line  2 min 40 s" in text
    assert TOKEN not in json.dumps(shown)


def test_the_table_needs_no_script_and_no_style(peer: TimelinePeer) -> None:
    """Whoever looks at the file elsewhere sees it: the sanitisers take nothing away."""
    with a_kernel(environment_of(peer)) as kernel:
        html = kernel.run("from fleet_lab import timeline; timeline()")["text/html"]

    tags = Tags(html)
    assert tags.names <= PLAIN_HTML
    assert tags.attributes <= {"scope"}


def test_a_saved_output_stays_true(peer: TimelinePeer) -> None:
    """It says when it was taken, and everything in it is as of then."""
    story = an_admission()
    limits = {"ends_at": story.time(4_000 + 3_600), "metal_reserved": True}
    peer.say(story.document(limits=limits))
    with a_kernel(environment_of(peer)) as kernel:
        first = kernel.run("import fleet_lab; kept = fleet_lab.timeline(); kept")
        peer.say(an_admission().document(machine="elsewhere"))
        again = kernel.run("kept")

    assert first == again
    assert "Admission timeline of server “gpu”, as of " in first["text/plain"]
    assert "Holds the Mac's GPU" in first["text/html"]
    assert "in 59 min" in first["text/html"]


def test_nothing_that_anybody_chose_becomes_markup(peer: TimelinePeer) -> None:
    """A hostile profile, machine, holder and step stay text."""
    why = {
        "reason": "metal_busy",
        "subject": HOSTILE,
        "detail": HOSTILE,
        "holders": [{"workload": "w0", "owner": HOSTILE, "title": HOSTILE}],
    }
    story = Story(began_seconds_ago=9).then(0, "queued", "waiting", explanation=why)
    peer.say(story.document(profile_title=HOSTILE, headline=HOSTILE))
    with a_kernel(environment_of(peer)) as kernel:
        html = kernel.run("import fleet_lab; fleet_lab.timeline()")["text/html"]

    assert Tags(html).names <= PLAIN_HTML
    assert "&lt;img src=x" in html
    assert "\u202e" not in html


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"JUPYTERHUB_FLEET_URL": ""}, "not started by a JupyterHub with admission"),
        ({"JUPYTERHUB_FLEET_TIMELINE_TOKEN": ""}, "without a timeline token"),
        ({"JUPYTERHUB_FLEET_TIMELINE_TOKEN": "old"}, "no longer valid"),
        ({"JUPYTERHUB_SERVER_NAME": "other"}, "belongs to another server"),
        ({"JUPYTERHUB_FLEET_URL": "http://127.0.0.1:9/"}, "does not answer"),
    ],
)
def test_without_a_timeline_it_says_why(
    peer: TimelinePeer, changes: dict[str, str], sentence: str
) -> None:
    """One sentence instead of a traceback, and no table."""
    with a_kernel(environment_of(peer, **changes)) as kernel:
        shown = kernel.run("import fleet_lab; fleet_lab.timeline()")

    assert set(shown) == {"text/plain"}
    assert sentence in shown["text/plain"]


def test_the_text_for_a_message_names_nobody_else(peer: TimelinePeer) -> None:
    """Neither the headline of a wait nor a drain does, in whatever language."""
    busy = {"reason": "metal_busy", "holders": [{"workload": "w0", "owner": "grace"}]}
    drained = {"reason": "draining", "machine": "mac-07", "subject": "grace"}
    story = Story(began_seconds_ago=9).then(0, "queued", "waiting", explanation=busy)
    story.then(5, "queued", "note", explanation=drained)
    wished = {"reason": "release_wished", "subject": "grace"}
    story.then(6, "queued", "note", explanation=wished)
    told = "2 ahead of you. The Mac's GPU is taken; held by grace."
    peer.say(story.document(explanation=busy, headline=told, position=2))
    with a_kernel(environment_of(peer, LANGUAGE="de")) as kernel:
        text = kernel.run("%load_ext fleet_lab\n%admission --text")["printed"]

    assert "grace" not in text
    assert "2 ahead of you. The Mac's GPU is taken" in text
    assert "held by somebody else with no known end" in text
    assert "versions  fleet_lab " in text


def test_text_and_json_are_printed_for_a_message(peer: TimelinePeer) -> None:
    """What a person pastes; an option that is not known explains the others."""
    with a_kernel(environment_of(peer)) as kernel:
        kernel.run("%load_ext fleet_lab")
        text = kernel.run("%admission --text")["printed"]
        document = json.loads(kernel.run("%admission --json")["printed"])
        usage = kernel.run("%admission --help")["printed"]

    assert "Ready on gpu-17" in text
    assert f"request   {document['workload']} start 1" in text
    assert "held by somebody else until" in text
    assert "grace" not in text
    assert document["machine"] == "gpu-17"
    assert "%admission [--text | --json | --watch]" in usage


def test_a_watched_timeline_follows_until_it_is_interrupted(
    peer: TimelinePeer,
) -> None:
    """One output changes in place, survives the controller's death, and ends calmly."""
    story = an_admission()
    peer.say(story.document())
    with a_kernel(environment_of(peer)) as kernel:
        kernel.run("%load_ext fleet_lab")
        kernel.client.execute("%admission --watch")
        kernel.heard("display_data")
        story.then(3_000, "unknown", "silent", machine="gpu-17")
        peer.say(story.document())
        changed = kernel.heard("update_display_data")
        assert "gpu-17 stopped answering" in changed["data"]["text/html"]
        peer.go_away()
        stale = kernel.heard("update_display_data")
        assert "controller does not answer" in stale["data"]["text/plain"]
        assert "gpu-17 stopped answering" in stale["data"]["text/plain"]
        kernel.manager.interrupt_kernel()
        reply = kernel.client.get_shell_msg(timeout=PATIENCE)
        assert reply["content"]["status"] == "ok"


def test_a_terminal_shows_text(peer: TimelinePeer, tmp_path: Path) -> None:
    """Plain IPython has no rich output, and needs none."""
    ended = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--simple-prompt"],
        input="%load_ext fleet_lab\n%admission\n",
        env=environment_of(peer, IPYTHONDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert "Ready on gpu-17, admitted in 3 min 12 s." in ended.stdout


def test_a_notebook_server_pays_for_no_model_library() -> None:
    """Importing the package and its server extension loads no pydantic."""
    probe = (
        "import sys, fleet_lab; fleet_lab._jupyter_server_extension_points();"
        "sys.exit('pydantic' in sys.modules or 'fleet_contracts' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", probe], check=True, timeout=PATIENCE)
