"""Samples of an Inspect log as rows: questions of any input, choices as texts, scores as columns."""

import json
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gradewire.cli.input.official.choices import letter_place
from gradewire.cli.input.official.samples import columns_of, listed
from gradewire.cli.input.record import Record, printable
from gradewire.cli.problems import InputError

_VALUES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""What inspect's own figures make of its grades: correct, partial, incorrect, no answer."""
_ATTACHED: Final = "attachment://"
_PICTURE: Final = "data:image/"
_SAID: Final = re.compile(r"^[ \t]*ANSWER[ \t]*:[ \t]*(.+)$", re.MULTILINE | re.IGNORECASE)
"""How inspect has models name letters."""
_NUMBER: Final = re.compile(r"\A[1-9][0-9]{0,3}\Z")


@dataclass(frozen=True, slots=True)
class InspectLog:
    """What a log says of all its samples.

    Attributes:
        task: Its name.
        model: Under test.
        epochs: How often each sample was asked.
        samples: Ids of the samples that were to be asked; empty where the log does not say.
    """

    task: str
    model: str
    epochs: int
    samples: Sequence[Any]

    @classmethod
    def of(cls, path: str, spec: Any) -> "InspectLog":
        """Reads the part that inspect calls eval; `path` is for messages.

        Raises:
            InputError: There is no such part.
        """
        if not isinstance(spec, Mapping):
            raise InputError(f"{path} is no log of inspect: its eval is missing")
        config, dataset = (
            part if isinstance(part := spec.get(name), Mapping) else {} for name in ("config", "dataset")
        )
        epochs, identifiers = config.get("epochs"), dataset.get("sample_ids")
        return cls(
            str(spec.get("task") or ""),
            str(spec.get("model") or ""),
            epochs if isinstance(epochs, int) else 1,
            identifiers if isinstance(identifiers, list) else (),
        )

    def row_id(self, sample_id: Any, epoch: Any) -> str:
        """Tells the row of a sample from those of other samples, epochs and tasks."""
        return "/".join(str(part) for part in (self.task, sample_id, epoch if self.epochs > 1 else "") if part != "")


def sample_row(log: InspectLog, place: str, sample: Any) -> Record:
    """The row of a sample; it has a problem where the sample failed, is none, or is the error of who read it."""
    problem = _problem(sample)
    if problem:
        raw = str(sample) if isinstance(sample, Exception) else json.dumps(sample, sort_keys=True, default=repr)
        known = (
            log.row_id(sample["id"], sample.get("epoch", 1)) if isinstance(sample, Mapping) and "id" in sample else ""
        )
        return Record(0, place, None, problem, raw, id=known)
    identifier, epoch = sample["id"], sample.get("epoch", 1)
    attached = sample.get("attachments")
    texts = _Texts(attached if isinstance(attached, Mapping) else {})
    answer = texts.of(_completion(sample["output"]))
    pictures = texts.pictures(sample["input"])
    row = {
        "id": log.row_id(identifier, epoch),
        "task": log.task,
        "model": log.model,
        "sample_id": identifier,
        "epoch": epoch,
        "question": texts.question(sample["input"]),
        "prediction": answer,
        "raw_response": answer,
        **_scores(sample.get("scores")),
        **columns_of("metadata", sample["metadata"] if isinstance(sample.get("metadata"), Mapping) else {}),
    }
    if len(pictures) == 1:
        row["image"] = pictures[0]
    choices = sample.get("choices")
    if isinstance(choices, list) and choices:
        row |= _chosen(sample, choices, answer)
    elif (target := sample.get("target")) not in (None, "", []):
        row["references"] = target
    return Record(0, place, row)


def _problem(sample: Any) -> str:
    if isinstance(sample, Exception):
        return str(sample)
    if not isinstance(sample, Mapping):
        return "is no object"
    error = sample.get("error")
    # score_on_error grades what there was before the error.
    if error and not sample.get("scores"):
        message = error.get("message") if isinstance(error, Mapping) else error
        return f"of id {printable(str(sample.get('id')))} failed in inspect: {printable(str(message))[:200]}"
    lacking = [name for name in ("id", "input", "output") if sample.get(name) is None]
    if lacking:
        return f"has no {lacking[0]} (it has: {listed(sample)})"
    return "" if isinstance(sample["output"], Mapping) else "has an output that is no object"


def _chosen(sample: Mapping[str, Any], choices: Sequence[Any], completion: str) -> dict[str, Any]:
    """Texts of the choices in the place of letters. Several right ones are one answer: all have to be named."""
    texts = [str(choice) for choice in choices]
    target = sample.get("target")
    letters = target if isinstance(target, list) else [target]
    row: dict[str, Any] = {"choices": texts}
    if right := _named(letters, texts):
        row["references"] = [", ".join(right)]
    elif target not in (None, "", []):
        row["references"] = target
    answers = [score.get("answer") for score in _each(sample.get("scores"))]
    # A run without scores has the answer's last line only.
    said = _SAID.findall(completion) or [completion]
    given = (answer.split(",") for answer in (*answers, said[-1]) if isinstance(answer, str))
    if named := next(filter(None, (_named(letters, texts) for letters in given)), None):
        row["prediction"] = ", ".join(named)
    return row


def _named(letters: Sequence[Any], texts: Sequence[str]) -> list[str]:
    """Texts that these letters stand for, in the order of the choices; empty where one is no letter of a choice."""
    places = [_place(str(letter).strip()) for letter in letters]
    known = sorted({place for place in places if place is not None and place < len(texts)})
    return [texts[place] for place in known] if len(known) == len(letters) else []


def _place(letter: str) -> int | None:
    """The place of a choice: behind Z inspect counts on by numbers from 1."""
    if _NUMBER.match(letter):
        return len(string.ascii_uppercase) - 1 + int(letter)
    return letter_place(letter)


def _completion(output: Mapping[str, Any]) -> Any:
    """What the model said: as inspect sums it up, else its first choice's message."""
    if output.get("completion") is not None:
        return output["completion"]
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, Mapping) else None
    return message.get("content") if isinstance(message, Mapping) else None


def _scores(scores: Any) -> dict[str, Any]:
    """A column for each of inspect's scores, and for the answer that its scorer read out of the text."""
    found: dict[str, Any] = {}
    for name, score in (scores if isinstance(scores, Mapping) else {}).items():
        if not isinstance(score, Mapping):
            continue
        value = score.get("value")
        parts = value if isinstance(value, Mapping) else {"": value}
        for part, each in parts.items():
            found[f"inspect_{name}" + (f"_{part}" if part else "")] = _number(each)
        found[f"inspect_{name}_answer"] = score.get("answer")
    return found


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, bool) else _VALUES.get(value, value) if isinstance(value, str) else value


def _each(scores: Any) -> Iterator[Mapping[str, Any]]:
    return (score for score in (scores.values() if isinstance(scores, Mapping) else ()) if isinstance(score, Mapping))


@dataclass(frozen=True, slots=True)
class _Texts:
    """Texts of one sample, of which long ones and pictures stand beside it.

    Attributes:
        attached: These, by the name that stands in their place.
    """

    attached: Mapping[str, Any]

    def of(self, content: Any) -> str:
        """The text of a content: a text, or parts of which some are texts."""
        if isinstance(content, str):
            name = content.removeprefix(_ATTACHED)
            return str(self.attached.get(name, content)) if name != content else content
        parts = content if isinstance(content, list) else ()
        texts = (part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text")
        return "\n".join(self.of(text) for text in texts if isinstance(text, str))

    def question(self, asked: Any) -> str:
        """What was asked: the input itself, or the last message of the user."""
        if not isinstance(asked, list):
            return self.of(asked)
        messages = [message for message in asked if isinstance(message, Mapping)]
        of_user = [message for message in messages if message.get("role") == "user"] or messages
        return self.of(of_user[-1].get("content")) if of_user else ""

    def pictures(self, asked: Any) -> list[str]:
        """The pictures that stand in the input itself; what is named by a path or an address is not among them."""
        contents = (
            [message.get("content") for message in asked if isinstance(message, Mapping)]
            if isinstance(asked, list)
            else []
        )
        parts = [
            part for content in contents if isinstance(content, list) for part in content if isinstance(part, Mapping)
        ]
        named = [self.of(part["image"]) for part in parts if isinstance(part.get("image"), str)]
        return [picture for picture in named if picture.startswith(_PICTURE)]
