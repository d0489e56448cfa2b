"""gradewire: grades free-form answers, over the wire or in the process.

```python
from gradewire import Client

with Client("127.0.0.1:50051") as client:
    report = client.score([{"references": ["a cat"], "prediction": "It is a small cat."}], "smile,sbert")
    print(report[0].scores["smile"].score)
```
"""

from gradewire.async_client import AsyncClient
from gradewire.client import Client
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
from gradewire.metric_types.auto import Auto
from gradewire.metric_types.base import Metric
from gradewire.metric_types.calibrated import Calibrated, Grader
from gradewire.metric_types.choice import MetricsLike
from gradewire.metric_types.comparisons import Compare, CompareDecision, CompareMode, ComparisonLike
from gradewire.metric_types.encoders import Bertscore, Corpus, Measure, Preset, Sbert, Sfve, Smile, Synthetic
from gradewire.metric_types.judges import (
    BinaryQuestions,
    Demonstrations,
    GradeStyle,
    JudgeGrade,
    JudgeSimilarity,
    JudgeVerdict,
    LabelValue,
    Lave,
    LaveMode,
    VerdictStyle,
)
from gradewire.metric_types.line import format_metric_line, parse_metric_line
from gradewire.metric_types.words import (
    Bleu,
    Cider,
    EasyMatch,
    ExactMatch,
    LexicalMatch,
    Meteor,
    MeteorSynonyms,
    RougeL,
    SoftVqaAccuracy,
    ValueMatch,
    VqaAccuracy,
    VqaConsensus,
)
from gradewire.model_list import Limits, MetricInfo, MetricParameterInfo, ModelInfo, ModelList
from gradewire.pairs.comparison import Comparison, OrderVerdict, Winner
from gradewire.pairs.pair import Pair, PairLike, PairsLike
from gradewire.parts import (
    BertscoreParts,
    BleuParts,
    CiderParts,
    MeteorParts,
    Parts,
    RougeLParts,
    SmileParts,
    ValueMatchParts,
    VqaParts,
)
from gradewire.preparation import EntryFailure, PrepareProgress, PrepareReport, ReferenceEntry, SyntheticGeneration
from gradewire.results import CacheHits, ItemScores, MetricScore, Provenance, ScoreWarning, Status, Timing
from gradewire.score_report import MetricSummary, ScoreReport
from gradewire.scorer import AsyncScorer, Scorer
from gradewire.tls import Tls
from gradewire.transport import Transport
from gradewire.verdict_parts import AutoParts, CalibratedParts, GraderParts, JudgeParts

__all__ = [
    "AccessDenied",
    "AsyncClient",
    "AsyncScorer",
    "Auto",
    "AutoParts",
    "Bertscore",
    "BertscoreParts",
    "BinaryQuestions",
    "Bleu",
    "BleuParts",
    "CacheHits",
    "Calibrated",
    "CalibratedParts",
    "Cider",
    "CiderParts",
    "Client",
    "ClientClosed",
    "Compare",
    "CompareDecision",
    "CompareMode",
    "Comparison",
    "ComparisonLike",
    "Corpus",
    "DeadlineExceeded",
    "Demonstrations",
    "EasyMatch",
    "EntryFailure",
    "ExactMatch",
    "ForkedClientError",
    "GradeStyle",
    "Grader",
    "GraderParts",
    "GradewireError",
    "InconsistentReplies",
    "InvalidRequest",
    "Item",
    "ItemLike",
    "ItemScores",
    "JudgeGrade",
    "JudgeParts",
    "JudgeSimilarity",
    "JudgeVerdict",
    "LabelValue",
    "Lave",
    "LaveMode",
    "LexicalMatch",
    "Limits",
    "Measure",
    "Meteor",
    "MeteorParts",
    "MeteorSynonyms",
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
    "Parts",
    "PrepareProgress",
    "PrepareReport",
    "Preset",
    "Provenance",
    "ReferenceEntry",
    "RequestError",
    "RougeL",
    "RougeLParts",
    "Sbert",
    "ScoreReport",
    "ScoreWarning",
    "Scorer",
    "ServerFault",
    "ServerUnreachable",
    "Sfve",
    "Smile",
    "SmileParts",
    "SoftVqaAccuracy",
    "Status",
    "Synthetic",
    "SyntheticGeneration",
    "Timing",
    "Tls",
    "Transport",
    "TransportError",
    "ValueMatch",
    "ValueMatchParts",
    "VerdictStyle",
    "VqaAccuracy",
    "VqaConsensus",
    "VqaParts",
    "Winner",
    "__version__",
    "format_metric_line",
    "parse_metric_line",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - a fifth of the import time, for what few ask for

        return version("gradewire")
    raise AttributeError(f"module 'gradewire' has no attribute {name!r}")
