"""Settings for judges and for the pictures in their prompts."""

import re
from dataclasses import field
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from gradewire_server.settings.setting import (
    MIB,
    Bytes,
    Count,
    CountOrAuto,
    Directory,
    Names,
    PositiveSeconds,
    Prices,
    Secret,
    Setting,
    group,
)

_HOST: Final = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]*(?::(?P<port>[1-9][0-9]{0,4}))?")
_MOST_PORT: Final = 65_535


_DEVICE: Final = re.compile(r"cpu|cuda(:\d{1,3})?")


def _check_device(device: str) -> str:
    if _DEVICE.fullmatch(device) is None:
        raise ValueError("judge_device must be cpu, cuda or cuda:N, where N is a GPU's index from 0")
    return device


def _hosts(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        named = _HOST.fullmatch(name)
        if named is None or int(named["port"] or 1) > _MOST_PORT:
            raise ValueError(f"{name!r} is not a host: write images.example.org or images.example.org:8443")
    return tuple(name.casefold() for name in names)


@dataclass(frozen=True, slots=True, config=group("Judge"))
class ImageConfig:
    """Limits for pictures. A picture over a limit fails only the metrics that show pictures to a judge."""

    max_count: Count = 8
    """Maximum number of pictures per item."""
    max_bytes: Bytes = 4 * MIB
    """Maximum size of a picture's file."""
    max_pixels: Count = 25_000_000
    """Maximum width times height of a picture.

    The server decodes one picture at a time, at four bytes a pixel."""
    hosts: Annotated[Names, AfterValidator(_hosts), Setting("judge_image_hosts")] = ()
    """Let the judge's server fetch pictures from these hosts (HOST[:PORT]). If empty, callers must send picture data.

    Set it if callers send picture URLs. Name only hosts that the judge's server may access."""


Backend = Literal["none", "embedded", "triton", "openai", "decisions"]
Form = Literal["auto", "int8", "gguf", "fp16", "int4"]
Prefill = Literal["auto", "yes", "no"]
SeesImages = Literal["auto", "yes", "no"]


@dataclass(frozen=True, slots=True, config=group("Judge"))
class EmbeddedJudgeConfig:
    """Judges in a worker process on this machine."""

    repository: Annotated[Directory, Setting("judge_repository")]
    """Use this directory of built judges. If unset, use judges next to the model repository.

    Set it for a mounted directory."""
    form: Form = "auto"
    """The judge's model format. auto means int8 if that format is built and exact on this processor, otherwise gguf;
    on a GPU, auto means fp16 if that format is built, otherwise int4.

    gguf runs in llama.cpp, all others in ONNX Runtime."""
    device: Annotated[str, AfterValidator(_check_device), Setting("judge_device")] = "cpu"
    """Device for a judge on this machine: cpu, cuda or cuda:N, where N is a GPU's index from 0.

    With cuda, the judge needs its form fp16 or int4 (gradewire models build NAME --target gpu). Not tried on a GPU."""
    threads: Annotated[Count, Setting("judge_threads")] = 1
    """Number of threads for a judge on this machine.

    Raise it if the machine has spare cores; otherwise lower workers to free some."""
    nice: Annotated[int, Field(ge=0, le=19)] = 10
    """Nice level of the judge's process, so that encoders have priority."""
    max_item_tokens: Annotated[Count, Setting("judge_max_item_tokens")] = 2048
    """Maximum number of tokens per item that the judge reads. Longer predictions are shortened.

    Raise it for long answers. Each run then needs more time and memory."""
    max_batch_tokens: int = 192
    """Maximum number of item tokens in one run on a CPU, without the prompt tokens whose state is cached."""
    max_gpu_batch_tokens: int = 8192
    """Maximum number of item tokens in one run on a GPU."""
    start_timeout_s: float = 120.0
    """Timeout for a worker to become ready."""
    max_prefix_states: int = 8
    """Maximum number of cached fixed prompts. Each needs about 60 KiB a token in a model with 1.5 B parameters."""
    max_prefix_tokens: int = 8192
    """Maximum number of tokens in all cached fixed prompts together."""
    max_context_tokens: int = 4096
    """Maximum number of tokens in a prompt and its answer together. The model's own limit also applies."""
    max_sequences: int = 8
    """Maximum number of answers that the judge writes in parallel, and of long items that it reads in parallel."""
    run_timeout_s: float = 30.0
    """Timeout for one run, extended by `token_timeout_s` for each token. After the timeout, the worker is restarted."""
    token_timeout_s: float = 0.5

    def __post_init__(self) -> None:
        if self.on_gpu and self.form in {"int8", "gguf"}:
            raise ValueError(f"judge_device {self.device} needs the judge's form fp16 or int4, not {self.form}")

    @property
    def on_gpu(self) -> bool:
        """True if the judge runs on a GPU."""
        return self.device != "cpu"


@dataclass(frozen=True, slots=True, config=group("Judge"))
class RemoteJudgeConfig:
    """A judge on a remote server."""

    url: Annotated[str, Setting("judge_url", everyday=True)] = field(default="", repr=False)
    """Use the judge on this server (http://HOST:PORT/v1). For Triton, set HOST:PORT, or grpcs://HOST:PORT for TLS.

    Set it with judge_backend openai, decisions or triton."""
    token: Annotated[Secret, Setting("judge_token")] = field(default="", kw_only=True, repr=False)
    """Send this API key to the judge's server.

    Set it if the server requires a key."""
    model: Annotated[str, Setting("judge_remote_model")] = ""
    """Use this model on the judge's server.

    Set it together with judge_url."""
    assistant_prefill: Annotated[Prefill, Setting("judge_assistant_prefill")] = "auto"
    """Send the first words of the judge's answer with the prompt. auto does so for servers known to continue them.

    Set yes if a server other than vLLM or llama.cpp continues a partial answer. Changing it later changes scores."""
    reasoning_tokens: Annotated[CountOrAuto, Setting("judge_reasoning_tokens")] = 0
    """Let the judge write up to this many reasoning tokens before its answer.

    Set it for reasoning models with judge_backend openai. It changes the judge's digest."""
    sees_images: Annotated[SeesImages, Setting("judge_sees_images")] = "auto"
    """Show pictures to the judge. auto does so if the server's model list marks the model as able to read pictures.

    Set yes for vLLM, because its model list lacks this mark."""
    image_placeholder: str = ""
    """String that marks a picture in prompts for Triton's vLLM backend. If empty, Qwen's placeholder is used."""
    timeout_s: Annotated[PositiveSeconds, Setting("judge_timeout_s")] = 60.0
    """Timeout for one answer from the judge's server.

    Raise it for reasoning models."""
    max_in_flight: Annotated[Count, Setting("judge_max_in_flight")] = 16
    """Maximum parallel requests to the judge's server, from all processes.

    Raise it until the server's GPU is busy; lower it to the provider's limit."""
    questions_per_request: Annotated[int, Field(ge=1, le=8), Setting("judge_questions_per_request")] = 1
    """Maximum number of questions about an item per request (decision models).

    Raise it only if the server answers each question independently of the others. Otherwise, scores change."""
    prices: Annotated[Prices, Setting("judge_prices")] = None
    """Prices of a million tokens that the judge reads and writes. Put a comma between them: 0.15,0.60.

    Set them to see costs in metrics and summaries. They change no score."""
    attempts: int = 4
    """Maximum number of attempts per request."""
    places_file: Path | None = None
    """File with the places of `max_in_flight` if several processes share them; otherwise None."""
    processes: int = 1
    """Number of processes that share `places_file`."""
    max_prompt_characters: int = 24_000
    """Maximum length of a prompt. If the prompt is longer, its prediction is shortened.

    The limit is in characters because only the judge's server can count tokens."""


def _embedded() -> Backend:
    return "embedded"


@dataclass(frozen=True, slots=True, config=group("Judge"))
class JudgeConfig:
    """The judge backend and the default judge."""

    backend: Annotated[Backend, Setting("judge_backend", default=_embedded, everyday=True)] = "none"
    """Use this judge backend: embedded (on this machine), a remote one (triton, openai or decisions), or none.

    Use openai for vLLM, llama.cpp or a provider, and decisions for a decision model."""
    default: Annotated[str, Setting("judge_model")] = ""
    """Use this judge for requests that name none. If empty, use judge_remote_model or else the catalog's default.

    Set it to change the judge for all callers."""
    preload: bool = False
    """Load the judge at start, not at its first use."""
    max_queue_items: Count = 4096
    """Maximum number of questions that wait for a judge. Further questions fail with a retry delay."""
    embedded: EmbeddedJudgeConfig | None = None
    """Settings for the embedded backend."""
    host: str = ""
    """The judge host's address (``unix:PATH``) if there are several server processes; otherwise empty."""
    remote: RemoteJudgeConfig | None = None
    """Settings for the backends triton, openai and decisions."""
    images: ImageConfig = field(default_factory=ImageConfig)
    """Limits for the pictures that judges see."""

    def __post_init__(self) -> None:
        if self.backend == "embedded" and self.embedded is None:
            raise ValueError("judge_backend embedded needs judge_repository, the directory of the built judges")
        if self.backend in {"triton", "openai", "decisions"} and (self.remote is None or not self.remote.url):
            raise ValueError(f"judge_backend {self.backend} needs judge_url, the address of its server")
        if self.backend == "triton" and self.remote is not None and self.remote.reasoning_tokens:
            raise ValueError("judge_reasoning_tokens needs judge_backend openai: Triton's judge does not reason")
        if self.backend == "decisions" and self.remote is not None:
            if self.remote.reasoning_tokens:
                raise ValueError("judge_reasoning_tokens needs judge_backend openai: a decision model writes no text")
            if self.remote.assistant_prefill == "yes":
                raise ValueError("judge_assistant_prefill needs judge_backend openai: a decision model writes no text")
        if self.remote is not None and not self.remote.model:
            raise ValueError(f"judge_backend {self.backend} needs judge_remote_model, the model's name on its server")
        if self.remote is not None and self.default not in {"", self.remote.model}:
            raise ValueError("judge_model and judge_remote_model name different models: leave judge_model empty")
