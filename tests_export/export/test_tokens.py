import json
from pathlib import Path

import pytest
import transformers
from tests_export.conftest import tiny_tokenizer
from tokenizers import Tokenizer

from gradewire_models.errors import ExportError
from gradewire_models.export.folder import EncoderFolder
from gradewire_models.export.tokens import load_tokenizer, write_exported_tokenizer

BERT_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", ".", "a", "yes", "##s"]


def folder(directory: Path, *, lower_case: bool = False) -> EncoderFolder:
    return EncoderFolder(
        directory=directory,
        model_type="bert",
        pooling="mean",
        default_prompt="",
        prompts={},
        counts_prompt=True,
        max_tokens=16,
        lower_case=lower_case,
        licence="",
        weight_sha256={},
    )


def write(source: EncoderFolder, target: Path) -> Tokenizer:
    assert write_exported_tokenizer(source, load_tokenizer(source), target, 16) == ()
    assert sorted(path.name for path in target.parent.glob("out*")) == [target.name]
    return Tokenizer.from_file(str(target))


def test_an_older_tokenizer_is_converted(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(BERT_WORDS))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    written = write(folder(tmp_path), tmp_path / "out.json")
    assert written.encode("The cats sat.").tokens == ["[CLS]", "the", "cat", "##s", "sat", ".", "[SEP]"]
    assert written.padding is None
    assert len(written.encode("cat " * 100).ids) == 16


def test_padding_of_the_published_file_is_switched_off(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer(decoder=False)
    tokenizer.backend_tokenizer.enable_padding(length=128)
    tokenizer.save_pretrained(tmp_path)
    assert len(write(folder(tmp_path), tmp_path / "out.json").encode("the cat").ids) == 4


def test_texts_are_lower_cased_where_the_folder_says_so(tmp_path: Path) -> None:
    tiny_tokenizer(decoder=False).save_pretrained(tmp_path)
    assert write(folder(tmp_path), tmp_path / "out.json").encode("YES").tokens == ["<s>", "<unk>", "</s>"]
    lowered = write(folder(tmp_path, lower_case=True), tmp_path / "out.json")
    assert lowered.encode("YES").tokens == ["<s>", "yes", "</s>"]


def test_ids_of_transformers_count_where_the_published_file_gives_others(tmp_path: Path) -> None:
    # For this architecture transformers rebuilds the tokenizer and keeps less of the file than it could.
    tiny_tokenizer(decoder=True).save_pretrained(tmp_path)
    transformers.LlamaConfig().save_pretrained(tmp_path)
    settings = tmp_path / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "tokenizer_class": "LlamaTokenizerFast"}))
    source = folder(tmp_path)
    tokenizer = load_tokenizer(source)
    published = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert published.encode("the cat").ids != tokenizer("the cat")["input_ids"]
    (note,) = write_exported_tokenizer(source, tokenizer, tmp_path / "out.json", 16)
    assert "the ids of transformers are used" in note
    written = Tokenizer.from_file(str(tmp_path / "out.json"))
    assert written.encode("the cat").ids == tokenizer("the cat")["input_ids"]


def test_no_tokenizer_at_all_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(ExportError, match=r"no tokenizer\.json and no tokenizer"):
        load_tokenizer(folder(tmp_path))
