"""Serve judges with this machine's vLLM: models of the user, or drawn weights in the shapes of Qwen2.5."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from benchmarks.common.ports import free_port
from benchmarks.gpu.judge_sizes import LARGE, SMALL, TINY
from tokenizers import Tokenizer

from gradewire_models.judges.build.shapes import Sizes

STOP_S: Final = 5.0
NAME: Final = "judge"
_ROOT: Final = Path(__file__).resolve().parents[2]
_PACKED_SITE: Final = _ROOT / ".gpu-pack" / "vllm-site"
_GIB: Final = 1 << 30
_POLL_S: Final = 0.25
# Ignore the user's proxy, because the server is on this machine.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_OPTIONS: Final = {
    "--host": "127.0.0.1",
    "--served-model-name": NAME,
    # A `lave` prompt has less than 1 000 tokens. A higher limit would reserve memory that batches need.
    "--max-model-len": "4096",
}
_ALONE: Final = {"--gpu-memory-utilization": "0.6"}


@dataclass(frozen=True, slots=True)
class JudgeServer:
    """An OpenAI-compatible server."""

    url: str
    model: str


@dataclass(frozen=True, slots=True)
class DrawnModel:
    """A model with drawn weights.

    Attributes:
        tied: True if the head's weights are those of the word table.
        cache_gib: Memory for keys and values. A fixed size lets two servers start on one card at the same time, because
            vLLM then measures no free memory.
    """

    name: str
    sizes: Sizes
    tied: bool
    cache_gib: int

    def options(self) -> dict[str, str]:
        """Return vLLM's options for the model."""
        return {
            "--load-format": "dummy",
            # Drawn weights give labels no probability before the choice of labels is enforced.
            "--logprobs-mode": "processed_logprobs",
            "--enforce-eager": "",  # recording graphs would take longer than the measurement
            "--kv-cache-memory-bytes": str(self.cache_gib * _GIB),
            "--gpu-memory-utilization": "0.1",
        }


DRAWN_MODELS: Final = (
    DrawnModel("1.5 B", SMALL, tied=True, cache_gib=6),
    DrawnModel("7 B", LARGE, tied=False, cache_gib=12),
)
TINY_MODELS: Final = (DrawnModel("tiny", TINY, tied=True, cache_gib=1),)


def write_model(model: DrawnModel, tokenizer: Path, directory: Path) -> None:
    """Write a model's description and its tokenizer, without weights, for ``--load-format dummy``.

    Any tokenizer gives the same speed, so that of an encoder will do.
    """
    directory.mkdir(parents=True, exist_ok=True)
    words = Tokenizer.from_file(str(tokenizer))
    words.no_padding()
    words.no_truncation()
    words.save(str(directory / "tokenizer.json"))
    end, sizes = words.token_to_id("[SEP]"), model.sizes
    description = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": sizes.architecture,
        "num_hidden_layers": sizes.layers,
        "hidden_size": sizes.dims,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "intermediate_size": sizes.feed_forward_dims,
        "rms_norm_eps": sizes.norm_epsilon,
        "rope_theta": sizes.rope_base,
        "max_position_embeddings": sizes.context_tokens,
        "vocab_size": sizes.vocabulary,
        "hidden_act": "silu",
        "tie_word_embeddings": model.tied,
        "torch_dtype": "bfloat16",
        "bos_token_id": end,
        "eos_token_id": end,
    }
    (directory / "config.json").write_text(json.dumps(description, indent=1), "utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "[SEP]",
        "pad_token": "[PAD]",
        "model_max_length": sizes.context_tokens,
        "chat_template": "{% for message in messages %}{{ message['content'] }}\n{% endfor %}",
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), "utf-8")


def vllm_command() -> list[str]:
    """Return the command that serves a model: the pack's vLLM, `vllm`, or this Python's module; [] without vLLM."""
    module = [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve"]
    if (_PACKED_SITE / "vllm").is_dir():
        return module
    command = shutil.which("vllm")
    if command is not None:
        return [command, "serve"]
    return module if importlib.util.find_spec("vllm") is not None else []


class Vllm:
    """A vLLM that starts or runs."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: IO[str]) -> None:
        self._process = process
        self._address = f"http://127.0.0.1:{port}"
        self._log = log

    def wait(self, seconds: float) -> JudgeServer:
        """Wait until the server is healthy.

        Raises:
            RuntimeError: vLLM stopped, or was not healthy in time; the message contains the end of its log.
        """
        ends_s = time.monotonic() + seconds
        while True:
            if self._process.poll() is not None:
                raise RuntimeError(f"vLLM stopped with exit status {self._process.returncode}: {self._end_of_log()}")
            try:
                with _OPENER.open(f"{self._address}/health", timeout=5):
                    return JudgeServer(f"{self._address}/v1", NAME)
            except OSError:  # not ready: nothing listens on the port, or the reply is 503
                if time.monotonic() > ends_s:
                    raise RuntimeError(f"vLLM is not healthy after {seconds:.0f} s: {self._end_of_log()}") from None
            time.sleep(_POLL_S)

    def _end_of_log(self) -> str:
        self._log.seek(0)
        return self._log.read()[-300:]


@contextmanager
def vllm_started(command: Sequence[str], weights: Path, drawn: DrawnModel | None = None) -> Iterator[Vllm]:
    """Start vLLM for a model's directory, without waiting for it, and stop it with all its processes."""
    port = free_port()
    options = _OPTIONS | (_ALONE if drawn is None else drawn.options()) | {"--port": str(port)}
    arguments = [*command, str(weights), *(text for pair in options.items() for text in pair if text)]
    with (
        tempfile.TemporaryFile("w+") as log,
        # A separate session puts all vLLM processes in one group, which has the first process's ID.
        subprocess.Popen(
            arguments, stdout=log, stderr=subprocess.STDOUT, env=_environment(), start_new_session=True
        ) as process,
    ):
        try:
            yield Vllm(process, port, log)
        finally:
            _end(process)


def _environment() -> dict[str, str]:
    # vLLM must not import a pack's other packages, because it needs other versions.
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [each for each in path if each and not Path(each).resolve().is_relative_to(_ROOT)]
    packed = [str(_PACKED_SITE)] if _PACKED_SITE.is_dir() else []
    here = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "PYTHONPATH": os.pathsep.join(packed + others)}
    return {**os.environ, **here}


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
    with suppress(ProcessLookupError):  # usually, vLLM has already stopped its processes
        os.killpg(process.pid, signal.SIGKILL)
