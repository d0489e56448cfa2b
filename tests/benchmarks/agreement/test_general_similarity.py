import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from benchmarks.agreement.general_similarity import (
    OWN_PAIRS,
    SimilaritySet,
    correlation,
    cosines,
    read_sentences,
    read_words,
    report,
    resampled,
)
from scipy.stats import spearmanr


def letters(texts: Sequence[str]) -> np.ndarray:
    """Counts of letters: a poor encoder, but no constant one."""
    return np.array([[1.0, *(text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz")] for text in texts])


def test_the_sentences_are_what_the_page_says() -> None:
    pairs = read_sentences(OWN_PAIRS)
    assert Counter(pairs.grades) == dict.fromkeys(range(6), 25)
    assert set(Counter(pairs.groups).values()) == {6}
    assert len({*zip(pairs.first, pairs.second, strict=True)}) == 150
    assert not set(pairs.first) & set(pairs.second)


def test_the_correlation_is_spearmans_of_the_cosines() -> None:
    pairs = read_sentences(OWN_PAIRS)
    found = cosines(letters, pairs)
    first, second = letters(pairs.first), letters(pairs.second)
    by_hand = [a @ b / np.sqrt(a @ a * (b @ b)) for a, b in zip(first, second, strict=True)]
    assert found == pytest.approx(by_hand)
    assert correlation(found, pairs) == pytest.approx(spearmanr(np.round(by_hand, 6), pairs.grades).statistic)
    assert correlation(pairs.grades / 5, pairs) == pytest.approx(1)


def test_a_model_against_itself_differs_by_nothing_and_from_another_by_the_draws() -> None:
    pairs = read_sentences(OWN_PAIRS)
    base, same, other = report("sentences", {"a": letters, "b": letters, "c": lambda t: letters(t)[:, :9]}, pairs)
    assert base.endswith("|  |")
    assert same.endswith("| 0.000 [0.000, 0.000] |")
    assert not other.endswith("[0.000, 0.000] |")


def test_draws_take_whole_groups() -> None:
    # Within each group the order is perfect or reversed, so that every draw of one group alone is 1 or -1.
    pairs = SimilaritySet("x", ("",) * 4, ("",) * 4, np.array([0.0, 1, 0, 1]), np.array([0, 0, 1, 1]))
    drawn = resampled(np.array([0.1, 0.2, 0.4, 0.3]), pairs)
    assert {1.0, -1.0} <= set(np.round(drawn, 9))
    assert len(set(np.round(drawn, 9))) == 3


def test_what_is_no_set_is_named(tmp_path: Path) -> None:
    torn = tmp_path / "torn.tsv"
    torn.write_text("group\tgrade\tfirst\tsecond\n1\t5\ta\tb\n1\t6\ta\tc\n")
    with pytest.raises(ValueError, match=r"line 3: must have group, grade \(0 to 5\)"):
        read_sentences(torn)
    wheel = tmp_path / "other.whl"
    wheel.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="is not gensim's wheel"):
        read_words(wheel, "simlex999")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("gensim/test/test_data/simlex999.txt", "old\tnew\t10\n")
    with pytest.raises(ValueError, match=r"has SHA-256 .* Use gensim 4\.4\.0"):
        read_words(wheel, "simlex999")
