"""Parse and check prompt files in TOML."""

import hashlib
import math
import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from gradewire_proto.wire_rules import MAX_DOTS_IN_LINE, MAX_PROMPT_BYTES
from gradewire_server.domain.items import Failure, Status, quoted, shortened
from gradewire_server.metrics.prompts.neutralise import Delimiters, without_markup
from gradewire_server.metrics.prompts.prompt_file import (
    COMPARE,
    DEMONSTRATION_SETS,
    PAIR_SETS,
    SHAPES,
    STEPS,
    SYNTHETIC,
    TEXT_FIELDS,
    Demonstration,
    Layout,
    PromptFile,
    ReferenceForm,
    Step,
    StepShape,
    Variant,
    VariantShape,
)
from gradewire_server.metrics.prompts.reading import Reading, read_label
from gradewire_server.metrics.prompts.template import PromptError, Template, read_template
from gradewire_server.metrics.text.words import MAX_WORDS

_MAX_DEMONSTRATIONS: Final = 64

_MAX_TOKENS: Final = 1024
_MAX_TEXT_TOKENS: Final = 4096
_MAX_STOPS: Final = 4
_MAX_EXCHANGES: Final = 16
_MAX_STOP_CHARACTERS: Final = 64
_STATUSES: Final = (Status.UNPARSABLE, Status.INVALID_INPUT, Status.EMPTY_PREDICTION)
"""Statuses for labels that are no verdict. A retry would not change the label, so none of them promises one."""
_MAX_LABELS: Final = 16
_MAX_LABEL_CHARACTERS: Final = 64
_UNFIT: Final = "contains a chat token, a control character, an invisible character, or several spaces in a row"

_MESSAGES: Final = {
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "unexpected_keyword_argument": "is not known",
}
_FORMAT: Final = 1
_MAX_DEPTH: Final = 32
_SIGNS: Final = re.compile(
    r'''"""(?:[^\\]|\\.)*?(?:"""|\Z)|'{3}.*?(?:'{3}|\Z)|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*'?|\#[^\n]*'''
    r"|[\[\]{},=]",
    re.DOTALL,
)
"""A pattern for brackets, commas and equals signs, which are counted, and for strings and comments, in which these
signs do not count. The pattern never backtracks."""
_MAX_VALUES: Final = 2000
_MAX_MESSAGE_CHARACTERS: Final = 160


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


F = TypeVar("F", bound=_Form)


class StepForm(_Form):
    """A step in a prompt file."""

    name: str
    opening: str = ""
    max_tokens: Annotated[int, Field(ge=1, le=_MAX_TOKENS)] | None = None
    labels: dict[str, Any] | None = None
    read: Annotated[Reading, Field(strict=False)] | None = None
    field: Annotated[str, Field(min_length=1, max_length=64)] | None = None

    @field_validator("opening")
    @classmethod
    def _is_one_line(cls, opening: str) -> str:
        if opening != opening.strip() or "\n" in opening:
            raise ValueError("must be one line without leading or trailing white space")
        if without_markup(opening) != opening:
            raise ValueError(_UNFIT)
        return opening


class ExchangeForm(_Form):
    """Fixed turns of the user and of the judge in a prompt file."""

    user: Annotated[str, Field(min_length=1)]
    assistant: Annotated[str, Field(min_length=1)]


class VariantForm(_Form):
    """A variant in a prompt file; None means the value at the top of the file."""

    system: str | None = None
    system_with_caption: str | None = None
    system_with_image: str = ""
    item: str | None = None
    steps: Annotated[list[StepForm], Field(min_length=1)]
    demonstrations: bool = True
    correct_from: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    prediction_words: Annotated[int, Field(ge=1, le=MAX_WORDS)] = MAX_WORDS
    exchanges: Annotated[list[ExchangeForm], Field(max_length=_MAX_EXCHANGES)] = []
    layout: Annotated[Layout, Field(strict=False)] = Layout.TURNS
    max_tokens: Annotated[int, Field(ge=1, le=_MAX_TEXT_TOKENS)] | None = None
    stop: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=_MAX_STOP_CHARACTERS)]], Field(max_length=_MAX_STOPS)
    ] = []
    reply: str | None = None


class DemonstrationForm(_Form):
    """A solved item in a prompt file; additional keys contain the judge's answers by step name."""

    model_config = ConfigDict(extra="allow")

    question: str
    references: Annotated[list[str], Field(min_length=1)]
    prediction: str
    caption: str = ""
    second: str = ""


class PairDemonstrationForm(DemonstrationForm):
    """A solved pair in a prompt file."""

    references: list[str] = []
    prediction: Annotated[str, Field(alias="first")]
    second: str


class SyntheticDemonstrationForm(DemonstrationForm):
    """A demonstration in a prompt file: a reference and its synthetic answer."""

    references: Annotated[list[str], BeforeValidator(lambda answer: [answer]), Field(alias="answer")]
    prediction: Literal[""] = ""
    caption: Literal[""] = ""


class FileForm(_Form):
    """A prompt file. Its variants and demonstrations are parsed separately."""

    format: int
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
    metric: str
    version: Annotated[int, Field(ge=1, le=1_000_000)]
    description: str = ""
    system: str = ""
    item: str = ""
    references: ReferenceForm = ReferenceForm()
    variants: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]
    demonstrations: dict[str, Annotated[list[dict[str, Any]], Field(min_length=1, max_length=_MAX_DEMONSTRATIONS)]] = {}

    @field_validator("format")
    @classmethod
    def _is_known(cls, form: int) -> int:
        if form != _FORMAT:
            raise ValueError(f"{form} is not known. This program supports format {_FORMAT}")
        return form

    @field_validator("metric")
    @classmethod
    def _takes_a_prompt(cls, metric: str) -> str:
        if metric not in SHAPES:
            raise ValueError(f"{quoted(metric)} has no prompt. Metrics with prompts: {', '.join(SHAPES)}")
        return metric


def _read_form(kind: type[F], table: Mapping[str, Any], place: str = "") -> F:
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    message = _MESSAGES.get(first["type"], first["msg"].removeprefix("Value error, "))
    raise PromptError(f"{place}{''.join(parts)}".removeprefix("."), message)


def read_prompt(data: bytes) -> PromptFile:
    """Parse and check a prompt file; docs/reference/prompt-files.md describes the format.

    A byte order mark at the beginning is ignored and does not change the digest.

    Raises:
        PromptError: The file is too long, is not TOML, or lacks required content.
    """
    data = data.removeprefix(BOM_UTF8)
    if len(data) > MAX_PROMPT_BYTES:
        raise PromptError("", f"has {len(data)} bytes; at most {MAX_PROMPT_BYTES} are allowed")
    form = _read_form(FileForm, _parse(data))
    _check_references(form.references)
    shapes = SHAPES[form.metric]
    variants: dict[str, Variant] = {}
    for name, table in form.variants.items():
        if name not in shapes:
            raise PromptError(f"variants.{name}", f"is not known. This metric has {', '.join(shapes)}")
        variants[name] = _variant(
            _read_form(VariantForm, table, f"variants.{name}"), f"variants.{name}", shapes[name], form
        )
    sets = PAIR_SETS if form.metric == COMPARE else DEMONSTRATION_SETS
    demonstrations: dict[str, tuple[Demonstration, ...]] = {}
    for kind, rows in form.demonstrations.items():
        if kind not in sets:
            raise PromptError(f"demonstrations.{kind}", f"is not known. The sets are {', '.join(sorted(sets))}")
        demonstrations[kind] = tuple(
            _demonstration(row, f"demonstrations.{kind}[{index}]", variants, form.metric)
            for index, row in enumerate(rows)
        )
    return PromptFile(
        name=form.name,
        version=form.version,
        metric=form.metric,
        digest=hashlib.sha256(data).hexdigest(),
        text=data.decode(),
        description=form.description,
        references=form.references,
        variants=variants,
        demonstrations=demonstrations,
    )


def _parse(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise PromptError("", f"is not UTF-8 (byte {error.start})") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MAX_DOTS_IN_LINE:
            raise PromptError("", f"has more than {MAX_DOTS_IN_LINE} dots in line {number}. Split the line")
    depth = values = 0
    for sign in _SIGNS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(sign[0], 0)
        values += sign[0] in ",="
        if depth > _MAX_DEPTH:
            at = text.count("\n", 0, sign.start()) + 1
            raise PromptError("", f"is nested too deeply in line {at}: at most {_MAX_DEPTH} levels are allowed")
        if values > _MAX_VALUES:
            raise PromptError("", f"has more than {_MAX_VALUES} values")
    try:
        return tomllib.loads(text)
    except ValueError as error:  # includes TOMLDecodeError, and int()'s error for a number with thousands of digits
        raise PromptError("", f"is not TOML: {shortened(str(error), _MAX_MESSAGE_CHARACTERS)}") from None


def _variant(form: VariantForm, place: str, shape: VariantShape, file: FileForm) -> Variant:
    system = file.system if form.system is None else form.system
    item = file.item if form.item is None else form.item
    if not item.strip():
        raise PromptError(f"{place}.item", "is missing both here and at the top of the file")
    template = read_template(item, f"{place}.item", needed=shape.needed, optional=shape.optional)
    one_text = form.max_tokens is not None
    sequences = shape.sequences_in_one_text if one_text else shape.sequences
    if not sequences:
        raise PromptError(f"{place}.max_tokens", "is not allowed in this variant, which has nothing to read in a text")
    read = _text_step if one_text else _line_step
    steps = tuple(read(step, f"{place}.steps[{index}]", first=index == 0) for index, step in enumerate(form.steps))
    names = tuple(step.name for step in steps)
    if names not in sequences:
        allowed = "; or ".join(", ".join(sequence) for sequence in sequences)
        raise PromptError(f"{place}.steps", f"must be {allowed}, not {shortened(', '.join(names))}")
    if not one_text and (unused := next((key for key in ("stop", "reply") if getattr(form, key)), None)):
        raise PromptError(f"{place}.{unused}", "is only for variants with one text, which have max_tokens")
    return Variant(
        system=system.strip(),
        system_with_caption=(system if form.system_with_caption is None else form.system_with_caption).strip(),
        system_with_image=form.system_with_image.strip(),
        item=template,
        steps=steps,
        demonstrations=form.demonstrations,
        correct_from=form.correct_from,
        prediction_words=form.prediction_words,
        delimiters=_delimiters(template, steps),
        exchanges=tuple((each.user.strip(), each.assistant.strip()) for each in form.exchanges),
        layout=form.layout,
        max_tokens=form.max_tokens or 0,
        stop=tuple(form.stop),
        reply=_reply(form, place, names) if one_text else None,
    )


def _reply(form: VariantForm, place: str, names: tuple[str, ...]) -> Template | None:
    if form.reply is None:
        return None
    return read_template(form.reply, f"{place}.reply", needed=frozenset(names), optional=TEXT_FIELDS)


def _shape(form: StepForm, place: str) -> StepShape:
    shape = STEPS.get(form.name)
    if shape is None:
        raise PromptError(f"{place}.name", f"{quoted(form.name)} is not known. The steps are {', '.join(STEPS)}")
    return shape


def _text_step(form: StepForm, place: str, *, first: bool) -> Step:
    """Return a step that is read from the variant's one text."""
    del first
    shape = _shape(form, place)
    if shape.generated:
        raise PromptError(f"{place}.name", "must be a step with labels. The one text has the reason too")
    if form.read in {None, Reading.PROBABILITY}:
        known = ", ".join(each for each in Reading if each is not Reading.PROBABILITY)
        raise PromptError(f"{place}.read", f"must be {known} in a variant with one text, which has max_tokens")
    if form.max_tokens is not None:
        raise PromptError(f"{place}.max_tokens", "is not allowed in this step. The variant has max_tokens")
    if form.opening and form.read is not Reading.LAST_LABEL:
        raise PromptError(f"{place}.opening", f"is only for read = {Reading.LAST_LABEL.value!r}")
    if (form.field is not None) is not (form.read is Reading.DICTIONARY):
        fault = "is missing" if form.field is None else f"is only for read = {Reading.DICTIONARY.value!r}"
        raise PromptError(f"{place}.field", fault)
    if form.read is Reading.LAST_CHARACTER and (long := next((x for x in form.labels or () if len(x) > 1), None)):
        raise PromptError(f"{place}.labels.{long}", "must be one character, because the last character is read")
    return _labelled(form, place, shape)


def _labelled(form: StepForm, place: str, shape: StepShape) -> Step:
    if not form.labels:
        raise PromptError(f"{place}.labels", "is missing" if form.labels is None else "must be 2 to 16 labels")
    reading = form.read or Reading.PROBABILITY
    values, statuses = _values(form.labels, f"{place}.labels", shape)
    _check_labels(values, statuses, f"{place}.labels", shape, reading)
    scores = tuple(values.get(label, shape.values[0]) for label in form.labels)
    return Step(
        form.name,
        form.opening,
        tuple(form.labels),
        scores,
        reading=reading,
        statuses=statuses,
        dictionary_field=form.field or "",
    )


def _values(labels: Mapping[str, Any], place: str, shape: StepShape) -> tuple[dict[str, float], dict[str, Status]]:
    """Return the labels' values, and the statuses of labels that are no verdict."""
    values: dict[str, float] = {}
    statuses: dict[str, Status] = {}
    known = {status.name: status for status in _STATUSES}
    for label, value in labels.items():
        if isinstance(value, str) and value in known:
            statuses[label] = known[value]
        elif isinstance(value, str) and value in shape.words:
            values[label] = shape.words[value]
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            values[label] = float(value)
        else:
            words = ", ".join((*shape.words, *known))
            raise PromptError(f"{place}.{label}", f"must be a number, or one of {words}")
    return values, statuses


def _line_step(form: StepForm, place: str, *, first: bool) -> Step:
    """Return a step that is a line of the judge's turn."""
    shape = _shape(form, place)
    if form.read not in {None, Reading.PROBABILITY}:
        raise PromptError(f"{place}.read", "needs a variant with one text: give the variant max_tokens")
    if form.field is not None:
        raise PromptError(f"{place}.field", f"is only for read = {Reading.DICTIONARY.value!r}")
    if not form.opening and not first:
        raise PromptError(f"{place}.opening", "is missing. Only the first step may have no opening")
    needed, other = ("max_tokens", "labels") if shape.generated else ("labels", "max_tokens")
    if getattr(form, needed) is None:
        raise PromptError(f"{place}.{needed}", "is missing")
    if getattr(form, other) is not None:
        raise PromptError(f"{place}.{other}", f"is not allowed in this step, which has {needed}")
    if not shape.generated:
        return _labelled(form, place, shape)
    return Step(form.name, form.opening, max_tokens=form.max_tokens or 0)


def _check_labels(
    values: Mapping[str, float], statuses: Mapping[str, Status], place: str, shape: StepShape, reading: Reading
) -> None:
    labels = (*values, *statuses)
    if not 2 <= len(labels) <= _MAX_LABELS:
        raise PromptError(place, f"must be 2 to {_MAX_LABELS} labels")
    lowest, highest = shape.values
    continues = reading is Reading.PROBABILITY
    for label in labels:
        value = values.get(label)
        faults = {
            "must be words with single spaces between them": not label or label != " ".join(label.split()),
            f"must have at most {_MAX_LABEL_CHARACTERS} characters": len(label) > _MAX_LABEL_CHARACTERS,
            _UNFIT: without_markup(label) != label,
            "is the beginning of another label, which would make the judge's answer ambiguous": continues
            and any(other != label and other.startswith(label) for other in labels),
            "differs from another label only in upper and lower case": any(
                other != label and len(label) > 1 and other.casefold() == label.casefold() for other in labels
            ),
            f"must be a number from {lowest:g} to {highest:g}": value is not None and not lowest <= value <= highest,
            f"must be {shape.described}": value is not None and shape.described and value not in shape.words.values(),
        }
        fault = next((message for message, found in faults.items() if found), None)
        if fault is not None:
            raise PromptError(f"{place}.{label}", fault)
    if len(set(values.values())) < 2:
        raise PromptError(place, "all have the same value, so every answer would get the same score")
    if not shape.values_used <= set(values.values()):
        needed = " and ".join(f"{value:g}" for value in sorted(shape.values_used, reverse=True))
        raise PromptError(place, f"must have labels for the values {needed}: {shape.described}")


def _delimiters(item: Template, steps: tuple[Step, ...]) -> Delimiters:
    openings = [step.opening for step in steps if step.opening]
    names = (*item.field_labels, *(text[:-1].rstrip() for text in openings if text.endswith(":")))
    announcing = (step.opening.rstrip(": ") for step in steps if step.labels and step.opening.rstrip(": "))
    return Delimiters(
        names=tuple(dict.fromkeys(names)),
        openings=tuple(dict.fromkeys(text for text in openings if not text.endswith(":"))),
        labels=tuple(dict.fromkeys(label for step in steps for label in step.labels)),
        announcing=tuple(dict.fromkeys(announcing)),
    )


def _demonstration(row: Mapping[str, Any], place: str, variants: Mapping[str, Variant], metric: str) -> Demonstration:
    kinds: dict[str, type[DemonstrationForm]] = {SYNTHETIC: SyntheticDemonstrationForm, COMPARE: PairDemonstrationForm}
    form = _read_form(kinds.get(metric, DemonstrationForm), row, place)
    said = form.model_extra or {}
    answers: dict[str, str] = {}
    shown = [(name, variant) for name, variant in variants.items() if variant.demonstrations]
    for step in (step for _, variant in shown for step in variant.steps):
        answers[step.name] = _answer(said, step.name, place)
        if step.labels and answers[step.name] not in step.labels:
            raise PromptError(f"{place}.{step.name}", f"must be one of {shortened(', '.join(step.labels))}")
    for name, variant in shown:
        if "references" in variant.item.fields and not form.references:
            raise PromptError(f"{place}.references", f"is missing, and variants.{name} shows references")
        if variant.max_tokens:
            _check_reply(variant, answers, said, place, f"variants.{name}")
    if unknown := [key for key in said if key not in answers]:
        raise PromptError(f"{place}.{unknown[0]}", "is not known")
    return Demonstration(form.question, tuple(form.references), form.prediction, form.caption, answers, form.second)


def _answer(said: Mapping[str, Any], name: str, place: str) -> str:
    answer = said.get(name)
    if not isinstance(answer, str):
        raise PromptError(f"{place}.{name}", "is missing" if answer is None else "must be a string")
    return "\n".join(" ".join(line.split()) for line in answer.strip().split("\n"))


def _check_reply(
    variant: Variant, answers: dict[str, str], said: Mapping[str, Any], place: str, variant_place: str
) -> None:
    """Add the texts that the reply needs to `answers`, and check that the reply states the demonstration's labels."""
    if variant.reply is None:
        raise PromptError(f"{variant_place}.reply", "is missing. It is the form of a demonstration's text")
    for name in sorted(variant.reply.fields - answers.keys()):
        answers[name] = _answer(said, name, place)
    text = variant.reply.render(answers).text
    for step in variant.steps:
        found = read_label(text, step.rule, whole=True)
        if isinstance(found, Failure) or step.labels[found] != answers[step.name]:
            read = found.message if isinstance(found, Failure) else f"it reads {quoted(step.labels[found])}"
            wanted = quoted(answers[step.name])
            raise PromptError(f"{place}.{step.name}", f"the reply of {variant_place} must state {wanted}, but {read}")


def _check_references(form: ReferenceForm) -> None:
    fields, counts = frozenset({"reference"}), frozenset({"count", "total"})
    read_template(form.plain, "references.plain", needed=fields, optional=frozenset())
    read_template(form.counted, "references.counted", needed=fields, optional=counts)
    for key in ("plain", "counted"):
        if "\n" in getattr(form, key):
            raise PromptError(f"references.{key}", "must not contain a line break. The separator may")
