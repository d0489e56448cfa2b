"""From settled calls to the logits that the scorer reads."""

import numpy as np

from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import GradeReply
from gradewire_server.domain.result import Failure, Timing
from gradewire_server.encoders.waiting_calls import VectorCall
from gradewire_server.storage.logit_codec import decode_logits, encode_logit

_NOTHING = encode_logit(0.0, truncated=False, pieces=1)


def grade_reply(call: VectorCall) -> GradeReply:
    """Reply to `Graders.grade`; every result of `call` is settled."""
    failures = {i: result for i, result in enumerate(call.results) if isinstance(result, Failure)}
    blobs = [result if isinstance(result, bytes) else _NOTHING for result in call.results]
    return GradeReply(*decode_logits(blobs), np.frombuffer(call.sources, np.uint8), call.timing, failures)


def failed_grades(failure: Failure, size: int) -> GradeReply:
    """Reply when nothing could be done for any item."""
    sources = np.full(size, AnswerSource.COMPUTED, np.uint8)
    failures = dict.fromkeys(range(size), failure)
    return GradeReply(*decode_logits([_NOTHING] * size), sources, Timing(), failures)
