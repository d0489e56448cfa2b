"""Gets a judge of this machine ready: starts its worker, reads its tokenizer, asks it something."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from gradewire_models.judges import Form
from gradewire_server.domain.judge import Generate, JudgePrompt, Role, Turn
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.domain.result import Failure
from gradewire_server.judges.local.chat import ChatTokenizer, PromptLimits
from gradewire_server.judges.local.judge import EmbeddedJudge
from gradewire_server.judges.local.observer import JudgeObserver
from gradewire_server.judges.local.queue import EmbeddedQueue, QueueLimits
from gradewire_server.judges.local.supervisor import Patience, WorkerKeeper
from gradewire_server.judges.source import JudgeUnavailableError
from gradewire_server.judges.worker.messages import OpenModel
from gradewire_server.settings.judge import EmbeddedJudgeConfig

_WARM_UP = JudgePrompt((Turn(Role.SYSTEM, "Answer."),), "Ready?")


@dataclass(frozen=True, slots=True)
class JudgeFiles:
    """One form of a built judge.

    Attributes:
        form: Which core runs it.
        model_path: model.onnx or the GGUF file.
        tokenizer_path: tokenizer.json.
        chat_template: Of `chat_templates.TEMPLATES`.
        context_tokens: What the model reads at most.
        eos_ids: Tokens that end its turn.
    """

    form: Form
    model_path: Path
    tokenizer_path: Path
    chat_template: str
    context_tokens: int
    eos_ids: tuple[int, ...]


async def open_judge(
    status: ModelStatus, files: JudgeFiles, config: EmbeddedJudgeConfig, observer: JudgeObserver
) -> EmbeddedJudge:
    """A judge that answers.

    Raises:
        ModelRefusedError: The worker cannot open the model, or (LibraryMissingError) lacks what would compute it.
        WorkerLostError: The worker ended, or was not ready in time.
        JudgeUnavailableError: It does not answer.
        OSError, ValueError: The tokenizer cannot be read, or the chat template is not known.
    """
    context_tokens = min(files.context_tokens, config.max_context_tokens)
    limits = PromptLimits(min(config.max_item_tokens, context_tokens), context_tokens)
    tokenizer = await asyncio.to_thread(
        ChatTokenizer, files.tokenizer_path, template=files.chat_template, eos_ids=files.eos_ids, limits=limits
    )
    model = OpenModel(
        form=files.form,
        path=str(files.model_path),
        threads=config.threads,
        context_tokens=context_tokens,
        max_states=config.max_prefix_states,
        nice=config.nice,
    )
    keeper = WorkerKeeper(
        model,
        Patience(config.start_timeout_s, config.run_timeout_s, config.token_timeout_s),
        restarted=observer.restarted,
    )
    await keeper.start()
    queue = EmbeddedQueue(
        QueueLimits(
            max_run_tokens=config.max_batch_tokens,
            max_growing=config.max_sequences,
            max_growing_tokens=context_tokens,
            max_prefixes=config.max_prefix_states,
            max_prefix_tokens=config.max_prefix_tokens,
        ),
        keeper.limits,
    )
    judge = EmbeddedJudge(status, tokenizer, keeper, queue, observer)
    try:
        await _warm_up(judge)
    except BaseException:
        await judge.close()
        raise
    return judge


async def _warm_up(judge: EmbeddedJudge) -> None:
    # Its first run allocates and packs; nobody shall wait for that, nor for a judge that cannot answer.
    answer, _ = await judge.generate(Generate("", _WARM_UP, max_tokens=2), deadline_s=None)
    if isinstance(answer, Failure):
        raise JudgeUnavailableError(answer)
