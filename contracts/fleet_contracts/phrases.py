"""The English words for every reason: what it says, and what would change it.

``{placeholders}`` are filled from the explanation.  A part in ``[brackets]`` is left
out when one of its placeholders has no value.  A phrase starts in lower case and has
no full stop: ``sentences.py`` makes a sentence of it.
"""

from __future__ import annotations

from typing import Final

from fleet_contracts.device_phrases import DEVICE_WORDS
from fleet_contracts.reasons import Reason


_SIZE: Final = "[: {requested} asked for, the largest has {capacity}]"
_SMALL: Final = "[: {requested} asked for, it has {capacity}]"
_TAKEN: Final = "[: {requested} asked for, {left} free]"

_WORDS: Final[dict[Reason, tuple[str, str]]] = DEVICE_WORDS | {
    # the request itself
    Reason.INVALID_REQUEST: (
        "the request is not valid[: {subject}]",
        "Correct it and ask again.",
    ),
    Reason.PROFILE_REQUIRED: (
        "no profile was named",
        "Choose one of the profiles on the spawn page.",
    ),
    Reason.PROFILE_UNKNOWN: (
        "there is no profile[ called {subject}]",
        "Choose one of the profiles on the spawn page.",
    ),
    Reason.CLASS_UNKNOWN: (
        "this profile has no class[ called {subject}]",
        "Choose one of the profile's classes.",
    ),
    Reason.OPTION_UNKNOWN: (
        "there is no such option[ as {subject}]",
        "The only options are profile, class and files.",
    ),
    Reason.FOREIGN_LINK: (
        "the link came from another site, so nothing was started",
        "Choose again on the spawn page.",
    ),
    Reason.RUNTIME_NONE_MATCHES: (
        "no runtime of this profile serves[ {subject}]",
        "An admin can add a runtime to the profile.",
    ),
    Reason.ENDPOINTS_NOT_BUILT: (
        "model endpoints cannot be run yet",
        "Choose a profile for notebooks.",
    ),
    Reason.MODEL_INVALID: (
        "the model may not be loaded[: {subject}]",
        "Provide a model in a format that the profile's runtime validates.",
    ),
    Reason.EXCEEDS_ANY_MACHINE: (
        "no machine is that large[ in {subject}]" + _SIZE,
        "Ask for less, or add a larger machine.",
    ),
    Reason.EXCEEDS_QUOTA_EVER: (
        (
            "this alone is more than the quota[ of {subject}]"
            "[: {requested} asked for, {capacity} allowed]"
        ),
        "Choose a smaller class, or ask an admin for a larger quota.",
    ),
    # policy
    Reason.ISOLATION_TOO_WEAK: (
        (
            "{subject} workloads are not isolated from the machine, so only its owner may "
            "run them"
        ),
        (
            "Choose a profile that runs in containers or on a cluster, or enrol a machine "
            "of your own."
        ),
    ),
    Reason.NOT_IN_AUDIENCE: (
        "this is not offered to you[: {subject}]",
        "Ask an admin to add you or one of your groups to its audience.",
    ),
    Reason.OWNER_FORBIDS: (
        "the machine's owner[, {subject},] does not lend it to you",
        "Ask its owner, or choose another profile.",
    ),
    Reason.QUOTA_IN_USE: (
        "the quota of group {subject} is in use" + _TAKEN,
        "It clears when somebody of the group stops a server.",
    ),
    Reason.USER_LIMIT: (
        "your own quota is in use" + _TAKEN,
        "Stop one of your servers.",
    ),
    # one machine, static
    Reason.DRIVER_UNAVAILABLE: (
        "the {subject} driver cannot be used there",
        "The machine's owner can run fleet-agent probe to see why.",
    ),
    Reason.OS_MISMATCH: (
        "this profile is for another operating system[: {subject}]",
        "Choose another profile, or add a machine with that system.",
    ),
    Reason.ACCELERATOR_MISMATCH: (
        "no such accelerator[: {subject}]",
        "Choose a class that the machines have, or add a machine with one.",
    ),
    Reason.RUNTIME_MISSING: (
        "no runtime of this profile runs through the {subject} driver",
        "An admin can name one for this driver in the catalog.",
    ),
    Reason.SUPPORT_MISSING: (
        "this combination is not supported yet[: {subject}]",
        "Choose another class.",
    ),
    Reason.CAPABILITY_MISSING: (
        "what this needs is missing: {subject}",
        "The machine's owner can install it; the machine is then looked at again.",
    ),
    Reason.DRIVER_TOO_OLD: (
        "the GPU driver is too old[ for {subject}]",
        "The machine's owner can update the GPU driver.",
    ),
    Reason.DEVICE_MODEL_MISMATCH: (
        "the class is for other devices[: {subject}]",
        "Choose another class, or add a machine with such a device.",
    ),
    Reason.COMPUTE_CAPABILITY_TOO_LOW: (
        "the devices are too old[: compute capability {subject} is needed]",
        "Choose another class, or add a machine with newer devices.",
    ),
    Reason.VRAM_TOO_SMALL: (
        "the devices have too little memory" + _SMALL,
        "Choose a class with less device memory.",
    ),
    Reason.GPU_COUNT_TOO_SMALL: (
        "it has too few devices" + _SMALL,
        "Choose a class with fewer devices.",
    ),
    Reason.CPU_TOO_SMALL: (
        "it has too few cores" + _SMALL,
        "Choose a class with fewer cores.",
    ),
    Reason.MEMORY_TOO_SMALL: (
        "it has too little memory" + _SMALL,
        "Choose a class with less memory.",
    ),
    Reason.DISK_TOO_SMALL: (
        "it has too little disk" + _SMALL,
        "Choose a class with less disk, or free some on the machine.",
    ),
    Reason.LABEL_MISMATCH: (
        "the class asks for the label {subject}",
        "An admin can label a machine so, or correct the class.",
    ),
    Reason.DATA_NOT_LOCAL: (
        "your files are on another machine",
        "Keep the old class, copy the files, or start with a fresh folder elsewhere.",
    ),
    Reason.COPY_NOT_OFFERED: (
        "the fleet copies no files",
        "Keep the old class, or start with a fresh folder elsewhere.",
    ),
    # one machine, its state
    Reason.OFFLINE: (
        "it is not connected",
        "It clears when the machine is switched on and its agent connects.",
    ),
    Reason.COPY_SOURCE_AWAY: (
        (
            "the machine with your files[, {subject},] cannot send them now"
            "[; it is waited for at most {requested}]"
        ),
        "It is asked again by itself; your files stay there.",
    ),
    Reason.DRAINING: (
        "it takes nothing new: it is being drained[ by {subject}]",
        "It clears when the draining ends.",
    ),
    Reason.OUTSIDE_HOURS: (
        "its owner lends it at other hours",
        "It clears when those hours begin.",
    ),
    Reason.OWNER_AT_WORK: (
        "its owner is using it",
        "It clears when its owner has left it alone for a while.",
    ),
    Reason.PRESENCE_UNKNOWN: (
        "its owner lends it only while they do not use it, and nobody can tell whether they do",
        "Its owner can see why with fleet-agent doctor.",
    ),
    Reason.ON_BATTERY: (
        "it runs on its battery",
        "It clears when it is plugged in.",
    ),
    Reason.OWNER_CLOSED: (
        "its owner lets it take nothing new",
        "Its owner can say when that ends.",
    ),
    Reason.UNHEALTHY: (
        "some of its devices do not work[: {requested} asked for, {capacity} in order]",
        "Its owner can look at the device; it is looked at again by itself.",
    ),
    Reason.SAME_DEVICE: (
        "another machine has the very same device[: {subject}]",
        "Two agents run on one computer: an admin can revoke the token of one of them.",
    ),
    Reason.AGENT_TOO_OLD: (
        "its agent is too old for this controller",
        "Its owner can update the agent.",
    ),
    Reason.KEEPS_NO_FILES: (
        "its notebooks keep no files, so none can be copied there",
        "Start with a fresh folder, or its owner can offer another driver.",
    ),
    Reason.QUARANTINED: (
        "it is set aside because several starts went wrong there",
        "It is tried again by itself.",
    ),
    Reason.LEASE_UNKNOWN: (
        "it stopped talking, and what it holds is kept",
        "It clears when the machine returns, or when an admin declares it lost.",
    ),
    Reason.CAPABILITIES_UNKNOWN: (
        "it has not told what it can do[: {subject}]",
        (
            "It clears by itself once the machine knows. If it stays, the machine's "
            "owner can run fleet-agent probe to see why."
        ),
    ),
    Reason.CONTROLLER_RECOVERING: (
        "the controller has just started and waits to hear what runs there",
        "It clears by itself within a minute.",
    ),
    Reason.CONTROLLER_UNREACHABLE: (
        "the controller does not answer",
        "It is tried again by itself; your place is kept.",
    ),
    Reason.ADDRESS_UNKNOWN: (
        "its address has not been tried yet",
        "It clears once its agent connects and the controller has tried its address.",
    ),
    Reason.ADDRESS_REFUSED: (
        "notebooks may not be led to its address[ {subject}]",
        "Its owner can give another one with fleet-agent enrol --advertise-address.",
    ),
    Reason.ADDRESS_UNREACHABLE: (
        "the Hub does not reach it[ at {subject}], so nobody could open a notebook there",
        (
            "Its owner can open the machine's firewall to the Hub, or give another "
            "address with fleet-agent enrol --advertise-address."
        ),
    ),
    Reason.NETWORK_NOT_TRUSTED: (
        (
            "what a notebook shows would travel unprotected over a network that is not "
            "declared trusted[: {subject}]"
        ),
        "An admin can declare it with the setting trusted_networks.",
    ),
    Reason.NO_MACHINES: (
        "the fleet has no machines yet",
        "An admin can enrol one with fleet-agent enrol.",
    ),
    # one machine, busy
    Reason.GPU_BUSY: (
        "all suitable devices are taken" + _TAKEN,
        "It clears when a holder ends.",
    ),
    Reason.METAL_BUSY: (
        (
            "the Mac's GPU is taken, and programs on a Mac cannot be kept from it, so "
            "they run one at a time"
        ),
        "It clears when the holder ends.",
    ),
    Reason.CPU_BUSY: (
        "too few cores are free" + _TAKEN,
        "It clears when a holder ends.",
    ),
    Reason.MEMORY_BUSY: (
        "too little memory is free" + _TAKEN,
        "It clears when a holder ends.",
    ),
    Reason.DISK_BUSY: (
        "too little disk is free" + _TAKEN,
        "It clears when a holder ends.",
    ),
    Reason.BEHIND: (
        (
            "it would fit, but starting it now would delay somebody who was promised the "
            "place"
        ),
        "It clears when the ones ahead have started.",
    ),
    Reason.NOT_EVALUATED_YET: (
        "it has not been looked at yet",
        "It clears by itself within a second.",
    ),
    # the agent
    Reason.AGENT_REJECTED: (
        "its agent rejected the start[: {subject}]",
        "Other machines are tried; the place is kept.",
    ),
    Reason.EPOCH_STALE: (
        "its agent has already seen a newer order for the same place",
        "It is tried again by itself.",
    ),
    Reason.SELECTION_MISMATCH: (
        "its agent does not agree with the choice of runtime",
        "An admin can check that agent and controller have the same version.",
    ),
    Reason.SANDBOX_MISSING: (
        "a sandbox tool is missing, and nothing runs without one",
        "Its owner can install bubblewrap (on Debian: apt install bubblewrap).",
    ),
    # it was tried and went wrong
    Reason.ENVIRONMENT_BROKEN: (
        "the environment is damaged and was not used",
        "Start again: it is built anew.",
    ),
    Reason.ENVIRONMENT_HASH_MISMATCH: (
        "a package is not the one that the lock names, so nothing was installed",
        "An admin can check the package index and the lock file.",
    ),
    Reason.DISK_FULL: (
        "the machine's disk is full",
        "Its owner can free some space; then start again.",
    ),
    Reason.PREPARE_FAILED: (
        "the environment could not be prepared",
        "Start again; if it fails again, show the details to an admin.",
    ),
    Reason.PREPARE_TIMEOUT: (
        "preparing the environment took too long[: more than {requested}]",
        "Start again: what was fetched is kept.",
    ),
    Reason.START_FAILED: (
        "the server could not be started",
        "Start again; if it fails again, show the details to an admin.",
    ),
    Reason.START_TIMEOUT: (
        "the server did not answer in time[: {requested}]",
        "Start again; if it fails again, show the details to an admin.",
    ),
    Reason.PORT_TAKEN: (
        "another program took the server's port",
        "Start again: another port is used.",
    ),
    Reason.SERVER_EXITED: (
        "the server ended by itself",
        "Start again; your files are kept.",
    ),
    Reason.OUT_OF_MEMORY: (
        "the server ran out of memory and was ended[: {requested} allowed]",
        "Start again with a class that has more memory; your files are kept.",
    ),
    Reason.MACHINE_REBOOTED: (
        "the machine was restarted, which ended the server",
        "Start again; your files are kept.",
    ),
    Reason.MACHINE_LOST: (
        "an admin declared the machine lost",
        "Start again on another machine; files on the lost one are not reachable.",
    ),
    Reason.LEDGER_LOST: (
        "the machine lost its record of what runs there",
        "An admin can look at the machine; files are kept.",
    ),
    Reason.COPY_FAILED: (
        "your files could not be copied",
        "Nothing is lost: they are where they were. Start again to try it again.",
    ),
    Reason.COPY_TIMEOUT: (
        "copying your files took too long[: more than {requested}]",
        "Nothing is lost: they are where they were. An admin can allow more time.",
    ),
    Reason.COPY_TOO_LARGE: (
        "your files are more than may be copied",
        "Remove what you do not need, or keep the old class.",
    ),
    # who or what ended it
    Reason.STOPPED_BY_USER: (
        "its user ended it",
        "Start again whenever you like; your files are kept.",
    ),
    Reason.STOPPED_BY_ADMIN: (
        "an admin ended it",
        "Ask the admin, or start again; your files are kept.",
    ),
    Reason.STOPPED_BY_HUB: (
        "it was ended at JupyterHub",
        "Start again; your files are kept.",
    ),
    Reason.LEFT_THE_LINE: ("you left the line", "Ask again whenever you like."),
    Reason.TIME_LIMIT: (
        "the time limit[ of {subject}] was reached[: {requested}]",
        "Start again; your files are kept.",
    ),
    Reason.IDLE_LIMIT: (
        "nothing was computed for as long as is allowed[ by {subject}][: {requested}]",
        "Start again; your files are kept.",
    ),
    Reason.IDLE_SOON: (
        "nothing is computed here, and it ends if that lasts[ another {requested}]",
        "Run a cell to keep it, or stop it.",
    ),
    Reason.CUT_OFF: (
        "its machine was cut off from the Hub for longer than its class allows",
        "Start again; your files are kept.",
    ),
    Reason.NOT_CLAIMED: (
        "nobody opened the server when its turn came, so the place was given back",
        "Ask again when you are there.",
    ),
    Reason.PLACE_KEPT: (
        "it is not your turn yet, and your place in the line is kept",
        "You can close this page: the server starts when it is your turn.",
    ),
    Reason.PLACE_MOVED: (
        "an admin gave it another place in the line",
        "An admin can say why, and can move it again.",
    ),
    Reason.RELEASE_ASKED: (
        "the holder was asked to release it",
        "Nobody has to; the place is kept.",
    ),
    Reason.RELEASE_WISHED: (
        "somebody[, {subject},] waits for what this server holds, and asks for it",
        "Its user can stop it; nothing else does.",
    ),
    Reason.METAL_RESERVED: (
        (
            "this Mac's GPU is reserved for this server, because programs on a Mac cannot "
            "be kept from it; other work there waits meanwhile"
        ),
        "Stop the server when you are done.",
    ),
    Reason.METAL_SHARED: (
        (
            "this Mac was seen to keep CPU notebooks from its GPU, and its owner lets "
            "them share, so other work may run there beside this server"
        ),
        "There is nothing to do.",
    ),
    Reason.PROMISE_BROKEN: (
        "the promised time cannot be kept[ because {subject}]",
        "A new time is given as soon as one is known.",
    ),
    Reason.RETIRED: (
        "this server was deleted",
        "Make a new one on the Hub's home page.",
    ),
    Reason.FILES_TO_COPY: (
        "your files are copied before the start, and stay there",
        "Leave the line if you do not want that; your files stay where they are.",
    ),
    Reason.KEEP_CLASS: (
        "the class {subject} can be kept, beside the files that are there",
        "Choose that class again.",
    ),
    Reason.COPY_FILES: (
        "it can begin with a copy of the files, which also stay where they are",
        "Choose it again with the option files set to copy.",
    ),
    Reason.FRESH_FOLDER: (
        "it can begin with an empty folder, and the files stay where they are",
        "Choose it again with the option files set to fresh.",
    ),
    Reason.FILES_COPIED: (
        "your files stay as they were; this server has a copy of them",
        "From here on each folder goes its own way.",
    ),
}

PHRASES: Final = {reason: words[0] for reason, words in _WORDS.items()}
"""What a reason says."""

REMEDIES: Final = {reason: words[1] for reason, words in _WORDS.items()}
"""What would change it."""
