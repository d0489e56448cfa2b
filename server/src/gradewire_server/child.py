"""One of several server processes: `python -m gradewire_server.child FD`; FD is its end of the supervisor's link.

The first line on standard input says where it stands and which settings were given as flags; variables and the file of
settings it reads by itself, so that a process that is started again takes what they say by then.
"""

import ctypes
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Final

from gradewire_server.app import run_member
from gradewire_server.encoders.opening import check_installed
from gradewire_server.processes.member import Member, Place
from gradewire_server.settings.server import Settings
from gradewire_server.settings.surface import SettingsError
from gradewire_server.stop import Stop

_PR_SET_PDEATHSIG: Final = 1


def main() -> int:
    """Serves until the supervisor stops it or is gone; returns the exit code."""
    message = json.loads(sys.stdin.readline())
    _end_with(message["supervisor"])
    place = Place(message["index"], message["count"], message["port"], Path(message["directory"]))
    try:
        settings = Settings.load_share(place.count, **message["values"])
        check_installed(settings.engine)
    except (SettingsError, ImportError) as error:
        sys.stderr.write(f"process {place.index} cannot start: {error}\n")
        return 2
    stop = Stop()
    return run_member(settings, Member(place, socket.socket(fileno=int(sys.argv[1])), stop), stop)


def _end_with(supervisor: int) -> None:
    """Has the system end this process when its supervisor is gone, whatever this one is doing then."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:  # it went before the system was told
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
