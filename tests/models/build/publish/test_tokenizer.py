import json
from pathlib import Path

import pytest
from tests.support.models.tiny_models import tiny_tokenizer
from tokenizers import Tokenizer

from gradewire_models.build.publish.tokenizer import write_tokenizer
from gradewire_models.errors import BuildError


def test_padding_is_off_and_the_length_is_the_models(tmp_path: Path) -> None:
    source, target = tmp_path / "source.json", tmp_path / "target.json"
    source.write_bytes(tiny_tokenizer())
    assert len(Tokenizer.from_file(str(source)).encode("w1").ids) == 128
    write_tokenizer(source, target, max_tokens=20)
    tokenizer = Tokenizer.from_file(str(target))
    assert tokenizer.encode("w1 w2").ids == [2, 5, 6, 3]
    assert len(tokenizer.encode("w1 " * 100).ids) == 20
    assert tokenizer.encode("w1 " * 100).ids[-1] == 3
    changed = {"padding", "truncation"}
    before, after = json.loads(source.read_text()), json.loads(target.read_text())
    assert {key: value for key, value in before.items() if key not in changed} == {
        key: value for key, value in after.items() if key not in changed
    }


@pytest.mark.parametrize("content", [b"no json", b"[1]", b"\xff"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "source.json"
    source.write_bytes(content)
    with pytest.raises(BuildError, match="not a tokenizer"):
        write_tokenizer(source, tmp_path / "target.json", max_tokens=20)
