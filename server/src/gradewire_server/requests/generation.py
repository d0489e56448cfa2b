"""What PrepareRequest.generate asks for, with judge and prompt resolved."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from gradewire_proto.conventions.metric_lines import with_digest
from gradewire_proto.v1 import references_pb2, types_pb2
from gradewire_server.domain.metric import ParameterError
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.judged.prompts import PromptError
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.errors import InvalidRequestError, NothingLoadedError
from gradewire_server.requests.prompts.inline import read_prompt_ahead
from gradewire_server.requests.string_bounds import check_strings
from gradewire_server.scoring.synthetic.sentence import FIRST, Writing

NAME: Final = "synthetic"
"""Of the prompts' metric, and in the provenance."""
VERSION: Final = 1
"""Raised whenever another sentence can be accepted, or stand for a reference that has none."""


@dataclass(frozen=True, slots=True)
class Generation:
    """How missing synthetic answers are written.

    Attributes:
        writing: For the scorer.
        provenance: What a reader needs to have the same sentences written again.
        return_answers: Whether the answers are sent back.
    """

    writing: Writing
    provenance: types_pb2.Provenance
    return_answers: bool

    @property
    def digests(self) -> tuple[str, str]:
        """Digests of judge and prompt; answers by another judge or prompt belong to another set."""
        return self.provenance.model_digest, self.provenance.prompt_digest


async def plan_generation(context: RequestContext, request: references_pb2.PrepareRequest) -> Generation | None:
    """Reads how a request wants synthetic answers written; None where it wants none.

    Raises:
        InvalidRequestError: The judge's name or the prompt cannot be understood.
        NothingLoadedError: The judge is not there.
    """
    if not request.HasField("generate"):
        return None
    message = request.generate
    try:
        check_strings(message)
    except ParameterError as error:
        raise InvalidRequestError(f"generate.{error.field}", error.message) from None
    judge = context.planner.judge(message.model, "generate.model")
    if isinstance(judge, Failure):
        if judge.status is Status.INVALID_PARAMETER:
            raise InvalidRequestError("generate.model", judge.message)
        raise NothingLoadedError(judge.message)
    await read_prompt_ahead(context.prompts, NAME, message.prompt)
    try:
        prompt = context.prompts.find(NAME, message.prompt)
    except PromptError as error:
        raise InvalidRequestError("generate.prompt", str(error)) from None
    if FIRST not in prompt.variants:
        raise InvalidRequestError("generate.prompt", f"{prompt.title} has no table [variants.{FIRST}]")
    line = (
        f"{NAME}/{VERSION}?model={with_digest(quote(judge.name), judge.digest)}"
        f"&prompt={with_digest(prompt.title, prompt.digest)}"
    )
    provenance = types_pb2.Provenance(
        name=NAME,
        version=VERSION,
        model=judge.name,
        model_digest=judge.digest,
        prompt=prompt.title,
        prompt_digest=prompt.digest,
        line=line,
    )
    return Generation(Writing(f"{judge.name}@{judge.digest}", prompt), provenance, message.return_answers)
