"""Settings and start of the server, for the command; imported only when asked for.

What computes is imported by the process that serves, so the supervisor of several ones stays small.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from gradewire.errors import InvalidRequest, MissingExtra
from gradewire.rewards.framework_settings import scorer_of
from gradewire_cli.problems import invalid_request
from gradewire_server.domain.items import Failure
from gradewire_server.processes.supervisor import run as supervise
from gradewire_server.settings.server import Settings, every_setting
from gradewire_server.settings.setting import SettingField, SettingsError

__all__ = ["SettingField", "every_setting", "missing_synonyms", "print_settings", "run_server"]


def print_settings(values: Mapping[str, Any]) -> str:
    """Return all settings as TOML, secrets as stars; raises InvalidRequest where a value cannot be used."""
    with invalid_request(SettingsError):
        return Settings.load(**values).to_toml()


def missing_synonyms() -> str:
    """Return why a server that is started here cannot compute `meteor`, and what to do; empty where it can.

    Raises:
        InvalidRequest: A setting of this machine has a value that cannot be used.
    """
    from gradewire_server.lexicon import Thesaurus  # noqa: PLC0415 - as the module says

    with invalid_request(SettingsError):
        settings = Settings.load()
    # Asked for no synonyms, it says whether it could look any up.
    found = asyncio.run(Thesaurus(settings.engine.wordnet_directory).synonyms(()))
    return found.message if isinstance(found, Failure) else ""


def run_server(values: Mapping[str, Any], *, ready: Callable[[str], None]) -> int:
    """Serve until a signal stops it, and return the exit code; `ready` gets the address once calls are taken.

    Raises:
        InvalidRequest: A setting is unknown or has a value that cannot be used.
        MissingExtra: What the engine runs on is not installed.
    """
    with invalid_request(SettingsError):
        settings = Settings.load(**values)
    _check_rewards(settings)

    def started(port: int) -> None:
        ready(f"{settings.listen.host}:{port}")

    with invalid_request(SettingsError):
        count = settings.process_count
    if count > 1:
        return supervise(settings, values, started=started)
    from gradewire_server.app import run  # noqa: PLC0415 - as the module says
    from gradewire_server.encoders.factory import check_installed  # noqa: PLC0415 - as the module says

    try:
        check_installed(settings.engine)
    except ImportError as error:
        raise MissingExtra.of(f"backend = {settings.backend}", error) from error
    return run(settings, started=started)


def _check_rewards(settings: Settings) -> None:
    """Raise InvalidRequest where the HTTP API could not answer posts for rewards: it is said before it starts."""
    given = asdict(settings.http_api.rewards)
    del given["slime_key"]
    try:
        scorer_of(given)
    except InvalidRequest as error:
        raise InvalidRequest(f"the settings rewards_…: {error}") from error
