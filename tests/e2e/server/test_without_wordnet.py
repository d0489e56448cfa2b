"""A server without WordNet's files says so when it starts, and to who asks what it can do."""

from click.testing import CliRunner
from tests.support.servers.server_process import ServerProcess

from gradewire_cli.group import gradewire


def test_the_log_and_the_list_say_what_to_install(server: ServerProcess) -> None:
    told = [line["event"] for line in server.log() if "meteor" in line["event"]]
    assert len(told) == 1
    assert told[0].startswith("The metric meteor is not available: WordNet's files are missing: install them")
    assert "wordnet-base" in told[0]
    listed = CliRunner().invoke(gradewire, ["models", "list", "--server", server.address])
    assert listed.exit_code == 0, listed.output
    lines = listed.stdout.splitlines()
    assert any(line.startswith("encoder all-MiniLM-L6-v2 (default): LOADED") for line in lines)
    assert "wordnet-base" in lines[lines.index("  meteor/1: 0 to 1") + 1]
    assert any(line.startswith("  max_items_per_request: ") for line in lines)
