"""Options that several commands of ``gradewire models`` share."""

from pathlib import Path

import click

from gradewire_models.repository.built import default_repository

REPOSITORY_OPTION = click.option(
    "--repository",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_repository,
    show_default="$GRADEWIRE_MODEL_REPOSITORY, the checkout's model_repo/models, or the user's data directory",
    help="Triton model repository to work in.",
)
