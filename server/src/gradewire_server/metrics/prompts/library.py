"""The library of prompt files: read from TOML, checked, and found by name."""

import hashlib
import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from copy import copy
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

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
    ReferenceOrder,
    Step,
    StepShape,
    Variant,
    VariantShape,
)
from gradewire_server.metrics.prompts.template import PromptError, Table, Template, read_template
from gradewire_server.metrics.text.words import MAX_WORDS

_MAX_DEMONSTRATIONS: Final = 64

_MAX_TOKENS: Final = 1024
_MAX_LABELS: Final = 16
_MAX_LABEL_CHARACTERS: Final = 64
"""Every result names the labels."""
_UNFIT: Final = "has a chat token, a control character or something that is not seen, or more than one space on end"

_FORMAT: Final = 1
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_MAX_REFERENCES: Final = 1000
_MAX_DEPTH: Final = 32
"""Arrays and tables within each other. The parser calls itself for each; at the limit of Python's stack every finalizer
that happens to run there would fail too."""
_SIGNS: Final = re.compile(
    r'''"""(?:[^\\]|\\.)*?(?:"""|\Z)|'{3}.*?(?:'{3}|\Z)|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*'?|\#[^\n]*'''
    r"|[\[\]{},=]",
    re.DOTALL,
)
"""Strings and comments, in which nothing counts, and the signs that do. Nothing is gone over twice, closed or not."""
_MAX_VALUES: Final = 2000
"""Commas and equals signs outside strings. The parser takes 2 µs for each; a file that asks for much has 200."""
_MAX_PARSER_CHARACTERS: Final = 160
"""Of what the TOML parser says, which may hold a key."""

_NAMED: Final = re.compile(r"(?P<title>[a-z][a-z0-9_-]{0,63}/[0-9]{1,7})(?:@(?P<digest>[0-9a-fA-F]{8,64}))?")

_DEFAULTS: Final = {
    "lave": "lave/2",
    "judge_grade": "judge_grade/2",
    "judge_similarity": "judge_similarity/2",
    "judge_verdict": "judge_verdict/2",
    "compare": "compare/1",
    "synthetic": "synthetic/1",
}
"""Prompt of each metric that "" stands for."""


def read_demonstrations(
    table: Table | None, variants: Mapping[str, Variant], metric: str
) -> dict[str, tuple[Demonstration, ...]]:
    """Read all sets; each demonstration answers every step of the variants that show demonstrations.

    Args:
        table: The file's table of them, if it has one.
        variants: The file's variants.
        metric: Of the file. Demonstrations of `synthetic` have `answer` in place of `references` and `prediction`,
            those of `compare` have `first` and `second` in place of `prediction`.

    Raises:
        PromptError: Names the set, the demonstration and the key.
    """
    if table is None:
        return {}
    sets = PAIR_SETS if metric == COMPARE else DEMONSTRATION_SETS
    found: dict[str, tuple[Demonstration, ...]] = {}
    for kind in table.keys():  # noqa: SIM118 - a Table is no mapping
        if kind not in sets:
            raise PromptError(table.at(kind), f"is not known; the sets are {', '.join(sorted(sets))}")
        rows = table.tables(kind)
        if len(rows) > _MAX_DEMONSTRATIONS:
            raise PromptError(table.at(kind), f"has {len(rows)} demonstrations; {_MAX_DEMONSTRATIONS} are the most")
        found[kind] = tuple(_demonstration(row, variants, metric) for row in rows)
    return found


def _demonstration(table: Table, variants: Mapping[str, Variant], metric: str) -> Demonstration:
    answers: dict[str, str] = {}
    steps = [step for variant in variants.values() if variant.demonstrations for step in variant.steps]
    for step in steps:
        answer = " ".join(table.text(step.name).split())
        if step.labels and answer not in step.labels:
            raise PromptError(table.at(step.name), f"must be one of {shortened(', '.join(step.labels))}")
        answers[step.name] = answer
    synthetic = metric == SYNTHETIC
    prediction = "first" if metric == COMPARE else "prediction"
    demonstration = Demonstration(
        question=table.text("question"),
        references=(table.text("answer"),) if synthetic else table.texts("references"),
        prediction="" if synthetic else table.text(prediction),
        caption="" if synthetic else table.text("caption", ""),
        answers=answers,
        second=table.text("second") if metric == COMPARE else "",
    )
    table.finish()
    return demonstration


def read_steps(table: Table, shape: VariantShape) -> tuple[Step, ...]:
    """Read a variant's steps; raise PromptError unless they are one of the shape's sequences."""
    steps = tuple(_step(row, first=index == 0) for index, row in enumerate(table.tables("steps")))
    names = tuple(step.name for step in steps)
    if names not in shape.sequences:
        allowed = "; or ".join(", ".join(sequence) for sequence in shape.sequences)
        raise PromptError(table.at("steps"), f"must be {allowed}, not {shortened(', '.join(names))}")
    return steps


def _step(table: Table, *, first: bool) -> Step:
    name = table.text("name")
    shape = STEPS.get(name)
    if shape is None:
        raise PromptError(table.at("name"), f"{quoted(name)} is not known; steps are {', '.join(STEPS)}")
    opening = table.text("opening", "")
    if opening != opening.strip() or "\n" in opening:
        raise PromptError(table.at("opening"), "is one line, without white space at its ends")
    if without_markup(opening) != opening:
        raise PromptError(table.at("opening"), _UNFIT)
    if not opening and not first:
        raise PromptError(table.at("opening"), "is missing; only the first step may do without one")
    step = _text_step(table, name, opening) if shape.generated else _label_step(table, shape, name, opening)
    table.finish()
    return step


def _text_step(table: Table, name: str, opening: str) -> Step:
    return Step(name, opening, max_tokens=table.integer("max_tokens", 1, _MAX_TOKENS))


def _label_step(table: Table, shape: StepShape, name: str, opening: str) -> Step:
    labels = table.table("labels")
    if labels is None:
        raise PromptError(table.at("labels"), "is missing")
    names = labels.keys()
    if not 2 <= len(names) <= _MAX_LABELS:
        raise PromptError(table.at("labels"), f"must be 2 to {_MAX_LABELS} labels")
    for label in names:
        if not label or label != " ".join(label.split()):
            raise PromptError(labels.at(label), "is no label: words with single spaces between them")
        if len(label) > _MAX_LABEL_CHARACTERS:
            raise PromptError(labels.at(label), f"is no label: a label has at most {_MAX_LABEL_CHARACTERS} characters")
        if without_markup(label) != label:
            raise PromptError(labels.at(label), _UNFIT)
        if any(other != label and other.startswith(label) for other in names):
            raise PromptError(labels.at(label), "begins another label; the judge could not be told which it means")
    values = tuple(_value(labels, shape, label) for label in names)
    if len(set(values)) == 1:
        raise PromptError(table.at("labels"), "all stand for the same value: every answer would score alike")
    if not shape.values_used <= set(values):
        raise PromptError(table.at("labels"), f"must have a label for each value: {shape.told}")
    return Step(name, opening, names, values)


def _value(labels: Table, shape: StepShape, label: str) -> float:
    value = labels.number(label, *shape.values)
    if shape.values_used and value not in shape.values_used:
        raise PromptError(labels.at(label), f"must be {shape.told}")
    return value


def read_prompt(data: bytes) -> PromptFile:
    """Read and checks a prompt file; docs/reference/prompt-files.md describes the form.

    A byte order mark at its begin, as some editors write it, is no part of it, nor of its digest.

    Raises:
        PromptError: It is too long, is no TOML, or does not say what it must; the message names the key.
    """
    data = data.removeprefix(BOM_UTF8)
    if len(data) > MAX_PROMPT_BYTES:
        raise PromptError("", f"has {len(data)} bytes; a prompt file may have {MAX_PROMPT_BYTES}")
    table = Table(_parse(data), "")
    form = table.integer("format", 0, 1_000_000)
    if form != _FORMAT:
        raise PromptError("format", f"{form} is not known here; this program reads {_FORMAT}")
    name = table.text("name")
    if _NAME.fullmatch(name) is None:
        raise PromptError("name", "must be lower-case letters, digits, _ and -, beginning with a letter, 64 at most")
    metric = table.text("metric")
    if metric not in SHAPES:
        raise PromptError("metric", f"{quoted(metric)} takes no prompt; those that do: {', '.join(SHAPES)}")
    version = table.integer("version", 1, 1_000_000)
    description = table.text("description", "")
    variants = _variants(table, SHAPES[metric])
    file = PromptFile(
        name=name,
        version=version,
        metric=metric,
        digest=hashlib.sha256(data).hexdigest(),
        text=data.decode(),
        description=description,
        references=_references(table.table("references")),
        variants=variants,
        demonstrations=read_demonstrations(table.table("demonstrations"), variants, metric),
    )
    table.finish()
    return file


def _parse(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise PromptError("", f"is not UTF-8 (byte {error.start})") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MAX_DOTS_IN_LINE:
            raise PromptError("", f"has more than {MAX_DOTS_IN_LINE} dots in line {number}; break the line")
    depth = values = 0
    for sign in _SIGNS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(sign[0], 0)
        values += sign[0] in ",="
        if depth > _MAX_DEPTH:
            at = text.count("\n", 0, sign.start()) + 1
            raise PromptError("", f"is nested too deeply in line {at}: {_MAX_DEPTH} arrays and tables at most")
        if values > _MAX_VALUES:
            raise PromptError("", f"has more than {_MAX_VALUES} values")
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, and what int() says of a number with thousands of digits
        raise PromptError("", f"is no TOML: {shortened(str(error), _MAX_PARSER_CHARACTERS)}") from None


def _variants(table: Table, shapes: Mapping[str, VariantShape]) -> dict[str, Variant]:
    shared = {key: table.text(key, "") for key in ("system", "item")}
    group = table.table("variants")
    if group is None:
        raise PromptError("variants", "is missing")
    found: dict[str, Variant] = {}
    for name in group.keys():  # noqa: SIM118 - a Table is no mapping
        if name not in shapes:
            raise PromptError(group.at(name), f"is not known; this metric has {', '.join(shapes)}")
        variant = group.table(name)
        assert variant is not None  # noqa: S101 - tells the type checker that the key is there
        found[name] = _variant(variant, shapes[name], shared)
    if not found:
        raise PromptError("variants", f"needs one at least: {', '.join(shapes)}")
    return found


def _variant(table: Table, shape: VariantShape, shared: Mapping[str, str]) -> Variant:
    system = table.text("system", shared["system"]).strip()
    item = table.text("item", shared["item"])
    if not item.strip():
        raise PromptError(table.at("item"), "is missing, here and at the top of the file")
    demonstrations = table.get("demonstrations", bool, "true or false")
    template = read_template(item, table.at("item"), needed=shape.needed, optional=shape.optional)
    steps = read_steps(table, shape)
    variant = Variant(
        system=system,
        system_with_caption=table.text("system_with_caption", system).strip(),
        system_with_image=table.text("system_with_image", "").strip(),
        item=template,
        steps=steps,
        demonstrations=True if demonstrations is None else demonstrations,
        correct_from=table.number("correct_from", 0, 1, 0.5),
        prediction_words=table.integer("prediction_words", 1, MAX_WORDS, MAX_WORDS),
        delimiters=_delimiters(template, steps),
    )
    table.finish()
    return variant


def _delimiters(item: Template, steps: tuple[Step, ...]) -> Delimiters:
    """Return field labels, openings, and labels behind openings that have no colon."""
    openings = [step.opening for step in steps if step.opening]
    names = (*item.field_labels, *(text[:-1].rstrip() for text in openings if text.endswith(":")))
    announcing = (step.opening.rstrip(": ") for step in steps if step.labels and step.opening.rstrip(": "))
    return Delimiters(
        names=tuple(dict.fromkeys(names)),
        openings=tuple(dict.fromkeys(text for text in openings if not text.endswith(":"))),
        labels=tuple(dict.fromkeys(label for step in steps for label in step.labels)),
        announcing=tuple(dict.fromkeys(announcing)),
    )


def _order(table: Table, default: ReferenceOrder) -> ReferenceOrder:
    name = table.text("order", default)
    try:
        return ReferenceOrder(name)
    except ValueError:
        known = ", ".join(ReferenceOrder)
        raise PromptError(table.at("order"), f"must be one of {known}, not {quoted(name)}") from None


def _references(table: Table | None) -> ReferenceForm:
    default = ReferenceForm()
    if table is None:
        return default
    fields = frozenset({"reference"})
    counts = frozenset({"count", "total"})
    form = ReferenceForm(
        plain=table.text("plain", default.plain),
        counted=table.text("counted", default.counted),
        separator=table.text("separator", default.separator),
        most=table.integer("most", 1, _MAX_REFERENCES, default.most),
        most_counted=table.integer("most_counted", 1, _MAX_REFERENCES, default.most_counted),
        order=_order(table, default.order),
    )
    read_template(form.plain, table.at("plain"), needed=fields, optional=frozenset())
    read_template(form.counted, table.at("counted"), needed=fields, optional=counts)
    for key, text in (("plain", form.plain), ("counted", form.counted), ("separator", form.separator)):
        if "\n" in text:
            raise PromptError(table.at(key), "references are written in one line")
    table.finish()
    return form


class PromptLibrary:
    """Prompt files by NAME/VERSION. It never changes: `with_file` makes another one.

    Args:
        files: In the order in which `files` lists them.

    Raises:
        PromptError: Two different files have the same name and version.
    """

    def __init__(self, files: Iterable[PromptFile] = ()) -> None:
        self._files: dict[str, PromptFile] = {}
        for file in files:
            if self._files.setdefault(file.title, file).digest != file.digest:
                raise PromptError(
                    "version", f"another {file.title} is there already; give this one a version of its own"
                )

    def with_file(self, file: PromptFile) -> "PromptLibrary":
        """Return a library with this file too; raise PromptError where another one has its name and version."""
        return PromptLibrary((*self._files.values(), file))

    def files(self) -> tuple[PromptFile, ...]:
        """Return all of them, those of the package first."""
        return tuple(self._files.values())

    def find(self, metric: str, prompt: str) -> PromptFile:
        """Return the file that a `prompt` parameter means.

        Args:
            metric: Which it has to fit; "synthetic" for synthetic answers.
            prompt: "" for the metric's own, NAME/VERSION, NAME/VERSION@DIGEST (8 hex digits or more), or a whole file.

        Raises:
            PromptError: There is none of that name or digest, it belongs to another metric, or cannot be read.
        """
        match = _NAMED.fullmatch(prompt or _DEFAULTS[metric])
        file = _inline(prompt) if match is None else self._named(match["title"], (match["digest"] or "").lower())
        if file.metric != metric:
            raise PromptError("", f"{file.title} is a prompt of {file.metric}, not of {metric}")
        return file

    def _named(self, title: str, digest: str) -> PromptFile:
        file = self._files.get(title)
        if file is None:
            known = f"known: {', '.join(sorted(self._files))}"
            raise PromptError("", f"{title} is not known here; {_replacement(title) or known}")
        if not file.digest.startswith(digest):
            raise PromptError("", f"{title} has the digest {file.digest} here, {digest} is asked for")
        return file

    def parameter(self, file: PromptFile) -> str:
        """The `prompt` parameter that means exactly this file: NAME/VERSION@DIGEST if it is here, else its text."""
        known = self._files.get(file.title)
        return f"{file.title}@{file.digest}" if known is not None and known.digest == file.digest else file.text


def _replacement(title: str) -> str:
    """Say which prompt of the package came after an earlier one of its name; "" where there is none."""
    name, _, version = title.partition("/")
    later = next((own for own in _DEFAULTS.values() if own.startswith(f"{name}/")), "")
    if not later or int(version) >= int(later.partition("/")[2]):
        return ""
    return f"{later} replaced it: ask for that, or give the text of the file"


def _inline(text: str) -> PromptFile:
    found = _read_once(text)
    if isinstance(found, PromptError):
        raise copy(found)  # each raised one keeps the frames that it went through
    return found


@lru_cache(maxsize=64)
def _read_once(text: str) -> PromptFile | PromptError:
    """Reading takes some 10 ms, and each call of a client brings the same text, right or wrong."""
    try:
        return _read_inline(text)
    except PromptError as error:
        return error.with_traceback(None)


def _read_inline(text: str) -> PromptFile:
    if len(text) > MAX_PROMPT_BYTES:
        raise PromptError("", f"has {len(text)} characters; a prompt file may have {MAX_PROMPT_BYTES} bytes")
    if "=" not in text:
        raise PromptError("", f"{quoted(text)} is neither NAME/VERSION[@DIGEST] nor the text of a prompt file")
    return read_prompt(text.encode(errors="surrogatepass"))  # which is no UTF-8, and is told so


def _of_package() -> PromptLibrary:
    entries = sorted(files(__package__).iterdir(), key=lambda entry: entry.name)
    return PromptLibrary(read_prompt(entry.read_bytes()) for entry in entries if entry.name.endswith(".toml"))


PACKAGE_PROMPTS: Final = _of_package()
"""The files that come with the server."""
