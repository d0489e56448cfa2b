"""One of several server processes: `python -m gradewire_server.server_child FD`.

FD is this process's end of the connection to the supervisor.
"""

import socket
import sys
from dataclasses import replace

from gradewire_server.app import run
from gradewire_server.encoders.factory import check_installed
from gradewire_server.process import Stop
from gradewire_server.processes.child import Child, Position, StartMessage
from gradewire_server.settings.server import Settings
from gradewire_server.settings.setting import SettingsError


def main() -> int:
    """Serve until the supervisor stops this process or ends; return the exit code."""
    start = StartMessage.read()
    position = start.position
    try:
        settings = _with_shared_judge(Settings.load_share(position.count, position.gpu, **start.values), position)
        check_installed(settings.engine)
    except (SettingsError, ImportError) as error:
        sys.stderr.write(f"process {position.index} cannot start: {error}\n")
        return 2
    stop = Stop()
    return run(settings, child=Child(position, socket.socket(fileno=int(sys.argv[1])), stop), stop=stop)


def _with_shared_judge(settings: Settings, position: Position) -> Settings:
    judge = settings.engine.judge
    if judge.remote is not None:
        remote = replace(judge.remote, places_file=position.judge_places, processes=position.count)
        return replace(settings, engine=replace(settings.engine, judge=replace(judge, remote=remote)))
    if judge.backend != "embedded":
        return settings
    if not position.judge_host:
        raise SettingsError(
            "judge_backend was changed to embedded, but the server started without a judge host: stop the server and "
            "start it again"
        )
    return replace(settings, engine=replace(settings.engine, judge=replace(judge, host=position.judges)))


if __name__ == "__main__":
    sys.exit(main())
