"""Parse and check prompt files in TOML, and find them by name."""

import hashlib
import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from copy import copy
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from gradewire_proto.wire_rules import MAX_DOTS_IN_LINE, MAX_PROMPT_BYTES
from gradewire_server.domain.items import quoted, shortened
from gradewire_server.metrics.prompts.neutralise import Delimiters, without_markup
from gradewire_server.metrics.prompts.prompt_file import (
    COMPARE,
    DEMONSTRATION_SETS,
    PAIR_SETS,
    SHAPES,
    STEPS,
    SYNTHETIC,
    Demonstration,
    PromptFile,
    ReferenceForm,
    Step,
    StepShape,
    Variant,
    VariantShape,
)
from gradewire_server.metrics.prompts.template import PromptError, Template, read_template
from gradewire_server.metrics.text.words import MAX_WORDS

_MAX_DEMONSTRATIONS: Final = 64

_MAX_TOKENS: Final = 1024
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

_NAMED: Final = re.compile(r"(?P<title>[a-z][a-z0-9_-]{0,63}/[0-9]{1,7})(?:@(?P<digest>[0-9a-fA-F]{8,64}))?")


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


F = TypeVar("F", bound=_Form)


class StepForm(_Form):
    """A step in a prompt file."""

    name: str
    opening: str = ""
    max_tokens: Annotated[int, Field(ge=1, le=_MAX_TOKENS)] | None = None
    labels: dict[str, Annotated[float, Field(allow_inf_nan=False)]] | None = None

    @field_validator("opening")
    @classmethod
    def _is_one_line(cls, opening: str) -> str:
        if opening != opening.strip() or "\n" in opening:
            raise ValueError("must be one line without leading or trailing white space")
        if without_markup(opening) != opening:
            raise ValueError(_UNFIT)
        return opening


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
    steps = tuple(_step(step, f"{place}.steps[{index}]", first=index == 0) for index, step in enumerate(form.steps))
    names = tuple(step.name for step in steps)
    if names not in shape.sequences:
        allowed = "; or ".join(", ".join(sequence) for sequence in shape.sequences)
        raise PromptError(f"{place}.steps", f"must be {allowed}, not {shortened(', '.join(names))}")
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
    )


def _step(form: StepForm, place: str, *, first: bool) -> Step:
    shape = STEPS.get(form.name)
    if shape is None:
        raise PromptError(f"{place}.name", f"{quoted(form.name)} is not known. The steps are {', '.join(STEPS)}")
    if not form.opening and not first:
        raise PromptError(f"{place}.opening", "is missing. Only the first step may have no opening")
    needed, other = ("max_tokens", "labels") if shape.generated else ("labels", "max_tokens")
    if getattr(form, needed) is None:
        raise PromptError(f"{place}.{needed}", "is missing")
    if getattr(form, other) is not None:
        raise PromptError(f"{place}.{other}", f"is not allowed in this step, which has {needed}")
    labels = form.labels or {}
    if labels:
        _check_labels(labels, f"{place}.labels", shape)
    return Step(form.name, form.opening, tuple(labels), tuple(labels.values()), form.max_tokens or 0)


def _check_labels(labels: Mapping[str, float], place: str, shape: StepShape) -> None:
    if not 2 <= len(labels) <= _MAX_LABELS:
        raise PromptError(place, f"must be 2 to {_MAX_LABELS} labels")
    lowest, highest = shape.values
    for label, value in labels.items():
        faults = {
            "must be words with single spaces between them": not label or label != " ".join(label.split()),
            f"must have at most {_MAX_LABEL_CHARACTERS} characters": len(label) > _MAX_LABEL_CHARACTERS,
            _UNFIT: without_markup(label) != label,
            "is the beginning of another label, which would make the judge's answer ambiguous": any(
                other != label and other.startswith(label) for other in labels
            ),
            f"must be a number from {lowest:g} to {highest:g}": not lowest <= value <= highest,
            f"must be {shape.described}": shape.values_used and value not in shape.values_used,
        }
        fault = next((message for message, found in faults.items() if found), None)
        if fault is not None:
            raise PromptError(f"{place}.{label}", fault)
    if len(set(labels.values())) == 1:
        raise PromptError(place, "all have the same value, so every answer would get the same score")
    if not shape.values_used <= set(labels.values()):
        raise PromptError(place, f"must have a label for each value: {shape.described}")


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
    kinds = {SYNTHETIC: SyntheticDemonstrationForm, COMPARE: PairDemonstrationForm}
    form = _read_form(kinds.get(metric, DemonstrationForm), row, place)
    said = form.model_extra or {}
    answers: dict[str, str] = {}
    for step in (step for variant in variants.values() if variant.demonstrations for step in variant.steps):
        answer = said.get(step.name)
        if not isinstance(answer, str):
            raise PromptError(f"{place}.{step.name}", "is missing" if answer is None else "must be a string")
        answers[step.name] = " ".join(answer.split())
        if step.labels and answers[step.name] not in step.labels:
            raise PromptError(f"{place}.{step.name}", f"must be one of {shortened(', '.join(step.labels))}")
    if unknown := [key for key in said if key not in answers]:
        raise PromptError(f"{place}.{unknown[0]}", "is not known")
    return Demonstration(form.question, tuple(form.references), form.prediction, form.caption, answers, form.second)


def _check_references(form: ReferenceForm) -> None:
    fields, counts = frozenset({"reference"}), frozenset({"count", "total"})
    read_template(form.plain, "references.plain", needed=fields, optional=frozenset())
    read_template(form.counted, "references.counted", needed=fields, optional=counts)
    for key in ("plain", "counted", "separator"):
        if "\n" in getattr(form, key):
            raise PromptError(f"references.{key}", "must not contain a line break, because references are on one line")


class PromptLibrary:
    """An immutable collection of prompt files by NAME/VERSION.

    Raises:
        PromptError: Two different files have the same name and version.
    """

    def __init__(self, files: Iterable[PromptFile] = ()) -> None:
        self._files: dict[str, PromptFile] = {}
        for file in files:
            if self._files.setdefault(file.title, file).digest != file.digest:
                raise PromptError("version", f"a different {file.title} already exists. Change this file's version")

    def with_file(self, file: PromptFile) -> "PromptLibrary":
        """Return a new library that includes this file.

        Raises:
            PromptError: A different file has the same name and version.
        """
        return PromptLibrary((*self._files.values(), file))

    def files(self) -> tuple[PromptFile, ...]:
        """Return all files, the package's files first."""
        return tuple(self._files.values())

    def find(self, metric: str, prompt: str) -> PromptFile:
        """Return the file that the `prompt` parameter selects for a metric, or for "synthetic" answers.

        The parameter is NAME/VERSION, NAME/VERSION@DIGEST (at least 8 hex digits), or the text of a file; "" means the
        metric's default file.

        Raises:
            PromptError: No file has this name or digest, the file is for a different metric, or the text cannot be
                parsed.
        """
        match = _NAMED.fullmatch(prompt or _DEFAULTS[metric].title)
        file = _inline(prompt) if match is None else self._named(match["title"], (match["digest"] or "").lower())
        if file.metric != metric:
            raise PromptError("", f"{file.title} is a prompt for {file.metric}, not for {metric}")
        return file

    def _named(self, title: str, digest: str) -> PromptFile:
        file = self._files.get(title)
        if file is None:
            known = f"Known prompts: {', '.join(sorted(self._files))}"
            raise PromptError("", f"unknown prompt {title}. {_advice_on_newer_version(title) or known}")
        if not file.digest.startswith(digest):
            raise PromptError("", f"{title} has the digest {file.digest}, not {digest}")
        return file

    def parameter(self, file: PromptFile) -> str:
        """Return the `prompt` parameter for exactly this file: NAME/VERSION@DIGEST, or the file's text."""
        known = self._files.get(file.title)
        return f"{file.title}@{file.digest}" if known is not None and known.digest == file.digest else file.text


def _advice_on_newer_version(title: str) -> str:
    name, _, version = title.partition("/")
    own = _DEFAULTS.get(name)
    if own is None or int(version) >= own.version:
        return ""
    return f"{own.title} replaced this prompt. Use {own.title}, or send the file's text"


def _inline(text: str) -> PromptFile:
    found = _cached_prompt(text)
    if isinstance(found, PromptError):
        raise copy(found)  # raise a copy, since a raised error keeps its frames alive
    return found


@lru_cache(maxsize=64)
def _cached_prompt(text: str) -> PromptFile | PromptError:
    if len(text) > MAX_PROMPT_BYTES:
        return PromptError("", f"has {len(text)} characters; at most {MAX_PROMPT_BYTES} bytes are allowed")
    if "=" not in text:
        return PromptError("", f"{quoted(text)} is neither NAME/VERSION[@DIGEST] nor the text of a prompt file")
    try:
        return read_prompt(text.encode(errors="surrogatepass"))  # surrogates become invalid UTF-8, which is reported
    except PromptError as error:
        return error.with_traceback(None)


def _of_package() -> PromptLibrary:
    entries = sorted(files(__package__).iterdir(), key=lambda entry: entry.name)
    return PromptLibrary(read_prompt(entry.read_bytes()) for entry in entries if entry.name.endswith(".toml"))


PACKAGE_PROMPTS: Final = _of_package()
_DEFAULTS: Final = {file.metric: file for file in PACKAGE_PROMPTS.files() if file.name == file.metric}
