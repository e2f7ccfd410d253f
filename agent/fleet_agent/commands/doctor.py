"""``fleet-agent doctor``: find out why this computer takes no work; changes nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from fleet_agent.daemon import FleetAgent
from fleet_agent.errors import AgentError
from fleet_agent.examination.findings import Finding, document, prose
from fleet_agent.examination.looking import (
    Controller,
    controller_findings,
    disk_finding,
    folder_findings,
    picture_findings,
    term_findings,
)
from fleet_agent.examination.running import folder_meant
from fleet_agent.logs import configure_logs
from fleet_agent.probes.detect import detect
from fleet_agent.probes.settings import DetectSettings
from fleet_agent.state_folder import StateFolder
from fleet_agent.terms.settings import read_terms
from fleet_agent.terms.watching import TermsWatch
from fleet_contracts.workloads import DriverName


_HELP = """usage: fleet-agent doctor [--json] [OPTION …]

Find out why this computer takes no work, and what would mend it.  Nothing is changed.

  --json    print the findings as JSON, for programs

All other options are those of fleet-agent run, above all --state-dir and --config.
It ends with 1 when something keeps this computer from taking work.
"""


def main(argv: Sequence[str]) -> int:
    """Print the findings; return 1 if one of them keeps work away."""
    words = list(argv)
    if {"-h", "--help"} & set(words):
        sys.stdout.write(_HELP)
        return 0
    as_json = "--json" in words
    configure_logs(logging.ERROR)
    try:
        app = FleetAgent()
        app.initialize([word for word in words if word != "--json"])
        configure_logs(logging.ERROR)
        folder, others = folder_meant(Path(app.state_dir))
        findings = asyncio.run(_examine(app, folder, others))
    except AgentError as error:
        sys.stderr.write(f"fleet-agent doctor: {error}\n")
        return error.exit_code
    if as_json:
        sys.stdout.write(json.dumps(document(findings), indent=2) + "\n")
    else:
        sys.stdout.write(prose(findings))
    return int(any(finding.stops_work for finding in findings))


async def _examine(
    app: FleetAgent, folder: StateFolder, others: Sequence[Path]
) -> list[Finding]:
    known = {name.value for name in DriverName}
    detection = DetectSettings(
        state_dir=str(folder.path),
        drivers=tuple(DriverName(name) for name in app.drivers if name in known),
    )
    watch = TermsWatch(
        terms=read_terms(app.written_terms()),
        drained=folder.drained,
        detection=detection,
    )
    answers, terms, picture = await asyncio.gather(
        controller_findings(_controller(app, folder)),
        watch.look(),
        detect(detection),
    )
    return [
        *folder_findings(folder, app.token_of(folder), others),
        *answers,
        *term_findings(terms),
        disk_finding(folder.path),
        *picture_findings(picture),
    ]


def _controller(app: FleetAgent, folder: StateFolder) -> Controller:
    try:
        # The folder may be somebody else's, whose files we may not read.
        readable = os.access(folder.enrolment, os.R_OK)
        enrolment = folder.read_enrolment() if readable else {}
        if not app.controller:
            # An agent that was given another controller when it was started goes there.
            told = folder.read_last_run()
            if told.get("controller") and (_runs(folder) or not enrolment):
                enrolment = enrolment | told | {"trusted_network": True}
        url = app.service(enrolment)
    except AgentError as error:
        return Controller(url=None, fault=str(error))
    ca_file = app.ca_file or enrolment.get("ca_file") or None
    return Controller(url=url, ca_file=ca_file)


def _runs(folder: StateFolder) -> bool:
    try:
        return folder.is_locked()
    except OSError:
        return False
