"""Paths that name the same file in every directory: Ray runs workers in the one where it was started.

Messages, manifests and outputs keep the paths as they were typed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gradewire.cli.input.urls import file_system, is_url

if TYPE_CHECKING:
    from gradewire import Tls
    from gradewire.cli.options.connection import Connection

_CHAINED: Final = "::"
_LOCAL_URLS: Final = ("file://", "local://")


def absolute_place(place: str) -> str:
    """A path, or the URL of one, from the root on; the URLs of other file systems as they are."""
    if not is_url(place):
        return str(Path(place).absolute())
    return _CHAINED.join(map(_absolute_link, place.split(_CHAINED)))


def absolute_connection(connection: Connection) -> Connection:
    """The same with all paths from the root on."""
    return replace(
        connection,
        # Settings know the home directory by ~.
        cache_dir=connection.cache_dir and connection.cache_dir.expanduser().absolute(),
        models_dir=connection.models_dir and connection.models_dir.expanduser().absolute(),
        tls=connection.tls and _absolute_tls(connection.tls),
    )


def _absolute_link(url: str) -> str:
    if not url.startswith(_LOCAL_URLS):
        return url
    system, path = file_system(url)
    return str(system.unstrip_protocol(path))


def _absolute_tls(tls: Tls) -> Tls:
    return replace(
        tls,
        root_certificates=tls.root_certificates and tls.root_certificates.absolute(),
        certificate_chain=tls.certificate_chain and tls.certificate_chain.absolute(),
        private_key=tls.private_key and tls.private_key.absolute(),
    )
