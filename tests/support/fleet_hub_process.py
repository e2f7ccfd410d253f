"""The Hub of a fleet with its proxy and controller: started, ended and killed."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from command_lines import command_line
from fleet_parts import (
    ADMIN_TOKEN,
    CATALOG,
    CONFIG,
    PATIENCE,
    NotInTimeError,
    Seen,
    answers,
    hub_environment,
    wait_until,
)
from fleet_questions import FleetQuestions
from patience import free_port


@dataclass(kw_only=True)
class FleetHubProcess(FleetQuestions):
    """A running Hub; leaving the ``with`` block ends every process of it."""

    queue_hold: float = 60
    slow_spawn_timeout: float = 10
    """How long the Hub lets a start go on before it answers who asked for it."""
    catalog: str | None = CATALOG
    more_config: str = ""
    hub_port: int = field(default_factory=free_port)
    proxy_port: int = field(default_factory=free_port)
    _hub: subprocess.Popen[bytes] | None = None
    _seen: Seen = field(default_factory=Seen)

    def __enter__(self) -> Self:
        try:
            self.start_hub()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def hub_log(self) -> Path:
        """What Hub, proxy and controller wrote."""
        return self.folder / "hub.log"

    def start_hub(self, *, wait: bool = True) -> None:
        """Start the Hub with its proxy and its controller; wait until they answer."""
        config = self.folder / "jupyterhub_config.py"
        config.write_text(
            CONFIG.format(
                catalog=self._catalog_file(),
                token=ADMIN_TOKEN,
                queue_hold=self.queue_hold,
                slow_spawn_timeout=self.slow_spawn_timeout,
                more=self.more_config,
            )
        )
        with self.hub_log.open("ab") as log:
            self._hub = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jupyterhub", f"--config={config}"),
                    f"--JupyterHub.bind_url={self.url}",
                    f"--JupyterHub.hub_port={self.hub_port}",
                    f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{self.proxy_port}",
                ],
                cwd=self.folder,
                env=hub_environment(self.data, self.controller_port),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        if wait:
            wait_until(self._hub_is_up, f"the Hub is up; see {self.hub_log}")
            self._remember()

    def ensure_hub(self) -> None:
        """Start the Hub if it does not run; wait until all of it answers."""
        if self._hub is None or self._hub.poll() is not None:
            self.start_hub()
        wait_until(self._hub_is_up, f"the Hub is up; see {self.hub_log}")

    def kill_hub(self) -> None:
        """Kill the Hub like a power cut; its controller dies with it, as designed."""
        self._remember()
        assert self._hub is not None
        controller = self.controller_processes()
        self._hub.kill()
        self._hub.wait()
        _, alive = psutil.wait_procs(controller, timeout=PATIENCE)
        assert not alive

    def end_hub(self) -> None:
        """Have the Hub shut down in order."""
        self._remember()
        assert self._hub is not None
        self._hub.terminate()
        self._hub.wait(PATIENCE)

    def kill_controller(self) -> None:
        """Kill the controller; its supervisor starts the next one at once."""
        self._remember()
        *_, controller = self.controller_processes()
        controller.kill()
        wait_until(
            lambda: (
                not controller.is_running()
                or controller.status() == psutil.STATUS_ZOMBIE
            ),
            "the controller is dead",
        )

    def wait_for_controller(self) -> None:
        """Wait until the controller answers."""
        wait_until(lambda: answers(f"{self.service}health"), "the controller is up")

    def controller_processes(self) -> list[psutil.Process]:
        """Return the supervisor and the controller, the latter last."""
        assert self._hub is not None
        with suppress(psutil.Error):
            return [
                process
                for process in psutil.Process(self._hub.pid).children(recursive=True)
                if "fleet_hub.service" in command_line(process)
            ]
        return []

    def close(self) -> None:
        """End everything that was started."""
        self._remember()
        if self._hub is not None and self._hub.poll() is None:
            self._hub.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._hub.wait(PATIENCE)
        self._seen.kill(self.folder)
        for root in self._roots():
            root.wait()

    def _hub_is_up(self) -> bool:
        assert self._hub is not None
        if self._hub.poll() is not None:
            tail = self.hub_log.read_text(errors="replace")[-3000:]
            raise NotInTimeError(f"the Hub ended with {self._hub.returncode}:\n{tail}")
        # the proxy last: it logs each request that comes before the Hub's route
        return answers(f"{self.service}health") and answers(f"{self.url}/hub/health")

    def _catalog_file(self) -> str | None:
        if self.catalog is None:
            return None
        path = self.folder / "catalog.yaml"
        path.write_text(self.catalog)
        return str(path)

    def _remember(self) -> None:
        """Note all processes of this fleet: killed parents lose their children."""
        self._seen.note(self._roots())

    def _roots(self) -> list[subprocess.Popen[bytes]]:
        """Return the processes that were started by themselves."""
        return [] if self._hub is None else [self._hub]
