"""SMILE once more, written from its definition alone, in plain loops; imports nothing of the project.

Shared with the project are only the named rule for lemmas (lemminflect) and the built encoder's files, which are read
here with onnxruntime and tokenizers directly: every text among texts of its own length, never padded.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from lemminflect import getAllLemmas
from tokenizers import Tokenizer

MAX_TOKENS = 256
PRESETS = ("v1", "fast", "one_pass", "whole", "paper", "reference_code")


class Encoder:
    """Unit vectors and token vectors of texts."""

    def __init__(self, directory: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(directory / "1" / "model.onnx"), options)
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._vectors: dict[str, np.ndarray] = {}
        self._tokens: dict[str, list[tuple[int, int, np.ndarray]]] = {}

    def learn(self, texts: set[str]) -> None:
        """Embeds what is not known yet, in groups of equal length."""
        by_length: dict[int, list[tuple[str, list[int]]]] = {}
        for text in sorted(texts - self._vectors.keys()):
            ids = self._tokenizer.encode(text).ids
            by_length.setdefault(len(ids), []).append((text, ids))
        for group in by_length.values():
            for start in range(0, len(group), 32):
                part = group[start : start + 32]
                ids = np.array([ids for _, ids in part], dtype=np.int64)
                (vectors,) = self._session.run(
                    ["sentence_embedding"], {"input_ids": ids, "attention_mask": np.ones_like(ids)}
                )
                for (text, _), vector in zip(part, vectors, strict=True):
                    self._vectors[text] = vector.astype(np.float64) / np.linalg.norm(vector.astype(np.float64))

    def vector(self, text: str) -> np.ndarray:
        """float64[dims] of length 1."""
        if text not in self._vectors:
            self.learn({text})
        return self._vectors[text]

    def is_cut(self, text: str) -> bool:
        """Whether it has more tokens than are read."""
        return bool(self._tokenizer.encode(text).overflowing)

    def tokens(self, text: str) -> list[tuple[int, int, np.ndarray]]:
        """Begin, end (characters) and vector of every token that is not special."""
        if text in self._tokens:
            return self._tokens[text]
        encoding = self._tokenizer.encode(text)
        ids = np.array([encoding.ids], dtype=np.int64)
        (vectors,) = self._session.run(["token_embeddings"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        self._tokens[text] = [
            (begin, end, vector.astype(np.float16).astype(np.float64))
            for (begin, end), special, vector in zip(
                encoding.offsets, encoding.special_tokens_mask, vectors[0], strict=True
            )
            if not special
        ]
        return self._tokens[text]


@dataclass(frozen=True)
class Word:
    """A word of N(x) and the characters of the raw text from its first to its last letter."""

    lemma: str
    begin: int
    end: int


def words_of(text: str) -> list[Word]:
    """N(text), character by character."""
    words: list[Word] = []
    letters, begin, end = "", 0, 0

    def finish() -> None:
        nonlocal letters
        if letters:
            words.append(Word(lemma_of(letters), begin, end))
        letters = ""

    for position, character in enumerate(text):
        if character.isspace():
            finish()
        for low in character.lower():
            if low.isalnum() or low == "_":
                begin = begin if letters else position
                letters, end = letters + low, position + 1
    finish()
    if not words:  # no word is left: the raw text, in lower case
        begin = 0
        for part in text.lower().split():
            begin = text.lower().index(part, begin)
            words.append(Word(part, begin, begin + len(part)))
            begin += len(part)
    return words


def lemma_of(word: str) -> str:
    """First noun lemma, else verb, adjective, adverb, else the word."""
    lemmas = getAllLemmas(word)
    for part_of_speech in ("NOUN", "VERB", "ADJ", "ADV"):
        if part_of_speech in lemmas:
            return str(lemmas[part_of_speech][0])
    return word


def text_of(text: str, words: list[Word]) -> str:
    """N(text) as one text."""
    any_letter = any(c.isalnum() or c == "_" for c in text.lower())
    return " ".join(word.lemma for word in words) if any_letter else text.lower()


def windows_of(words: list[Word], lengths: set[int]) -> dict[int, dict[str, list[int]]]:
    """Window length to windows to positions: 512 windows of the first 1 024 words, and the first one of each length."""
    words = words[:1024]
    found: dict[int, dict[str, list[int]]] = {n: {} for n in sorted({min(n, len(words)) for n in lengths})}
    for start in range(len(words)):
        for n, windows in found.items():
            if start + n <= len(words):
                window = " ".join(word.lemma for word in words[start : start + n])
                if window in windows or start == 0 or sum(map(len, found.values())) < 512:
                    windows.setdefault(window, []).append(start)
    return found


@dataclass
class Reference:
    """What SMILE says of one reference; `near` are the windows whose similarity is within 1e-3 of the best."""

    sentence: float
    keyword: float
    exact: float
    lexical: float
    score: float
    harmonic_mean: float | None
    near: set[str]


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / math.sqrt(a @ a) / math.sqrt(b @ b))


def tokens_of_words(encoder: Encoder, text: str, words: list[Word]) -> list[list[np.ndarray]]:
    """For every word the vectors of the tokens that cover some of its characters; none where it was not read."""
    tokens = encoder.tokens(text)
    return [[vector for begin, end, vector in tokens if begin < w.end and end > w.begin] for w in words]


def mean_of(parts: list[list[np.ndarray]]) -> np.ndarray:
    """Of the tokens of some words."""
    return np.mean([vector for part in parts for vector in part], axis=0)  # type: ignore[no-any-return] # of arrays


def in_context(
    encoder: Encoder, text: str, words: list[Word], of_word: list[list[np.ndarray]], n: int, keyword: np.ndarray
) -> dict[str, float]:
    """Every window's cosine with a keyword, in context; e(y) for the first one where none was read whole."""
    close: dict[str, float] = {}
    for start in range(len(words) - n + 1):
        parts = of_word[start : start + n]
        if all(parts):
            window = " ".join(word.lemma for word in words[start : start + n])
            close[window] = max(close.get(window, -2.0), cosine(mean_of(parts), keyword))
    return close or {" ".join(word.lemma for word in words[:n]): cosine(encoder.vector(text), keyword)}


def shortlist(
    encoder: Encoder, text: str, words: list[Word], n: int, windows: dict[str, list[int]], keywords: list[np.ndarray]
) -> set[str]:
    """The three windows that are closest in context, and those within 1e-3 of the third."""
    if len(windows) <= 3 or not keywords:
        return set(windows) if len(windows) <= 3 else set()
    of_word = tokens_of_words(encoder, text, words)
    closeness: dict[str, float] = {}
    for window, starts in windows.items():
        for start in starts:
            parts = of_word[start : start + n]
            if all(parts):
                value = max(cosine(mean_of(parts), keyword) for keyword in keywords)
                closeness[window] = max(closeness.get(window, -2.0), value)
    if not closeness:
        return set(list(windows)[:3])
    third = sorted(closeness.values(), reverse=True)[: min(3, len(closeness))][-1]
    return {window for window, value in closeness.items() if value >= third - 1e-3}


def pieces_of(encoder: Encoder, answer: str) -> list[tuple[int, str]]:
    """Where the pieces of a long answer begin, and what the encoder is given from there on."""
    text = answer.rstrip()  # all of it: the rows are shorter than what is read at the most
    pieces = [(0, text)]
    while True:
        begin, given = pieces[-1]
        if not encoder.is_cut(given):
            if begin + len(given) == len(text):
                return pieces
            length = len(given)
        else:
            length = max(end for _, end, _ in encoder.tokens(given))
            if begin + length >= len(text):
                return pieces
        at = int(min(begin + length - 0.25 * length, len(text) - 0.9 * length))
        words = [i for i in range(max(begin + 1, at - 63), at + 1) if text[i - 1].isspace() and not text[i].isspace()]
        at = words[-1] if words else at
        pieces.append((at, text[at : at + max(256, int(1.5 * length))]))


def windows_of_pieces(
    encoder: Encoder, answer: str, n: int, asked: list[np.ndarray]
) -> tuple[dict[str, float], list[np.ndarray]]:
    """Windows of `n` words of a long answer by how close they come, in context, to any of `asked`; e of the pieces."""
    close: dict[str, float] = {}
    sentences = []
    words = words_of(answer)[:2048]
    for begin, given in pieces_of(encoder, answer):
        sentences.append(encoder.vector(given))
        tokens = encoder.tokens(given)
        to = max(end for _, end, _ in tokens)
        inside = [i for i, word in enumerate(words) if word.begin >= begin and word.end <= begin + to]
        parts = {
            i: [v for b, e, v in tokens if begin + b < words[i].end and begin + e > words[i].begin] for i in inside
        }
        for start in inside:
            vectors = [parts.get(i, []) for i in range(start, start + n)]
            window = " ".join(word.lemma for word in words[start : start + n])
            if all(vectors):
                value = max(cosine(mean_of(vectors), keyword) for keyword in asked)
                close[window] = max(close.get(window, -2.0), value)
    return close, sentences


def whole_of(encoder: Encoder, references: tuple[str, ...], prediction: str) -> list[Reference]:
    """As `references_of`, of preset `whole`; as `fast` where the encoder reads the answer to its end."""
    if not encoder.is_cut(prediction):
        return references_of(encoder, references, prediction, "fast")
    said = [word.lemma for word in words_of(prediction)][:2048]
    keywords = {reference: text_of(reference, words_of(reference)) for reference in references}
    held = {text for text in keywords.values() if f" {text} " in f" {' '.join(said)} "}
    results = []
    for reference in references:
        lemmas = [word.lemma for word in words_of(reference)]
        n = min(len(lemmas), len(said))
        vector = encoder.vector(keywords[reference])
        asked = [
            encoder.vector(keywords[other])
            for other in references
            if keywords[other] not in held and min(len(words_of(other)), len(said)) == n
        ]
        close, sentences = windows_of_pieces(encoder, prediction, n, asked or [vector])
        if keywords[reference] in held:
            near = {keywords[reference]: 1.0}
        else:
            third = sorted(close.values(), reverse=True)[:3][-1]
            chosen = sorted((w for w, c in close.items() if c >= third - 1e-3), key=close.__getitem__)[-16:]
            near = {window: cosine(encoder.vector(window), vector) for window in chosen}
        s = (1 + max(cosine(sentence, encoder.vector(reference)) for sentence in sentences)) / 2
        k = (1 + max(near.values())) / 2
        m = len(set(lemmas) & set(said)) / len(set(lemmas))
        lexical = (m + k) / 2
        best = {window for window, c in near.items() if c >= max(near.values()) - 1e-3}
        results.append(Reference(s, k, m, lexical, 0.3 * s + 0.7 * lexical, None, best))
    return results


def references_of(encoder: Encoder, references: tuple[str, ...], prediction: str, preset: str) -> list[Reference]:
    """Every reference's terms and score under a preset, with its default weight.

    Under `fast`, a window that is the reference itself always counts, and the others are ranked for the references that
    are not said word for word.
    """
    if preset == "whole":
        return whole_of(encoder, references, prediction)
    said = words_of(prediction)
    said_lemmas = [word.lemma for word in said]
    asked = [words_of(reference) for reference in references]
    windows = windows_of(said, {len(words) for words in asked})
    total = min(len(said), 1024)
    if preset == "fast":
        looked_at = {
            n: shortlist(
                encoder,
                prediction,
                said[:1024],
                n,
                found,
                [
                    encoder.vector(text_of(reference, words))
                    for reference, words in zip(references, asked, strict=True)
                    if min(len(words), total) == n and text_of(reference, words) not in found
                ],
            )
            for n, found in windows.items()
        }
    elif preset == "one_pass":
        looked_at = {n: set() for n in windows}
    else:
        looked_at = {n: set(found) for n, found in windows.items()}
    of_word = tokens_of_words(encoder, prediction, said[:1024]) if preset == "one_pass" else []
    raw = preset == "reference_code"
    encoder.learn({prediction, *references, *(text for texts in looked_at.values() for text in texts)})
    results = []
    for reference, words in zip(references, asked, strict=True):
        lemmas = [word.lemma for word in words]
        keyword_vector = encoder.vector(text_of(reference, words))
        n = min(len(words), total)
        itself = {text_of(reference, words)} & set(windows[n])
        encoder.learn(itself)
        close = {w: cosine(encoder.vector(w), keyword_vector) for w in looked_at[n] | itself}
        if preset == "one_pass" and not itself:
            close = in_context(encoder, prediction, said[:1024], of_word, n, keyword_vector)
        best = max(close.values())
        s = cosine(encoder.vector(prediction), encoder.vector(reference))
        k = best
        if not raw:
            s, k = (1 + s) / 2, (1 + k) / 2
        if preset == "paper":
            m = float(any(said_lemmas[i : i + len(lemmas)] == lemmas for i in range(len(said_lemmas))))
        elif raw:
            m = sum(lemma in said_lemmas for lemma in lemmas) / len(lemmas)
        else:
            m = len(set(lemmas) & set(said_lemmas)) / len(set(lemmas))
        lexical = (m + k) / 2
        score = (s + lexical) / 2 if raw else 0.3 * s + 0.7 * lexical
        defined = raw and min(s, lexical) > 0
        hm = 2 * s * lexical / (s + lexical) if defined else None
        results.append(Reference(s, k, m, lexical, score, hm, {w for w, c in close.items() if c >= best - 1e-3}))
    return results


def bin_of(score: float) -> int:
    """0 to 5 in sixths."""
    return next((b for b in (5, 4, 3, 2, 1) if score * 6 >= b), 0)
