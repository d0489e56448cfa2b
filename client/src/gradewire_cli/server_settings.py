"""Read the server's settings and start the server.

Only processes that serve requests import the engine, so the supervisor stays small.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from gradewire.errors import InvalidRequest, MissingExtra
from gradewire.rewards.framework_settings import scorer_of
from gradewire_cli.problems import invalid_request, with_option_names
from gradewire_server.domain.items import Failure
from gradewire_server.processes.supervisor import run as supervise
from gradewire_server.settings.server import Settings, every_setting
from gradewire_server.settings.setting import SettingField, SettingsError

__all__ = ["SettingField", "every_setting", "missing_synonyms", "print_settings", "run_server"]


def print_settings(values: Mapping[str, Any]) -> str:
    """Return all settings as TOML, with masked secrets; raise InvalidRequest if a value is invalid."""
    with invalid_request(SettingsError):
        return Settings.load(**values).to_toml()


def missing_synonyms() -> str:
    """Return "" if `meteor` is available on this machine, otherwise the reason and the remedy.

    Raises:
        InvalidRequest: A setting on this machine is invalid.
    """
    from gradewire_server.lexicon import Thesaurus  # noqa: PLC0415 - as above

    with invalid_request(SettingsError):
        settings = Settings.load()
    # An empty lookup reports whether WordNet is available.
    found = asyncio.run(Thesaurus(settings.engine.wordnet_directory).synonyms(()))
    return found.message if isinstance(found, Failure) else ""


def run_server(values: Mapping[str, Any], *, ready: Callable[[str], None]) -> int:
    """Serve until a signal arrives, and return the exit code. When the server is ready, call `ready` with its address.

    Raises:
        InvalidRequest: A setting is unknown or invalid.
        MissingExtra: A package that the engine needs is not installed.
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
    from gradewire_server.app import run  # noqa: PLC0415 - as above
    from gradewire_server.encoders.factory import check_installed  # noqa: PLC0415 - as above

    try:
        check_installed(settings.engine)
    except ImportError as error:
        raise MissingExtra.of(f"backend = {settings.backend}", error) from error
    return run(settings, started=started)


def _check_rewards(settings: Settings) -> None:
    given = asdict(settings.http_api.rewards)
    del given["slime_key"]
    try:
        scorer_of(given)
    except InvalidRequest as error:
        names = {name: f"rewards_{name}" for name in given}
        raise InvalidRequest(f"settings rewards_…: {with_option_names(str(error), names)}") from error
