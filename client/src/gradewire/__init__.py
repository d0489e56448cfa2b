"""Grade free-form answers, on a server or in this process.

```python
from gradewire import Client

with Client("127.0.0.1:50051") as client:
    report = client.score([{"references": ["a cat"], "prediction": "It is a small cat."}], "correctness")
    print(report[0].scores["correctness"].correct)
```
"""

from gradewire._calls.submit import SubmitLimits
from gradewire.api import AsyncScorer, Client, Scorer
from gradewire.async_api import AsyncClient
from gradewire.candidates import CandidateRows, Candidates, CandidatesLike
from gradewire.errors import (
    AccessDenied,
    ClientClosed,
    DeadlineExceeded,
    ForkedClientError,
    GradewireError,
    InconsistentReplies,
    InvalidRequest,
    MissingExtra,
    NotReady,
    Overloaded,
    RequestError,
    ServerFault,
    ServerUnreachable,
    TransportError,
)
from gradewire.items import Item, ItemLike
from gradewire.metrics import ComparisonLike, Preset, Synthetic
from gradewire.metrics import generated as _metrics
from gradewire.metrics.base import Metric
from gradewire.metrics.choice import MetricsLike, format_metric_line, parse_metric_line
from gradewire.metrics.generated import *
from gradewire.pairs import Comparison, ListVerdict, OrderVerdict, Pair, PairLike, PairsLike, Winner
from gradewire.ranking import RankedAnswer, RankedPair, Ranking, RankingCost, RankingPlan
from gradewire.references import EntryFailure, PrepareProgress, PrepareReport, ReferenceEntry, SyntheticGeneration
from gradewire.results import (
    CacheHits,
    ItemScores,
    Limits,
    MetricInfo,
    MetricParameterInfo,
    MetricScore,
    MetricSummary,
    ModelInfo,
    ModelList,
    Provenance,
    ScoreReport,
    ScoreWarning,
    Status,
    Timing,
)
from gradewire.transport import Tls, Transport
from gradewire_proto import parts as _parts
from gradewire_proto.parts import *

__all__ = [
    "AccessDenied",
    "AsyncClient",
    "AsyncScorer",
    "CacheHits",
    "CandidateRows",
    "Candidates",
    "CandidatesLike",
    "Client",
    "ClientClosed",
    "Comparison",
    "ComparisonLike",
    "DeadlineExceeded",
    "EntryFailure",
    "ForkedClientError",
    "GradewireError",
    "InconsistentReplies",
    "InvalidRequest",
    "Item",
    "ItemLike",
    "ItemScores",
    "Limits",
    "ListVerdict",
    "Metric",
    "MetricInfo",
    "MetricParameterInfo",
    "MetricScore",
    "MetricSummary",
    "MetricsLike",
    "MissingExtra",
    "ModelInfo",
    "ModelList",
    "NotReady",
    "OrderVerdict",
    "Overloaded",
    "Pair",
    "PairLike",
    "PairsLike",
    "PrepareProgress",
    "PrepareReport",
    "Preset",
    "Provenance",
    "RankedAnswer",
    "RankedPair",
    "Ranking",
    "RankingCost",
    "RankingPlan",
    "ReferenceEntry",
    "RequestError",
    "ScoreReport",
    "ScoreWarning",
    "Scorer",
    "ServerFault",
    "ServerUnreachable",
    "Status",
    "SubmitLimits",
    "Synthetic",
    "SyntheticGeneration",
    "Timing",
    "Tls",
    "Transport",
    "TransportError",
    "Winner",
    "__version__",
    "format_metric_line",
    "parse_metric_line",
]
# The generated metrics, parts, and types of the metrics' choices.
__all__ += _metrics.__all__
__all__ += _parts.__all__


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - a fifth of the import time, and rarely needed

        return version("gradewire")
    raise AttributeError(f"module 'gradewire' has no attribute {name!r}")
