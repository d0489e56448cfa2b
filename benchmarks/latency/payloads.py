"""Make payloads for `open_loop`: rows, requests, and the texts to encode."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.common.rows import Row, read_rows
from numpy.typing import NDArray
from tokenizers import Tokenizer

from gradewire_models.catalog.loading import default_model
from gradewire_models.repository.built import default_repository, load_built
from gradewire_models.runtime import cpu_session_options, onnxruntime
from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2
from gradewire_server.metrics.smile.texts import smile_texts

PRESETS = {"v1": types_pb2.SMILE_PRESET_V1, "fast": types_pb2.SMILE_PRESET_FAST}


def open_session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    """Open a graph that runs on `threads` threads."""
    return onnxruntime.InferenceSession(path, cpu_session_options(threads), providers=["CPUExecutionProvider"])


def padded(texts: Sequence[Sequence[int]]) -> dict[str, NDArray[np.int64]]:
    """Return token ids as an encoder's inputs, both int64 [texts, longest]; pad shorter texts with zeros."""
    ids = np.zeros((len(texts), max(map(len, texts))), np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    return {"input_ids": ids, "attention_mask": mask}


def metric(preset: str) -> types_pb2.MetricSpec:
    """Return the metric SMILE with a preset."""
    return types_pb2.MetricSpec(smile=types_pb2.SmileParameters(preset=PRESETS[preset]))


def score_request(row: Row, preset: str) -> scoring_pb2.ScoreRequest:
    """Return a request to score a row."""
    item = types_pb2.Item(
        id=row["id"], question=row["question"], references=row["references"], prediction=row["prediction"]
    )
    return scoring_pb2.ScoreRequest(items=[item], metrics=[metric(preset)])


def prepare_request(rows: list[Row]) -> references_pb2.PrepareRequest:
    """Return a request that prepares the rows' references for both presets."""
    entries = [references_pb2.ReferenceEntry(question=row["question"], references=row["references"]) for row in rows]
    return references_pb2.PrepareRequest(entries=entries, metrics=[metric(preset) for preset in PRESETS])


def cold_texts(row: Row, preset: str) -> list[str]:
    """Return the texts to encode if references are prepared."""
    texts = smile_texts(row["prediction"], tuple(row["references"]), tuple(row["references"]))
    prepared = {*texts.sentences, *(keyword.text for keyword in texts.keywords)}
    windows: list[str] = []
    for found in () if texts.held else texts.candidates.values():
        windows += found if preset == "v1" else found[:3]
    return [row["prediction"], *(window for window in windows if window not in prepared)]


def pick(rows: list[Row], words: range, count: int, *, said: bool | None) -> list[Row]:
    """Return `count` rows with distinct predictions whose number of words is in `words`; exit if fewer rows fit.

    Unless the range starts with 1, longer predictions are cut. `said` is True if predictions must contain a reference
    verbatim, False if they must not, and None to allow both.
    """
    picked: dict[str, Row] = {}
    for row in rows:
        own = row["prediction"].split()
        text = " ".join(own[: words.stop - 1])
        if len(own) < words.start or (words.start == 1 and len(own) >= words.stop):
            continue
        held = bool(smile_texts(text, tuple(row["references"]), tuple(row["references"])).held)
        if said is None or held is said:
            picked.setdefault(text, {**row, "prediction": text})
    if len(picked) < count:
        raise SystemExit(f"only {len(picked)} rows fit. Lower --samples")
    return list(picked.values())[:count]


@dataclass(frozen=True)
class Rows:
    """The row for warm requests, and pools of rows for cold requests: two per rotation, one for each preset."""

    warm: Row
    cold: dict[str, list[Row]]


def pick_rows(data: Path, samples: int) -> Rows:
    """Return answers of at most 6 words, and of exactly 40 words with and without a verbatim reference.

    If an answer contains a reference, no window is embedded (docs/adr/0007), so both presets do the same work. Exit if
    the data is missing.
    """
    rows = read_rows(data, ("gpt35", "gpt4", "chatgpt", "fid", "newbing"))
    warm = next(row for row in rows if len(row["references"]) == 3 and 15 <= len(row["prediction"].split()) <= 20)
    cold = {
        "6 words": pick(rows, range(1, 7), 2 * samples, said=None),
        "40 words": pick(rows, range(40, 41), 2 * samples, said=False),
        "40 words, reference said": pick(rows, range(40, 41), 2 * samples, said=True),
    }
    return Rows(warm, cold)


class BareForward:
    """A single `session.run` per call, as in a user's own script."""

    def __init__(self, threads: int) -> None:
        built = load_built(default_repository(), default_model().name)
        self.output = built.sentence_output
        self.session = open_session(built.onnx_path, threads)
        self.tokenizer = Tokenizer.from_file(str(built.tokenizer_path))
        self.tokenizer.enable_truncation(built.max_tokens)
        self.tokenizer.enable_padding()

    def run(self, texts: Sequence[str]) -> None:
        """Tokenize and embed all texts in one batch."""
        encodings = self.tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encodings], np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        self.session.run([self.output], {"input_ids": ids, "attention_mask": mask})
