"""SmolLM2 as a built judge: too small to judge, big enough to show how a judge is built and run.

`make test` runs this file before the tests, so that the download counts as no test's time.
"""

from functools import cache
from pathlib import Path

import platformdirs

from gradewire_models.judges.build.install import build_judge
from gradewire_models.judges.catalog import find_judge
from gradewire_models.judges.repository import load_judge

NAME = "smollm2-135m-instruct"


@cache
def smollm2_repository() -> Path:
    """Repository that holds SmolLM2 in both forms; built once per machine (93 MB), every byte checked once per process.

    Processes that come together wait for the one that builds.
    """
    # Older checkouts on this machine share "judges" and would trip over the files for Triton.
    repository = platformdirs.user_cache_path("gradewire") / "tests" / "judges-2"
    build_judge(find_judge(NAME), repository, forms=("int8", "gguf"), keep_downloads=True)
    return repository


def smollm2_gguf() -> Path:
    """Its GGUF file, for other programs that read such files."""
    path = load_judge(smollm2_repository(), NAME).gguf_path
    assert path is not None
    return path


if __name__ == "__main__":
    smollm2_repository()
