"""Settings of judges, and of the pictures that they are shown."""

import re
from dataclasses import field
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
    OptionalPrice,
    PositiveSeconds,
    Secret,
    Setting,
    group,
)

_HOST: Final = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]*(?::(?P<port>[1-9][0-9]{0,4}))?")
_MOST_PORT: Final = 65_535


def _hosts(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        named = _HOST.fullmatch(name)
        if named is None or int(named["port"] or 1) > _MOST_PORT:
            raise ValueError(f"{name!r} is no host: write images.example.org, or images.example.org:8443")
    return tuple(name.casefold() for name in names)


@dataclass(frozen=True, slots=True, config=group("Judge"))
class ImageConfig:
    """Limits of pictures. What is over one fails the metrics that show it, and no other."""

    max_count: Count = 8
    """Pictures of one item."""
    max_bytes: Bytes = 4 * MIB
    """File of one picture."""
    max_pixels: Count = 25_000_000
    """Width times height of one picture.

    One picture at a time is decoded, which takes four bytes a pixel."""
    hosts: Annotated[Names, AfterValidator(_hosts), Setting("judge_image_hosts")] = ()
    """Let the judge's server fetch pictures from these hosts (HOST[:PORT]).

    Empty: pictures as data only. Name hosts that the judge's server may reach."""


Backend = Literal["none", "embedded", "triton", "openai", "decisions"]
Form = Literal["auto", "int8", "gguf"]
Prefill = Literal["auto", "yes", "no"]
SeesImages = Literal["auto", "yes", "no"]


@dataclass(frozen=True, slots=True, config=group("Judge"))
class EmbeddedJudgeConfig:
    """Judges in a worker process on this machine."""

    repository: Annotated[Directory, Setting("judge_repository")]
    """Use the built judges in this directory.

    Unset: beside model_repository."""
    form: Form = "auto"
    """Format of the judge that runs; auto: int8 where it is built and exact on this processor.

    int8 runs in ONNX Runtime, gguf in llama.cpp."""
    threads: Annotated[Count, Setting("judge_threads")] = 1
    """Run the judge on this machine with this many threads.

    Raise it on a machine with spare cores; take them from workers."""
    nice: Annotated[int, Field(ge=0, le=19)] = 10
    """Nice level of the judge's process, so that encoders go first."""
    max_item_tokens: Annotated[Count, Setting("judge_max_item_tokens")] = 2048
    """Cut predictions so that the judge reads this many tokens of an item.

    Raise it for long answers: a run then takes more time and memory."""
    max_batch_tokens: int = 192
    """Tokens of the items of one run, beside the kept prompt."""
    start_timeout_s: float = 120.0
    """Longest wait for a worker to be ready."""
    max_prefix_states: int = 8
    """Fixed prompts whose state is kept, each about 60 KiB a token for a model of 1.5 B parameters."""
    max_prefix_tokens: int = 8192
    """Tokens of all kept fixed prompts together."""
    max_context_tokens: int = 4096
    """Longest prompt with its answer; never more than the model reads."""
    max_sequences: int = 8
    """Texts that are written, and long items that are read, at a time."""
    run_timeout_s: float = 30.0
    """Longest wait for one run, beside `token_timeout_s` for each token that it computes. A worker that takes longer
    hangs, is ended and started again."""
    token_timeout_s: float = 0.5


@dataclass(frozen=True, slots=True, config=group("Judge"))
class RemoteJudgeConfig:
    """A judge behind a server of its own."""

    url: Annotated[str, Setting("judge_url", everyday=True)] = ""
    """Ask the judge on this server (http://HOST:PORT/v1).

    HOST:PORT for a judge in Triton."""
    tls: Annotated[bool, Setting("judge_tls")] = field(default=False, kw_only=True)
    """Use TLS to the judge's Triton.

    Set it if that Triton is reached over a network."""
    token: Annotated[Secret, Setting("judge_token")] = field(default="", kw_only=True, repr=False)
    """Send this API key to the judge's server.

    Set it if the server asks for one."""
    model: Annotated[str, Setting("judge_remote_model")] = ""
    """Ask this model on the judge's server.

    Required with judge_url."""
    assistant_prefill: Annotated[Prefill, Setting("judge_assistant_prefill")] = "auto"
    """Begin the judge's answer for it. auto: if the server is known to go on from it.

    Set yes for a server other than vLLM and llama.cpp that goes on from a begun turn. Then keep it: it changes
    scores."""
    reasoning_tokens: Annotated[CountOrAuto, Setting("judge_reasoning_tokens")] = 0
    """Let the judge write this many tokens of thought before its answer.

    Set it for models that think, with judge_backend openai. It changes the judge's digest."""
    sees_images: Annotated[SeesImages, Setting("judge_sees_images")] = "auto"
    """Show pictures to the model on the judge's server. auto: if its list of models says so.

    Set yes for vLLM, whose list does not say it."""
    image_placeholder: str = ""
    """Text for a picture in the prompt of Triton's vLLM backend, which reads no chats; empty: Qwen's."""
    timeout_s: Annotated[PositiveSeconds, Setting("judge_timeout_s")] = 60.0
    """Give up an answer of the judge's server after this time.

    Raise it for models that think."""
    max_in_flight: Annotated[Count, Setting("judge_max_in_flight")] = 16
    """Send the judge's server this many requests at a time.

    Raise it until the server's GPU is busy; lower it to the provider's limit."""
    questions_per_request: Annotated[int, Field(ge=1, le=8), Setting("judge_questions_per_request")] = 1
    """Put this many questions about an item into one request (decision models).

    Raise it only for a server that answers each question as it does alone: others would change scores."""
    input_price: Annotated[OptionalPrice, Setting("judge_input_price")] = None
    """Price of a million tokens that the judge reads.

    Set both prices to see cost in metrics and summaries; no score changes."""
    output_price: Annotated[OptionalPrice, Setting("judge_output_price")] = None
    """Price of a million tokens that the judge writes.

    Set it with judge_input_price."""
    attempts: int = 4
    """Attempts of one request."""
    max_prompt_characters: int = 24_000
    """Longer prompts are cut at the prediction, since only the server counts tokens."""


def _embedded() -> Backend:
    return "embedded"


@dataclass(frozen=True, slots=True, config=group("Judge"))
class JudgeConfig:
    """The place where judges run, and the default judge."""

    backend: Annotated[Backend, Setting("judge_backend", default=_embedded, everyday=True)] = "none"
    """Ask a judge of this kind: in a process here (embedded), on a server, or none at all.

    Use openai for vLLM, llama.cpp or a provider, decisions for a decision model."""
    default: Annotated[str, Setting("judge_model")] = ""
    """Use this judge for requests that name none.

    Empty: the catalog's default, or the model of judge_remote_model."""
    preload: Annotated[bool, Setting("judge_preload")] = False
    """Load the judge at start, not at its first use.

    Set it if the first judged request must not wait."""
    max_queue_items: Count = 4096
    """Questions that may wait for a judge; further ones fail with the time to try again."""
    embedded: EmbeddedJudgeConfig | None = None
    """For backend embedded."""
    host: str = ""
    """For backend embedded: ``unix:PATH`` of the process that runs the judges of several server processes; empty: this
    one does."""
    remote: RemoteJudgeConfig | None = None
    """For backends triton, openai and decisions."""
    images: ImageConfig = field(default_factory=ImageConfig)
    """Which pictures judges are shown."""

    def __post_init__(self) -> None:
        if self.backend == "embedded" and self.embedded is None:
            raise ValueError("judge_backend embedded needs to know where judges are built")
        if self.backend in {"triton", "openai", "decisions"} and (self.remote is None or not self.remote.url):
            raise ValueError(f"judge_backend {self.backend} needs judge_url, the address of its server")
        if self.backend == "triton" and self.remote is not None and self.remote.reasoning_tokens:
            raise ValueError("judge_reasoning_tokens is for judge_backend openai: Triton's judge answers at once")
        if self.backend == "decisions" and self.remote is not None:
            if self.remote.reasoning_tokens:
                raise ValueError("judge_reasoning_tokens is for judge_backend openai: a decision model writes nothing")
            if self.remote.assistant_prefill == "yes":
                raise ValueError("judge_assistant_prefill is for judge_backend openai: a decision model writes nothing")
        if self.remote is not None and not self.remote.model:
            raise ValueError(f"judge_backend {self.backend} needs judge_remote_model, the model's name on its server")
        if self.remote is not None and self.default not in {"", self.remote.model}:
            raise ValueError("judge_model and judge_remote_model name different models: leave judge_model empty")
