"""The English words for what goes wrong with a GPU; see ``phrases.py``."""

from __future__ import annotations

from typing import Final

from fleet_contracts.reasons import Reason


DEVICE_WORDS: Final[dict[Reason, tuple[str, str]]] = {
    Reason.FOREIGN_PROCESS: (
        (
            "a program outside the fleet uses the GPU that would be given"
            "[: {left} of its memory is free], and GPUs are given whole"
        ),
        (
            "It clears by itself a moment after that program ends; the machine's owner "
            "can end it, or drain the machine. The fleet ends nothing that it did not "
            "start."
        ),
    ),
    Reason.DEVICE_LOST: (
        (
            "a GPU is not there any more, as far as its machine can tell"
            "[: {left} still there]"
        ),
        (
            "What runs is not ended by it, and keeps what it has. The machine's owner "
            "can look at the GPU, its driver or its plug; it is looked at again by "
            "itself."
        ),
    ),
    Reason.DEVICE_RETURNED: (
        "the GPU is there again",
        (
            "What computed on it before has to begin anew: restart the kernel, or end "
            "the server and start it again."
        ),
    ),
    Reason.ACCELERATOR_NOT_USED: (
        (
            "what was started could not reach its GPU[ ({subject})], so it would have "
            "computed on the CPU and was ended"
        ),
        (
            "Starting again tries it once more. The machine's owner can look at the GPU "
            "driver, the container engine's GPU runtime and the environment's build of "
            "torch. The files are kept."
        ),
    ),
}
