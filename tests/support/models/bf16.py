"""What tests of bf16 need: a processor that has it, and OpenVINO."""

import pytest

from gradewire_models.bf16 import Bf16UnavailableError, bf16_instruction


def _problem() -> str:
    try:
        bf16_instruction()
    except Bf16UnavailableError as error:
        return str(error)
    return ""


needs_bf16 = pytest.mark.skipif(bool(_problem()), reason=_problem() or "bf16 is there")
