"""Opens a judge of this machine: reads its tokenizer, starts its worker, asks it something."""

import asyncio

from gradewire_models.judges import BuiltJudge, Form
from gradewire_server.domain.judge import Generate, JudgePrompt, Role, Turn
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.domain.result import Failure
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.judges.local.chat import open_chat_tokenizer
from gradewire_server.judges.local.judge import EmbeddedJudge
from gradewire_server.judges.local.queue import EmbeddedQueue, QueueLimits
from gradewire_server.judges.local.run_loop import RunLoop
from gradewire_server.judges.local.supervisor import WorkerSupervisor, WorkerTimeouts
from gradewire_server.judges.observers import LocalJudgeObserver
from gradewire_server.judges.worker.messages import OpenModel
from gradewire_server.settings.judge import EmbeddedJudgeConfig

_WARM_UP = JudgePrompt((Turn(Role.SYSTEM, "Answer."),), "Ready?")


async def open_judge(
    status: ModelStatus, built: BuiltJudge, form: Form, config: EmbeddedJudgeConfig, observer: LocalJudgeObserver
) -> EmbeddedJudge:
    """Opens a judge and has it answer once.

    Args:
        status: How it is shown.
        built: Its files.
        form: Which of its forms runs.
        config: How it is run.
        observer: Hears of its runs.

    Raises:
        ModelRefusedError: The worker cannot open the model, or (LibraryMissingError) lacks what would compute it.
        WorkerLostError: The worker ended, or was not ready in time.
        JudgeUnavailableError: It does not answer.
        OSError, ValueError: The tokenizer cannot be read, or the chat template is not known.
    """
    tokenizer = await asyncio.to_thread(open_chat_tokenizer, built, config)
    context_tokens = tokenizer.limits.context
    model = OpenModel(
        form=form,
        path=str(built.onnx_path if form == "int8" else built.gguf_path),
        threads=config.threads,
        context_tokens=context_tokens,
        max_states=config.max_prefix_states,
        nice=config.nice,
    )
    supervisor = WorkerSupervisor(
        model,
        WorkerTimeouts(config.start_timeout_s, config.run_timeout_s, config.token_timeout_s),
        restarted=observer.restarted,
    )
    await supervisor.start()
    queue = EmbeddedQueue(
        QueueLimits(
            max_run_tokens=config.max_batch_tokens,
            max_growing=config.max_sequences,
            max_growing_tokens=context_tokens,
            max_prefixes=config.max_prefix_states,
            max_prefix_tokens=config.max_prefix_tokens,
        ),
        supervisor.limits,
    )
    judge = EmbeddedJudge(status, tokenizer, RunLoop(supervisor, queue, observer))
    try:
        await _warm_up(judge)
    except BaseException:
        await judge.close()
        raise
    return judge


async def _warm_up(judge: EmbeddedJudge) -> None:
    # Its first run allocates and packs memory: no caller is to wait for that, nor for a judge that cannot answer.
    reply = await judge.generate(Generate("", _WARM_UP, max_tokens=2))
    if isinstance(reply.answer, Failure):
        raise JudgeUnavailableError(reply.answer)
