"""One metric of a request: what the scorer runs, and its provenance."""

from dataclasses import dataclass, replace
from typing import Any, Final

from gradewire_proto.conventions.metric_lines import with_digest
from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.metric import Metric, MetricInfo, ParameterError, Parameters
from gradewire_server.domain.needs import Corpus
from gradewire_server.domain.result import Failure, Status
from gradewire_server.requests.parameters import write_line
from gradewire_server.scoring import MetricRequest

_NO_REQUEST: Final = (
    "a stream has no request corpus, for its items are scored as they come; prepare a set (References.Prepare with "
    "this metric and a prepared corpus) and name it as reference_set, or use Score with all items in one call"
)


@dataclass(frozen=True, slots=True)
class MetricPlan:
    """One metric of a request.

    Attributes:
        request: What the scorer runs, or what becomes the result of every item. Its model is NAME@DIGEST, so that
            the engine computes with the model that the provenance names, or not at all.
        provenance: What a reader needs to get the same numbers again, but for the reference set.
    """

    request: MetricRequest | Failure
    provenance: types_pb2.Provenance

    @property
    def judged(self) -> bool:
        """Whether it may ask a judge."""
        return isinstance(self.request, MetricRequest) and self.request.metric.info.asks_judge

    def streamed(self) -> MetricRequest | Failure:
        """What a stream runs: INVALID_PARAMETER for a metric that counts over the items of one request."""
        request = self.request
        if isinstance(request, Failure) or request.parameters.corpus is not Corpus.REQUEST:
            return request
        return Failure(Status.INVALID_PARAMETER, f"{self.provenance.name}: {_NO_REQUEST}")

    @property
    def counts_prepared(self) -> bool:
        """Whether its weights are counted over the corpus of the call's reference set."""
        return not isinstance(self.request, Failure) and self.request.parameters.corpus is Corpus.PREPARED

    def provenance_in(self, reference_set: str, corpus_digest: str = "") -> types_pb2.Provenance:
        """The provenance in a call with a reference set, which it names where the metric reads something of it.

        Args:
            reference_set: Name of the set.
            corpus_digest: Of its corpus, which is named where the metric counts over it; empty where it is not known.
        """
        request = self.request
        if not reference_set or isinstance(request, Failure) or not request.parameters.reads_prepared:
            return self.provenance
        digest = corpus_digest if self.counts_prepared else ""
        named = types_pb2.Provenance(reference_set=reference_set, corpus_digest=digest)
        named.MergeFrom(self.provenance)
        info = request.metric.info
        parameters = with_model(request.parameters, named.model)
        written = with_digest(reference_set, digest) if digest else reference_set
        named.line = write_line(
            request.metric, parameters, named.model_digest, beside=digests_beside(info, named), reference_set=written
        )
        return named


def with_model(parameters: Parameters, model: str) -> Parameters:
    """The parameters of that model; as they are where it is empty."""
    # Whoever takes a model has a field of that name.
    return replace(parameters, model=model) if model else parameters  # type: ignore[call-arg]


def digests_beside(info: MetricInfo, provenance: types_pb2.Provenance) -> dict[str, str]:
    """Digests of judge and grader that a metric names beside its model, by parameter."""
    return {info.judge_parameter: provenance.judge_digest, info.grader_parameter: provenance.grader_digest}


def failed_plan(error: ParameterError, path: str, spec: types_pb2.MetricSpec, metric: Metric[Any]) -> MetricPlan:
    """Every item gets INVALID_PARAMETER, with what is wrong with which parameter."""
    return MetricPlan(Failure(Status.INVALID_PARAMETER, f"{path}.{error}"), failed_provenance(spec, metric))


def failed_provenance(spec: types_pb2.MetricSpec, metric: Metric[Any]) -> types_pb2.Provenance:
    """Of a metric that cannot be computed: its parameters as sent, or none where a text among them is too long."""
    provenance = types_pb2.Provenance(metric=spec, name=metric.info.name, version=metric.info.version)
    # What this server knows nothing of it does not send back.
    provenance.metric.DiscardUnknownFields()
    getattr(provenance.metric, metric.info.name).SetInParent()
    return provenance
