import hashlib
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_models.repository.digest import DigestParts, file_sha256

PARTS = DigestParts("a" * 64, "b" * 64, 256, "mean", "query: ", "fp32-cpu")
OTHER = {"max_tokens": 255, "pooling": "cls", "prefix": "query:", "numeric_class": "fp16-gpu", "suffix": "."}


@pytest.mark.parametrize("name", [field.name for field in fields(DigestParts)])
def test_every_part_changes_the_digest(name: str) -> None:
    changed = replace(PARTS, **{name: OTHER.get(name, "c" * 64)})
    assert changed.digest() != PARTS.digest()


def test_the_digest_is_stable_over_releases() -> None:
    # Caches are keyed by it: if this changes, every stored vector is lost. Raise the format on purpose or not at all.
    assert PARTS.digest() == "12daba767adcea5e64ad11b9f09f9ac395f20718cec4480958c9c50df1c0cfb5"


texts = st.text(max_size=8)


@given(texts, texts, texts, texts)
def test_text_moved_between_parts_is_another_model(first: str, second: str, third: str, fourth: str) -> None:
    one = replace(PARTS, pooling=first, prefix=second)
    two = replace(PARTS, pooling=third, prefix=fourth)
    assert (one.digest() == two.digest()) == ((first, second) == (third, fourth))


def test_file_digest_is_sha256(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"some bytes")
    assert file_sha256(path) == hashlib.sha256(b"some bytes").hexdigest()


def test_a_suffix_and_a_digest_of_weights_are_told_apart() -> None:
    assert replace(PARTS, suffix="c" * 64).digest() != replace(PARTS, weights_sha256="c" * 64).digest()
