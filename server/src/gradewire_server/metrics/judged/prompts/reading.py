"""From the bytes of a prompt file to a PromptFile."""

import hashlib
import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Any, Final

from gradewire_proto.conventions.prompt_files import MAX_DOTS_IN_LINE, MAX_PROMPT_BYTES
from gradewire_server.domain.quoting import quoted, shortened
from gradewire_server.metrics.judged.neutralise import Delimiters
from gradewire_server.metrics.judged.prompts.demonstrations import read_demonstrations
from gradewire_server.metrics.judged.prompts.file import PromptFile, ReferenceForm, ReferenceOrder, Step, Variant
from gradewire_server.metrics.judged.prompts.shapes import SHAPES, VariantShape
from gradewire_server.metrics.judged.prompts.steps import read_steps
from gradewire_server.metrics.judged.prompts.table import PromptError, Table
from gradewire_server.metrics.judged.prompts.template import Template, read_template
from gradewire_server.metrics.text.word_split import MAX_WORDS

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


def read_prompt(data: bytes) -> PromptFile:
    """Reads and checks a prompt file; docs/reference/prompt-files.md describes the form.

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
    """Field labels, openings, and labels behind openings that have no colon."""
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
