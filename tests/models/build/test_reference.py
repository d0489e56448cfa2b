from pathlib import Path

import numpy as np
from tests.support.models.tiny_models import WORDS, tiny_tokenizer

from gradewire_models.build.reference import draw_pieces
from gradewire_models.repository.grader_input import MAX_TOKENS


def test_drawn_pieces_are_what_a_grader_reads(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(tiny_tokenizer())
    pieces = draw_pieces(path, len(WORDS), np.random.default_rng(1))
    lengths = [len(piece.ids) for piece in pieces]
    assert max(lengths) == MAX_TOKENS
    assert min(lengths) < 10
    for ids, start in pieces:
        assert ids[0] == 2
        assert np.flatnonzero(ids == 3).tolist()[1:] == [start - 1, len(ids) - 1]
        assert np.count_nonzero(ids == 3) == 3
