"""What a process of the supervisor is told first, as a line on its standard input, and that it ends with it."""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from gradewire_server.processes.member import Place

_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True)
class StartMessage:
    """The line.

    Attributes:
        place: Where the process stands.
        values: Settings that were given as flags; variables and the file of settings it reads by itself, so that a
            process that is started again takes what they say by then.
    """

    place: Place
    values: Mapping[str, Any]

    def encode(self) -> bytes:
        """As the supervisor writes it."""
        place = self.place
        told = {
            "index": place.index,
            "count": place.count,
            "port": place.port,
            "directory": str(place.directory),
            "judge_host": place.judge_host,
        }
        return json.dumps({"place": told, "supervisor": os.getpid(), "values": dict(self.values)}).encode() + b"\n"

    @classmethod
    def read(cls) -> Self:
        """Reads it; from then on the system ends this process when its supervisor is gone, whatever it is doing."""
        message = json.loads(sys.stdin.readline())
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != message["supervisor"]:  # it went before the system was told
            sys.exit(1)
        place = message["place"]
        return cls(Place(**{**place, "directory": Path(place["directory"])}), message["values"])
