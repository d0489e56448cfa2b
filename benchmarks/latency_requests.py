"""What latency.py sends: rows picked from the data, requests, and the texts that a cold request has to encode."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from gradewire_models.repository import default_repository, load_built
from gradewire_models.runtime import onnxruntime
from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2
from gradewire_server.metrics.words import normalise
from rows import Row, read_rows
from smile_workers import MODEL, window_texts

PRESETS = {"v1": types_pb2.SMILE_PRESET_V1, "fast": types_pb2.SMILE_PRESET_FAST}


def metric(preset: str) -> types_pb2.MetricSpec:
    """SMILE with a preset."""
    return types_pb2.MetricSpec(smile=types_pb2.SmileParameters(preset=PRESETS[preset]))


def score_request(row: Row, preset: str) -> scoring_pb2.ScoreRequest:
    """One row as a request."""
    item = types_pb2.Item(
        id=row["id"], question=row["question"], references=row["references"], prediction=row["prediction"]
    )
    return scoring_pb2.ScoreRequest(items=[item], metrics=[metric(preset)])


def prepare_request(rows: list[Row]) -> references_pb2.PrepareRequest:
    """Gets the rows' references ready for both presets."""
    entries = [references_pb2.ReferenceEntry(question=row["question"], references=row["references"]) for row in rows]
    return references_pb2.PrepareRequest(entries=entries, metrics=[metric(preset) for preset in PRESETS])


def cold_texts(row: Row, preset: str) -> list[str]:
    """What has to go through the encoder once the references are prepared (fast: as many windows as it shortlists)."""
    prediction = normalise(row["prediction"])
    references = [normalise(reference) for reference in row["references"]]
    prepared = {*row["references"], *(reference.text for reference in references)}
    windows: list[str] = []
    for reference in {len(reference.words): reference for reference in references}.values():
        found = [window for window in window_texts(prediction, reference) if window not in prepared]
        windows += found if preset == "v1" else found[:3]
    return list(dict.fromkeys([row["prediction"], *windows]))


def pick(rows: list[Row], fits: Callable[[int], bool], words: int, count: int) -> list[Row]:
    """Rows with distinct predictions whose length fits, cut to `words` words."""
    picked: dict[str, Row] = {}
    for row in rows:
        own = row["prediction"].split()
        if fits(len(own)):
            text = " ".join(own[:words])
            picked.setdefault(text, {**row, "prediction": text})
    if len(picked) < count:
        raise SystemExit(f"only {len(picked)} fitting rows; ask for fewer with --samples")
    return list(picked.values())[:count]


@dataclass(frozen=True)
class Rows:
    """Rows to send: one for the warm requests; short and long ones, two per rotation (one for each preset)."""

    warm: Row
    short: list[Row]
    long: list[Row]


def pick_rows(data: Path, samples: int) -> Rows:
    """Short answers of at most 6 words, long ones of exactly 40; ends the program where the data is not there."""
    rows = read_rows(data, ("gpt35", "gpt4", "chatgpt", "fid", "newbing"))
    warm = next(row for row in rows if len(row["references"]) == 3 and 15 <= len(row["prediction"].split()) <= 20)
    short = pick(rows, lambda count: 1 <= count <= 6, 6, 2 * samples)
    return Rows(warm, short, pick(rows, lambda count: count >= 40, 40, 2 * samples))


class BareForward:
    """One `session.run` per call, as a script of one's own would have it."""

    def __init__(self, threads: int) -> None:
        built = load_built(default_repository(), MODEL)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.output = built.sentence_output
        self.session = onnxruntime.InferenceSession(built.onnx_path, options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(built.tokenizer_path))
        self.tokenizer.enable_truncation(built.max_tokens)
        self.tokenizer.enable_padding()

    def run(self, texts: list[str]) -> None:
        """Tokenizes and embeds all texts in one batch."""
        encodings = self.tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encodings], np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        self.session.run([self.output], {"input_ids": ids, "attention_mask": mask})
