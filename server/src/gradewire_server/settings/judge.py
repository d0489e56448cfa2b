"""How judges are run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Backend = Literal["none", "embedded", "triton", "openai"]
Form = Literal["auto", "int8", "gguf"]
Prefill = Literal["auto", "yes", "no"]


@dataclass(frozen=True, slots=True)
class EmbeddedJudgeConfig:
    """Judges in a worker process on this machine.

    Attributes:
        repository: Directory of built judges.
        form: Which form of a judge runs: int8 (ONNX Runtime), gguf (llama.cpp), or auto: int8 where it is built and
            the processor computes it well.
        threads: Of the worker process.
        max_batch_tokens: Tokens of the items of one run, beside the kept prompt.
        start_timeout_s: Longest wait for a worker to be ready.
        max_prefix_states: Fixed prompts whose state is kept, each about 60 KiB a token for a model of 1.5 B parameters.
        max_prefix_tokens: Of all kept fixed prompts together.
        max_item_tokens: Longest item, its fixed prompt left out; longer ones are cut at the prediction.
        max_context_tokens: Longest prompt with its answer; never more than the model reads.
        max_sequences: Texts that are written, and long items that are read, at a time.
        run_timeout_s, token_timeout_s: Longest wait for one run: so much, and so much more for each token that it
            computes. A worker that takes longer hangs, is ended and started again.
        nice: Added to the worker's nice level, 0 to 19: encoders, which have to be quick, go first.
    """

    repository: Path
    form: Form = "auto"
    threads: int = 1
    max_batch_tokens: int = 192
    start_timeout_s: float = 120.0
    max_prefix_states: int = 8
    max_prefix_tokens: int = 8192
    max_item_tokens: int = 2048
    max_context_tokens: int = 4096
    max_sequences: int = 8
    run_timeout_s: float = 30.0
    token_timeout_s: float = 0.5
    nice: int = 5


@dataclass(frozen=True, slots=True)
class RemoteJudgeConfig:
    """A judge behind a server of its own.

    Attributes:
        url: openai: base URL of the API ("https://host/v1"); triton: HOST:PORT of its gRPC.
        model: The model's name there.
        token: API key or bearer token; empty for none.
        timeout_s: Longest wait for one answer.
        max_in_flight: Requests on their way at a time.
        attempts: How often one request is tried.
        max_prompt_characters: Longer prompts are cut at the prediction, since only the server counts tokens.
        assistant_prefill: openai: whether the server goes on from an assistant's turn that the request begins; auto
            asks it what it is: vLLM and llama.cpp do, others do not.
        tls: triton: whether to speak TLS.
        input_price, output_price: Of a million tokens, in whatever currency, for the cost counter.
    """

    url: str
    model: str
    token: str = field(default="", repr=False)
    timeout_s: float = 60.0
    max_in_flight: int = 16
    attempts: int = 4
    max_prompt_characters: int = 24_000
    assistant_prefill: Prefill = "auto"
    tls: bool = False
    input_price: float = 0.0
    output_price: float = 0.0


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """All of it.

    Attributes:
        backend: Where judges run; none: nowhere.
        default: Judge that "" stands for; empty: the catalog's, or the remote model.
        preload: Whether the default judge is loaded at start, not at its first use.
        max_queue_items: Needs that may wait for the judge; further ones fail with UNAVAILABLE and a retry hint.
        embedded: For backend embedded.
        remote: For backends triton and openai.
    """

    backend: Backend = "none"
    default: str = ""
    preload: bool = False
    max_queue_items: int = 4096
    embedded: EmbeddedJudgeConfig | None = None
    remote: RemoteJudgeConfig | None = None

    def __post_init__(self) -> None:
        if self.max_queue_items < 1:
            raise ValueError("judge_max_queue_items must be 1 or more")
        if self.backend == "embedded" and self.embedded is None:
            raise ValueError("judge_backend embedded needs to know where judges are built")
        if self.backend in {"triton", "openai"} and (self.remote is None or not self.remote.url):
            raise ValueError(f"judge_backend {self.backend} needs judge_url, the address of its server")
        if self.remote is not None and not self.remote.model:
            raise ValueError(f"judge_backend {self.backend} needs judge_remote_model, the model's name on its server")
        if self.remote is not None and self.default not in {"", self.remote.model}:
            raise ValueError("judge_model and judge_remote_model name different models: leave judge_model empty")
