"""Gets an encoder's folder: a directory, or a model of the hub at one commit."""

import re
from dataclasses import dataclass
from pathlib import Path

from gradewire_models.errors import DownloadError, ExportError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_COMMIT = re.compile(r"[0-9a-f]{40}")

# What an export reads, in whichever directory modules.json says; no pickles, no other frameworks' weights, no code.
_WANTED = ["*.json", "*.safetensors", "*.model", "*.txt", "README.md"]
_UNWANTED = ["onnx/*", "openvino/*", "coreml/*", "*.onnx*"]


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """A folder and where it comes from.

    Attributes:
        directory: The folder.
        origin: The hub's id, or the folder's own name; never a path, which says nothing elsewhere.
        commit: The hub's commit, 40 hex characters; empty for a directory.
    """

    directory: Path
    origin: str
    commit: str


def find_source(wanted: str, *, revision: str = "") -> SourceFolder:
    """Finds the folder `wanted` names; downloads it where it is a model of the hub.

    Args:
        wanted: A directory, or a hub id such as ``organisation/model``. A directory that is there wins.
        revision: Branch, tag or commit of the hub; empty is its main branch.

    Raises:
        ExportError: It is neither, or a directory with a revision.
        DownloadError: The hub cannot be reached, has no such model or revision, or does not let us have it.
    """
    directory = Path(wanted).expanduser()
    if wanted and directory.is_dir():
        if revision:
            raise ExportError(f"{wanted} is a directory, which has no revisions: leave --revision out")
        return SourceFolder(directory, directory.resolve().name, commit="")
    if not _HUB_ID.fullmatch(wanted):
        raise ExportError(f"{wanted!r} is neither a directory nor the id of a model of the hub (organisation/model)")
    return _download(wanted, revision)


def _download(hub_id: str, revision: str) -> SourceFolder:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - the extra `export` brings it; a directory does without
    from huggingface_hub.errors import (  # noqa: PLC0415 - as above
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        path = snapshot_download(
            hub_id, revision=revision or None, allow_patterns=_WANTED, ignore_patterns=_UNWANTED, max_workers=2
        )
    except GatedRepoError as error:
        raise DownloadError(f"{hub_id} is given out on request only: log in with an account that has access") from error
    except RepositoryNotFoundError as error:
        raise DownloadError(f"the hub has no model {hub_id!r} that this account can see") from error
    except RevisionNotFoundError as error:
        raise DownloadError(f"{hub_id} has no revision {revision!r}") from error
    except LocalEntryNotFoundError as error:
        raise DownloadError(
            f"the hub cannot be reached, and {hub_id} was not downloaded before; where there is a network run "
            f"`hf download {hub_id} --local-dir FOLDER`, then export FOLDER"
        ) from error
    except OSError as error:
        raise DownloadError(f"cannot download {hub_id}: {error}") from error
    # The cache keeps each commit in a directory of its name.
    commit = Path(path).name
    if not _COMMIT.fullmatch(commit):
        raise DownloadError(f"{hub_id} came without the commit it belongs to ({path})")
    return SourceFolder(Path(path), hub_id, commit)
