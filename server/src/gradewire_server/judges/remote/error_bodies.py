"""The reader of error bodies: the words, codes, status and wait that a server states, in a body of any shape."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

READ_CHARACTERS: Final = 4000
_MAX_DEPTH: Final = 8
_MAX_NODES: Final = 300
_MAX_LISTED: Final = 20

_SENTENCES: Final = (
    *("message", "msg", "loc", "detail", "details", "error", "errors", "error_msg", "error_description"),
    *("description", "title", "raw", "metadata", "innererror", "inner_error"),
)
"""Fields with the server's own words, in reading order. Other fields, such as `input`, may repeat the request."""
_CODES: Final = ("param", "code", "type", "error_type", "error_code", "reason", "reasons", "status", "__type")
_STATUSES: Final = ("code", "status", "status_code", "statuscode", "http_status", "error_code")
_MARKS: Final = ("flagged_input", "content_filter_result", "content_filter_results")
"""Fields that only the error of a content filter has."""
_WAIT: Final = "retrydelay"
_ANSWERS: Final = ("choices", "output", "content", "answers")
_PLAIN_TYPES: Final = frozenset({"error", "object"})

_STATUS_FORM: Final = re.compile("[3-5][0-9][0-9]")
_WAIT_FORM: Final = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")
_FILTER_CODES: Final = re.compile(
    r"content_?filter|content_policy|responsible_?ai|data_?inspection|guardrail|prohibited_content|invalid_prompt"
    r"|flagged_input",
    re.IGNORECASE,
)
_FILTER_WORDS: Final = re.compile(
    r"content (?:management |usage |safety )?polic|content[ _-]filter|\bflagged\b|usage polic|moderation\b"
    r"|safety (?:system|filter|setting|polic|reason)|inappropriate content|\bguardrail",
    re.IGNORECASE,
)
_CLEAR_WORDS: Final = (
    (402, r"insufficient[_ ](?:quota|credits?|balance|funds)|payment|billing|credit[_ ]balance"),
    (429, r"rate[_ -]?limit|too[_ -]many[_ -]requests|throttl|resource[_ ]?exhausted|quota"),
    (401, r"authentication|unauthenticated|unauthori[sz]ed|api[_ -]key"),
    (403, r"permission|forbidden|access[_ -]?denied"),
    (404, r"not[_ -]?found|does not exist"),
)
_VAGUE_WORDS: Final = (
    (503, r"overload|unavailable|capacity|server[_ -]?error|internal|time(?:d[_ -]?)?[ _-]?out|gateway|upstream"),
    (503, r"temporar|try again|api_error|provider returned error|loading"),
)
"""Words that a sentence about a wrong request may contain too."""
_WRONG_REQUEST: Final = ((400, r"invalid[_ ]request|bad[_ ]?request|invalid_argument|validation|unsupported"),)
"""Words that many servers also use as the type of other errors, beside a code that says more."""


def _patterns(*tables: tuple[tuple[int, str], ...]) -> tuple[tuple[int, re.Pattern[str]], ...]:
    return tuple((status, re.compile(words, re.IGNORECASE)) for table in tables for status, words in table)


_IN_CODES: Final = _patterns(_CLEAR_WORDS, _VAGUE_WORDS)
_IN_ANY_CODE: Final = _patterns(_WRONG_REQUEST)
_IN_WORDS: Final = _patterns(_CLEAR_WORDS, _WRONG_REQUEST, _VAGUE_WORDS)
_STATED_STATUS: Final = re.compile(
    r"(?:\b(?:status|code|https?)[\s:=(/1.]{1,6}|^\s*(?=\d{3}:))([45]\d\d)\b(?!\.\d)", re.IGNORECASE
)
_BAD_REQUEST: Final = 400
_ERROR_STATUSES: Final = range(300, 600)


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The contents of an error body.

    Attributes:
        sentences: The server's sentences, outermost first. They may quote the request.
        codes: The server's names for the error and for the parameter that is wrong.
        status: The HTTP status that the body states, or None.
        wait_s: Seconds to wait before a retry that the body states, or None.
    """

    sentences: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    status: int | None = None
    wait_s: float | None = None

    @property
    def words(self) -> str:
        """All codes and sentences as one text, cut to READ_CHARACTERS."""
        return " ".join((*self.codes, *self.sentences))[:READ_CHARACTERS]

    @property
    def likely_status(self) -> int:
        """The stated status, or the status that suits the codes, else the sentences; 400 if nothing suits."""
        if self.status is not None:
            return self.status
        codes = " ".join(self.codes)
        stated = next((int(found[1]) for each in self.sentences if (found := _STATED_STATUS.search(each))), None)
        return (
            _suiting(codes, _IN_CODES)
            or stated
            or _suiting(codes, _IN_ANY_CODE)
            or _suiting(self.words, _IN_WORDS)
            or _BAD_REQUEST
        )

    @property
    def names_a_filter(self) -> bool:
        """True if a code says that a content filter refused the request or the answer."""
        return any(_FILTER_CODES.search(code) for code in self.codes)

    @property
    def mentions_a_filter(self) -> bool:
        """True if a code or a sentence is about a content filter."""
        return self.names_a_filter or any(_FILTER_WORDS.search(sentence) for sentence in self.sentences)


def _suiting(words: str, patterns: tuple[tuple[int, re.Pattern[str]], ...]) -> int | None:
    return next((status for status, pattern in patterns if pattern.search(words)), None)


def read_error(content: bytes) -> ErrorBody:
    """Read an error body: JSON of any shape or plain text. A web page, broken JSON and no text give no words."""
    text = content[: READ_CHARACTERS * 16].decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    if text[:1] in {"{", "[", '"'}:
        parsed = parsed_json(content)
        return _collected({"error": parsed} if isinstance(parsed, str) else parsed)
    return ErrorBody() if text[:1] in {"", "<"} else ErrorBody((text[:READ_CHARACTERS].strip(),))


def parsed_json(content: bytes | str) -> Any:
    """Return a parsed JSON text, or None if the text is not JSON or is too deeply nested."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def error_in_success(parsed: Any) -> ErrorBody | None:
    """Return the error in a body whose status reports success, or None if the body has an answer or no error."""
    if isinstance(parsed, list):  # no API answers with a list, but Google's servers send errors in one
        found = (error_in_success(each) for each in parsed[:_MAX_LISTED] if isinstance(each, dict))
        return next((error for error in found if error is not None), None)
    return _error_in(parsed) if isinstance(parsed, dict) else None


def _error_in(parsed: Mapping[str, Any]) -> ErrorBody | None:
    choices = parsed.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, dict) and first.get("error"):
        return _collected(first["error"])
    answered = parsed.get("content") or (parsed.get("output") and parsed.get("status") != "failed")
    if answered or (isinstance(first, dict) and _has_text(first)):
        return None
    if parsed.get("error") or parsed.get("errors"):
        return _collected({name: parsed.get(name) for name in ("error", "errors", "code", "status", "message")})
    bare = _says_something(parsed) and not any(parsed.get(name) for name in _ANSWERS)
    return _collected(parsed) if bare else None


def _says_something(parsed: Mapping[str, Any]) -> bool:
    """Check for words outside of a field for errors. The message of Ollama's own API is an object, and an answer."""
    message = parsed.get("message", parsed.get("Message"))
    return bool(parsed.get("detail") or (isinstance(message, str) and message.strip()))


def _has_text(choice: Mapping[str, Any]) -> bool:
    message = choice.get("message")
    return bool(choice.get("text") or (isinstance(message, dict) and message.get("content")))


def _collected(parsed: Any) -> ErrorBody:
    sentences: list[str] = []
    codes: list[str] = []
    statuses: list[int] = []
    waits_s: list[float] = []
    for kind, value in _walk(parsed):
        if kind == "sentence":
            sentences.append(value)
        elif kind == "code":
            codes.append(value)
        elif kind == "status":
            statuses.append(value)
        else:
            waits_s.append(value)
    return ErrorBody(tuple(sentences), tuple(codes), statuses[0] if statuses else None, waits_s[0] if waits_s else None)


def _walk(root: Any) -> Iterator[tuple[str, Any]]:
    """Yield an error's parts. Limit depth and number of parts, because a server may send anything."""
    waiting: list[tuple[Any, int]] = [(root, 0)]
    visited = 0
    while waiting and visited < _MAX_NODES:
        part, depth = waiting.pop()
        visited += 1
        if isinstance(part, str):
            inner = parsed_json(part) if part[:1] in {"{", "["} else None
            if inner is None:
                if part.strip():
                    yield "sentence", part[:READ_CHARACTERS]
            elif depth < _MAX_DEPTH:
                waiting.append((inner, depth + 1))
        elif isinstance(part, list) and depth < _MAX_DEPTH:
            # pydantic's errors have locations such as ["body", 0], whose numbers say nothing.
            listed = [each for each in part[:_MAX_LISTED] if isinstance(each, (str, list, dict))]
            waiting += [(each, depth + 1) for each in reversed(listed)]
        elif isinstance(part, dict) and depth < _MAX_DEPTH:
            fields = {str(name).casefold(): value for name, value in part.items()}
            yield from _codes(fields)
            inner_parts = [fields[name] for name in _SENTENCES if isinstance(fields.get(name), (str, list, dict))]
            waiting += [(each, depth + 1) for each in reversed(inner_parts)]


def _codes(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in _CODES:
        listed = fields.get(name)
        for value in listed[:_MAX_LISTED] if isinstance(listed, list) else [listed]:
            if isinstance(value, str) and value.strip() and value.casefold() not in _PLAIN_TYPES:
                yield "code", value[:READ_CHARACTERS]
    yield from (("code", name) for name in _MARKS if fields.get(name))
    for name in _STATUSES:
        value = fields.get(name)
        number = int(value) if isinstance(value, str) and _STATUS_FORM.fullmatch(value) else value
        if isinstance(number, int) and number in _ERROR_STATUSES:
            yield "status", number
            break
    wait = fields.get(_WAIT)
    form = _WAIT_FORM.fullmatch(wait) if isinstance(wait, str) else None
    if form is not None and math.isfinite(float(form[1])):
        yield "wait", float(form[1])
