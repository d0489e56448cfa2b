"""Paths that name the same file in every directory: Ray runs workers in the one where it was started.

Messages, manifests and outputs keep the paths as they were typed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gradewire.cli.bulk.parts import PartStore
from gradewire.cli.input.urls import absolute_place

if TYPE_CHECKING:
    from gradewire import Tls
    from gradewire.cli.bulk.worker import WorkerSetup


def absolute_setup(setup: WorkerSetup) -> WorkerSetup:
    """What workers are made with, with all paths from the root on."""
    connection, plan = setup.connection, setup.plan
    return replace(
        setup,
        connection=replace(
            connection,
            # Settings know the home directory by ~.
            cache_dir=connection.cache_dir and connection.cache_dir.expanduser().absolute(),
            models_dir=connection.models_dir and connection.models_dir.expanduser().absolute(),
            tls=connection.tls and _absolute_tls(connection.tls),
        ),
        plan=replace(plan, pictures=plan.pictures and plan.pictures.absolute()),
        store=PartStore(absolute_place(setup.store.place)),
    )


def _absolute_tls(tls: Tls) -> Tls:
    return replace(
        tls,
        root_certificates=tls.root_certificates and tls.root_certificates.absolute(),
        certificate_chain=tls.certificate_chain and tls.certificate_chain.absolute(),
        private_key=tls.private_key and tls.private_key.absolute(),
    )
