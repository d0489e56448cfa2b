"""The project's SMILE equals the oracle's on every row, and stops to as soon as any term of it is changed."""

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.conftest import Grade
from tests.oracle.oracle import PRESETS, Reference, bin_of, words_of
from tests.oracle.oracle import windows_of as oracle_windows
from tests.oracle.rows import Row

import gradewire_server.metrics
from gradewire_server.domain.items import MetricResult, ResultWarning, Status
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.metrics.smile.texts import windows_of
from gradewire_server.metrics.text.normalise import normalise

TOLERANCE = 1e-3
Truth = dict[str, list[list[Reference]]]


def differences(found: list[MetricResult], truth: list[list[Reference]]) -> list[str]:
    """Every way in which a row differs; names of references and windows may differ only where values are that close."""
    wrong = []
    for index, (result, references) in enumerate(zip(found, truth, strict=True)):
        if result.status is not Status.OK or result.parts is None or result.matched_reference is None:
            wrong.append(f"row {index}: {result.status.name}")
            continue
        parts, best = result.parts, max(reference.score for reference in references)
        named = references[result.matched_reference]
        values = {
            "score": (result.score, best),
            "score of the named reference": (result.score, named.score),
            "sentence": (parts.sentence, named.sentence),
            "keyword": (parts.keyword, named.keyword),
            "exact": (parts.exact, named.exact),
            "lexical": (parts.lexical, named.lexical),
            "harmonic mean": (parts.harmonic_mean, named.harmonic_mean),
        }
        for name, (value, expected) in values.items():
            undefined = value is None or expected is None
            if value is not expected if undefined else abs(value - expected) > TOLERANCE:
                wrong.append(f"row {index}: {name} {value}, not {expected}")
        if parts.best_window not in named.near:
            wrong.append(f"row {index}: window {parts.best_window!r} is not among {named.near}")
        bins = {bin_of(best - TOLERANCE), bin_of(best + TOLERANCE)}
        if parts.bin not in bins or parts.correct not in {bin_ >= 4 for bin_ in bins}:
            wrong.append(f"row {index}: bin {parts.bin}, correct {parts.correct}, not {bins}")
    return wrong


@pytest.mark.parametrize("preset", PRESETS)
def test_every_row_equals_the_oracles(grade: Grade, truth: Truth, preset: str) -> None:
    assert len(truth[preset]) >= 300
    assert differences(grade(REGISTRY["smile"], preset), truth[preset]) == []


def test_windows_of_more_lengths_than_the_limit_are_the_oracles() -> None:
    text = " ".join(f"w{index * index % 90}" for index in range(518))
    lengths = set(range(1, 516))
    expected = oracle_windows(words_of(text), lengths)
    assert windows_of(normalise(text).words, lengths).by_length == {n: tuple(found) for n, found in expected.items()}


def test_limits_are_said(grade: Grade, rows: list[Row]) -> None:
    found = grade(REGISTRY["smile"], "v1")
    cut = [
        row.prediction for row, result in zip(rows, found, strict=True) if ResultWarning.TRUNCATED in result.warnings
    ]
    assert len(cut) == 3  # the three long rows
    assert min(map(len, cut)) > 1000


# File, what stands in it (once), what is put in its place, a preset that must notice.
MUTANTS = {
    "weight": ("smile/formula.py", "default_with(preset))", "default_with(preset)) + 0.01", "v1"),
    "weight of the reference code": (
        "smile/formula.py",
        "default_with(preset)",
        'default_with("v1")',
        "reference_code",
    ),
    "weights sum to one": ("smile/formula.py", "(1 - weight)", "0.69", "v1"),
    "sentence": ("smile/formula.py", "weight * sentence +", "weight * keyword +", "v1"),
    "similarity": ("smile/formula.py", "(1.0 + clipped) / 2.0", "clipped", "v1"),
    "raw cosine": ("smile/formula.py", "return clipped if", "return (1.0 + clipped) / 2.0 if", "reference_code"),
    "exact in lexical": ("smile/formula.py", "* (exact + keyword) / 2", "* keyword", "v1"),
    "keyword in lexical": ("smile/formula.py", "* (exact + keyword) / 2", "* exact", "v1"),
    "half": ("smile/formula.py", "* (exact + keyword) / 2", "* (exact + keyword) / 2.02", "v1"),
    "fraction": ("smile/formula.py", "if preset is SmilePreset.PAPER:", "if True:", "v1"),
    "whole words": ("smile/formula.py", "if preset is SmilePreset.PAPER:", "if False:", "paper"),
    "word boundaries": (
        "matching/containment.py",
        """whole = f" {' '.join(prediction.words)} \"""",
        "whole = prediction.text",
        "paper",
    ),
    "distinct words": (
        "smile/formula.py",
        "if preset is SmilePreset.REFERENCE_CODE:\n        return [sum",
        "if True:\n        return [sum",
        "v1",
    ),
    "repeated words": (
        "smile/formula.py",
        "if preset is SmilePreset.REFERENCE_CODE:\n        return [sum",
        "if False:\n        return [sum",
        "reference_code",
    ),
    "best window": ("smile/formula.py", "float(column.max())", "float(column.mean())", "v1"),
    "name of the window": ("smile/formula.py", "windows[length][best]", "windows[length][0]", "v1"),
    "held reference": ("smile/formula.py", "Keyword(1.0, ", "Keyword(0.99, ", "v1"),
    "bound of the others": ("smile/formula.py", " - 2 * TIE", " + 0.2", "v1"),
    "held means equal": (
        "smile/texts.py",
        "if keyword.text in windows",
        "if {*keyword.words} <= {*words.words} or () in windows",
        "v1",
    ),
    "best reference": ("smile/formula.py", "best = first_of_the_highest(scores)", "best = 0", "v1"),
    "harmonic mean": ("smile/formula.py", "return 2 * sentence", "return sentence", "reference_code"),
    "bin": ("smile/formula.py", "math.floor(6 * score)", "math.floor(5 * score)", "v1"),
    "correct": ("smile/formula.py", "CORRECT_BIN = 4", "CORRECT_BIN = 3", "v1"),
    "lemma": ("text/normalise.py", "tuple(map(lemmatizer(), bare, bare))", "tuple(bare)", "v1"),
    "lower case": ("text/normalise.py", "lowered = text.lower()\n    if", "lowered = text\n    if", "v1"),
    "punctuation": ("text/normalise.py", "lowered.translate(_NEITHER_IN_ASCII).split()", "lowered.split()", "v1"),
    "raw text where no word is left": (
        "text/normalise.py",
        "return Normalised(lowered,",
        "return Normalised('?',",
        "v1",
    ),
    "window length": ("smile/texts.py", "{min(length, count) for", "{min(length + 1, count) for", "v1"),
    "last window": ("smile/texts.py", "range(count - length + 1)", "range(max(count - length, 1))", "v1"),
    "number of windows": ("smile/texts.py", "MAX_WINDOWS = 512", "MAX_WINDOWS = 100", "v1"),
    "shortlist": ("smile/rounds.py", "SHORTLIST = 3", "SHORTLIST = 1", "fast"),
    "closest in context": ("smile/rounds.py", "np.argsort(-similarity", "np.argsort(similarity", "fast"),
    "any reference of the length": ("smile/rounds.py", ".max(axis=1, initial=-np.inf)", ".sum(axis=1)", "fast"),
    "tokens of the words": ("smile/rounds.py", "bounds[starts + length]", "bounds[starts + 1]", "fast"),
    "sentence of the closest piece": (
        "smile/whole_answer.py",
        "np.maximum(self.sentences, self._reference_sentences",
        "np.add(0 * self.sentences.clip(-1), self._reference_sentences",
        "whole",
    ),
    "pieces that overlap": ("smile/whole_answer.py", "_OVERLAP: Final = 0.25", "_OVERLAP: Final = 0.0", "whole"),
    "windows in context": ("smile/rounds.py", "bounds[starts + length]", "bounds[starts + 1]", "one_pass"),
    "best in context": ("smile/rounds.py", "float(column.max())", "float(column.mean())", "one_pass"),
    "name in context": ("smile/rounds.py", "starts[first_of_the_highest(column)]", "starts[0]", "one_pass"),
}


@pytest.mark.hostile
@pytest.mark.parametrize("name", MUTANTS)
def test_a_changed_term_is_noticed(
    grade: Grade, truth: Truth, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, original, changed, preset = MUTANTS[name]
    metric = mutant(tmp_path, f"mutant_{list(MUTANTS).index(name)}", file, original, changed, monkeypatch)
    assert differences(grade(metric, preset), truth[preset]) != []


def mutant(folder: Path, package: str, file: str, original: str, changed: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A copy of the metrics under another name, with one place changed; the table of lemmas is shared."""
    (source,) = gradewire_server.metrics.__path__
    shutil.copytree(source, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / package / file).read_text(encoding="utf-8")
    assert text.count(original) == 1, "the place to change has moved: change this test with it"
    (folder / package / file).write_text(text.replace(original, changed), encoding="utf-8")
    for path in (folder / package).rglob("*.py"):
        own = path.read_text(encoding="utf-8").replace("gradewire_server.metrics.", f"{package}.")
        path.write_text(
            own.replace(f"{package}.text.lemmas", "gradewire_server.metrics.text.normalise"), encoding="utf-8"
        )
    monkeypatch.syspath_prepend(str(folder))
    return importlib.import_module(f"{package}.registry").REGISTRY["smile"]
