"""A callback and `compute_metrics` for Hugging Face's Trainer."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradewire.errors import InvalidRequest, needed_by
from gradewire.integrations.training.sinks import available_sinks
from gradewire.integrations.training.steps import ESTIMATES, StepScores, StepState
from gradewire.integrations.training.validation import ValidationScorer, ValidationSettings

with needed_by("ValidationCallback", "gradewire[transformers]"):
    import numpy as np
    import torch
    from transformers import TrainerCallback

_IGNORED_ID = -100
"""The token ID with which the Trainer pads shorter sequences."""

Answers = Callable[[Any], Sequence[str]]


class ValidationCallback(TrainerCallback):  # type: ignore[misc]  # transformers is optional: mypy runs without it
    """A callback that submits each evaluation's answers, and logs scores under their step when they arrive.

    There are two ways to get answers. A `Seq2SeqTrainer` with `predict_with_generate` passes them to `compute_metrics`
    (`Seq2SeqTrainer(…, compute_metrics=callback.compute_metrics, callbacks=[callback])`). For any other trainer, pass
    `answers`, a function that the callback calls after each evaluation.

    The callback writes scores to the sinks and, with the key `eval_LABEL`, to `state.log_history` (and so to
    `trainer_state.json`). In distributed training, only the first process submits answers. With `wait_s`,
    each evaluation's metrics contain the first process's scores on all processes.

    Args:
        settings: Settings for the scorer. The default sinks are `available_sinks(directory)`.
        rows: The evaluation's rows in order: mappings with references and usually a question.
        processing_class: A tokenizer or processor whose `batch_decode` decodes predictions; `compute_metrics` needs it.
        answers: A function that returns an answer for each row, given the model.
        name: The data set's name; sinks log scores under it.
        wait_s: Maximum time that an evaluation waits for its scores, in seconds. Set `wait_s` if a score is the
            `metric_for_best_model`, for example "eval_correctness".
        close_s: Maximum number of seconds to wait for scores when the training ends, if the server answers.
    """

    def __init__(  # noqa: PLR0913 - most are optional and named
        self,
        settings: ValidationSettings,
        rows: Sequence[Mapping[str, Any]],
        *,
        processing_class: Any = None,
        answers: Answers | None = None,
        name: str = "eval",
        wait_s: float = 0.0,
        close_s: float = 60.0,
    ) -> None:
        self._settings, self._rows, self._name = settings, rows, name
        self._processing_class, self._answers = processing_class, answers
        self._wait_s, self._close_s = wait_s, close_s
        self._late: deque[StepScores] = deque()
        self._returned: set[int] = set()
        self._state: Any = None
        self.scorer: ValidationScorer | None = None

    def compute_metrics(self, prediction: Any) -> dict[str, float]:
        """Submit the generated answers.

        Args:
            prediction: The Trainer's `EvalPrediction`; its predictions are token IDs [rows, tokens].

        Returns:
            With `wait_s`, `LABEL` and `LABEL_not_scored`: each metric's mean and its share of rows without a score. A
            metric with verdicts also has `LABEL_share_right`. The bounds of the 95 % intervals end in `_low` and
            `_high`. If the scores are late, the estimates are NaN and the share of rows without a score is 1.
            Without `wait_s`, an empty dictionary, because scores arrive later.

        Raises:
            InvalidRequest: The predictions are not token IDs, or their number differs from the number of `rows`.
        """
        answers = self._decoded(prediction.predictions)
        if _is_distributed():
            # The Trainer repeats the first rows after the last row, so that all processes get equally many rows.
            answers = answers[: len(self._rows)]
        self._submit(answers)
        return _of_first_process(self._waited_for()) if self._wait_s else {}

    def on_init_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Keep the trainer's state, which contains the step."""
        self._state = state

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Keep the trainer's new state, because resuming from a checkpoint replaces the state."""
        self.on_init_end(args, state, control, **kwargs)

    def on_evaluate(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Get answers if `answers` is given, and log the scores that have arrived.

        With `wait_s`, add the scores to the evaluation's metrics, from which the trainer chooses the best model.
        """
        self.on_init_end(args, state, control, **kwargs)
        if self._answers is not None:
            if state.is_world_process_zero:
                self._submit(self._answers(model))
            if self._wait_s:
                waited = _of_first_process(self._waited_for())
                kwargs.get("metrics", {}).update({f"eval_{name}": value for name, value in waited.items()})
                self._returned.discard(self._step)  # the trainer has already logged its metrics, without the scores
        self._log_late(state)

    def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Log the scores that have arrived."""
        self._log_late(state)

    def on_train_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Wait for scores, log them and release the directory, which keeps unscored steps for the next run."""
        self.close()
        self._log_late(state)

    def close(self) -> None:
        """Wait for scores and release the directory. Call this after evaluations that follow the end of training."""
        scorer, self.scorer = self.scorer, None
        if scorer is not None:
            scorer.close(self._close_s)

    def _submit(self, answers: Sequence[str]) -> None:
        if len(answers) != len(self._rows):
            raise InvalidRequest(
                f"there are {len(answers)} answers for {len(self._rows)} rows: give the rows that you evaluate"
            )
        if self._state is not None and not self._state.is_world_process_zero:
            return
        if self.scorer is None:
            # Create the scorer only now, because the trackers in `report_to` start their runs when the training starts.
            settings = self._settings
            self.scorer = settings.make_scorer(self._late.append, lambda: available_sinks(settings.directory))
        items = [{**row, "prediction": answer} for row, answer in zip(self._rows, answers, strict=True)]
        self.scorer.submit(self._step, items, self._name)

    @property
    def _step(self) -> int:
        return 0 if self._state is None else int(self._state.global_step)

    def _waited_for(self) -> dict[str, float]:
        """Return the step's values. If the scores are late, return NaN, which never becomes the best."""
        if self.scorer is None:
            return {}
        scores = self.scorer.wait_for(self._step, self._name, self._wait_s)
        if scores is None:
            labels = self.scorer.labels
            missing = {_key(label, name): float("nan") for label in labels for name in ESTIMATES}
            return missing | {f"{label}_not_scored": 1.0 for label in labels}
        self._returned.add(scores.step)
        return _by_label(scores)

    def _decoded(self, predictions: Any) -> list[str]:
        ids = np.asarray(predictions[0] if isinstance(predictions, tuple) else predictions)
        if ids.ndim != 2 or ids.dtype.kind not in "iu":
            raise InvalidRequest(
                f"predictions are {ids.dtype} {list(ids.shape)}, not token ids [rows, tokens]: use Seq2SeqTrainer with "
                "predict_with_generate=True, or give ValidationCallback(answers=…)"
            )
        if self._processing_class is None:
            raise InvalidRequest("processing_class is missing: give the tokenizer that decodes predictions")
        padding = getattr(self._processing_class, "tokenizer", self._processing_class).pad_token_id
        ids = np.where(ids == _IGNORED_ID, padding, ids)
        texts: list[str] = self._processing_class.batch_decode(ids, skip_special_tokens=True)
        return texts

    def _log_late(self, state: Any) -> None:
        # Skip steps whose scores `compute_metrics` returned, because the Trainer logs these scores.
        while self._late:
            scores = self._late.popleft()
            if scores.state is StepState.SCORED and scores.step not in self._returned:
                state.log_history.append({**_logged(scores), "step": scores.step})


def _is_distributed() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def _of_first_process(metrics: dict[str, float]) -> dict[str, float]:
    """Return the first process's metrics on all processes, so that all choose the same best model.

    All processes must call this function.
    """
    if not _is_distributed():
        return metrics
    shared = [metrics]
    torch.distributed.broadcast_object_list(shared, src=0)
    return shared[0]


def _logged(scores: StepScores) -> dict[str, float]:
    prefix = "eval_" if scores.name == "eval" else f"eval_{scores.name}_"
    return {f"{prefix}{label}": value for label, value in _by_label(scores).items()}


def _by_label(scores: StepScores) -> dict[str, float]:
    values: dict[str, float] = {}
    for label, metric in scores.metrics.items():
        values[label] = float("nan")
        estimates = {_key(label, name): getattr(metric, name) for name in ESTIMATES}
        values |= {key: value for key, value in estimates.items() if value is not None}
        values[f"{label}_not_scored"] = metric.not_scored_share
    return values


def _key(label: str, estimate: str) -> str:
    return label if estimate == "mean" else f"{label}_{estimate.removeprefix('mean_')}"
