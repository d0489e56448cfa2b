"""Everything that the engine needs to know: models, and how and where they run."""

from dataclasses import field
from typing import Annotated

from pydantic.dataclasses import dataclass

from gradewire_server.settings.cache import CacheConfig
from gradewire_server.settings.compute import ComputeConfig, GpuConfig
from gradewire_server.settings.judge import JudgeConfig
from gradewire_server.settings.setting import GROUP, Setting
from gradewire_server.settings.triton import TritonConfig
from gradewire_server.settings.types import Directory, Names, OptionalDirectory


@dataclass(frozen=True, slots=True, config=GROUP)
class EngineConfig:
    """Groups of the encoders, the stores and the judges."""

    model_repository: Annotated[
        Directory, Setting("model_repository", "Directory of built models; empty: where they are built.")
    ]
    default_model: Annotated[
        str, Setting("default_model", "Encoder of requests that name none; empty: the catalog's default.")
    ] = ""
    preload: Annotated[Names, Setting("preload", "Further models to load at start, not at first use.")] = ()
    triton: TritonConfig | None = None
    """Where encoders run; None: in this process."""
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    gpu: GpuConfig = field(default_factory=GpuConfig)
    wordnet_directory: Annotated[
        OptionalDirectory,
        Setting("wordnet_directory", "WordNet's files, for meteor; unset: the usual places."),
    ] = None
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
