"""Texts that a careless reader is slow at, in JSON and as a model might write them.

Each function takes a size, and returns a text of about as many characters.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

Shape: TypeAlias = Callable[[int], str]


def _repeated(part: str, before: str = "", after: str = "") -> Shape:
    return lambda size: before + part * (size // len(part)) + after


def _nested(opening: str, closing: str, middle: str = "") -> Shape:
    return lambda size: opening * (size // len(opening + closing)) + middle + closing * (size // len(opening + closing))


def _numbered(part: str, before: str, after: str) -> Shape:
    return lambda size: before + "".join(part % number for number in range(size // len(part % 9999))) + after


JSON: Final[Mapping[str, Shape]] = {
    "names": _numbered('"name%d":0,', "{", '"x":0}'),
    "names of which the last is there twice": _numbered('"name%d":0,', "{", '"x":0,"x":0}'),
    "names that are all the same": _repeated('"x":0,', "{", '"x":0}'),
    "names that differ at their end": _numbered('"' + "x" * 200 + '%d":0,', "{", '"x":0}'),
    "objects with a name twice": _repeated("[[{}],", '{"x":', '{"x":0,"x":0}'),
    "one long name": _repeated("x", '{"', '":0}'),
    "lists that never end": _repeated("[", '{"x":'),
    "objects that never end": _repeated('{"x":'),
    "nested lists": _nested("[", "]"),
    "nested objects": _nested('{"x":', "}", "0"),
    "zeros": _repeated("0,", '{"x":[', "0]}"),
    "empty lists": _repeated("[],", '{"x":[', "0]}"),
    "empty objects": _repeated("{},", '{"x":[', "0]}"),
    "empty texts": _repeated('"",', '{"x":[', "0]}"),
    "escapes": _repeated(r"\u0041", '{"x":"', '"}'),
    "halves of pairs": _repeated(r"\ud800", '{"x":"', '"}'),
    "backslashes": _repeated(r"\\", '{"x":"', '"}'),
    "quotes": _repeated(r"\"", '{"x":"', '"}'),
    "a text that never ends": _repeated("x", '{"x":"'),
    "texts that never end": _repeated('"x', "{"),
    "blanks": _repeated(" ", '{"x":', "0}"),
    "lines": _repeated("\n", '{"x":', "x}"),
    "one long whole number": _repeated("9", '{"x":', "}"),
    "long whole numbers": _repeated("9" * 4000 + ",", '{"x":[', "0]}"),
    "one long fraction": _repeated("1", '{"x":0.', "}"),
    "exponents": _repeated("1e999,", '{"x":[', "0]}"),
    "one long exponent": _repeated("9", '{"x":1e', "}"),
    "NaN": _repeated("NaN,", '{"x":[', "0]}"),
}
"""Bodies, of which most are no message of any method."""

REQUESTS: Final[Mapping[str, Shape]] = {
    "empty items": _repeated("{},", '{"items":[', "{}]}"),
    "empty items and a fault": _repeated("{},", '{"items":[', "7]}"),
    "references and a fault": _repeated('"",', '{"items":[{"references":[', "7]}]}"),
    "items and one with a field twice": _repeated(
        '{"id":"x"},', '{"items":[', '{"syntheticAnswers":[],"synthetic_answers":[]}]}'
    ),
    "metrics": _repeated('{"smile":{}},', '{"metrics":[', '{"smile":{"preset":"x"}}]}'),
    "pictures": _repeated("A", '{"items":[{"images":[{"data":"', '="}]}]}'),
    "an unknown field": _repeated("x", '{"', '":0}'),
}
"""Requests for scores, the most of them with one fault at their end."""

COMPLETIONS: Final[Mapping[str, Shape]] = {
    "boxes that never end": _repeated(r"\boxed{"),
    "boxes in boxes": _nested(r"\boxed{", "}", "x"),
    "boxes": _repeated(r"\boxed{x}"),
    "boxes without braces": _repeated(r"\boxed x"),
    "boxes of long words": _repeated("\\boxed " + "x" * 99 + "{"),
    "openings of boxes": _repeated(r"\boxed   "),
    "braces that never end": _repeated("{"),
    "braces in a box": _nested("{", "}"),
    "closing braces": _repeated("}"),
    "backslashes": _repeated("\\"),
    "openings of tags": _repeated("<answer>"),
    "ends of tags": _repeated("</answer>"),
    "tags": _repeated("<answer>x</answer>"),
    "tags in tags": _nested("<answer>", "</answer>"),
    "starts of thinking": _repeated("<think>"),
    "ends of thinking": _repeated("</think>"),
    "thinking": _repeated("<think>x</think>"),
    "ends of thinking in brackets": _repeated("[/THINK]"),
    "less than": _repeated("<"),
    "channels": _repeated("<|channel|>final<|message|>"),
    "channels that never speak": _repeated("<|channel|>" + "x" * 220),
    "phrases": _repeated("the answer is "),
    "phrases with stars": _repeated("answer***"),
    "phrases of one line each": _repeated("#### \n"),
    "final": _repeated("final "),
    "blanks": _repeated(" ", "x", "x"),
    "tabs and lines": _repeated("\t\n", "x", "x"),
    "dollars": _repeated("$", "the answer is "),
    "stars": _repeated("*", "the answer is "),
    "fences": _repeated("```\n", "the answer is "),
    "texts in texts": _nested(r"\text{", "}", "x"),
    "full stops": _repeated("a.", "the answer is "),
    "closing words": _repeated("I hope it is correct. ", "the answer is "),
}
"""Of models."""
