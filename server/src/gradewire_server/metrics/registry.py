"""All metrics by name. A new metric is one file in its room, one test file, and one line here."""

from collections.abc import Mapping
from typing import Any

from gradewire_server.domain.metric import Metric
from gradewire_server.metrics.cascade.metric import Auto
from gradewire_server.metrics.compared.compare import COMPARE
from gradewire_server.metrics.correctness.metric import Correctness
from gradewire_server.metrics.embedding.bertscore import Bertscore
from gradewire_server.metrics.embedding.sbert import Sbert
from gradewire_server.metrics.embedding.sfve import Sfve
from gradewire_server.metrics.grader.metric import Grader
from gradewire_server.metrics.judged.judge_grade import JUDGE_GRADE
from gradewire_server.metrics.judged.judge_similarity import JUDGE_SIMILARITY
from gradewire_server.metrics.judged.judge_verdict import JUDGE_VERDICT
from gradewire_server.metrics.judged.lave import LAVE
from gradewire_server.metrics.matching.easy_match import EasyMatch
from gradewire_server.metrics.matching.exact_match import ExactMatch
from gradewire_server.metrics.matching.lexical_match import LexicalMatch
from gradewire_server.metrics.matching.soft_vqa_accuracy import SoftVqaAccuracy
from gradewire_server.metrics.matching.value_match import ValueMatchMetric
from gradewire_server.metrics.matching.vqa_accuracy import VqaAccuracy
from gradewire_server.metrics.overlap.bleu import Bleu
from gradewire_server.metrics.overlap.cider import Cider
from gradewire_server.metrics.overlap.meteor import Meteor
from gradewire_server.metrics.overlap.rouge_l import RougeL
from gradewire_server.metrics.smile.metric import Smile

_METRICS: tuple[Metric[Any], ...] = (
    Smile(),
    Sbert(),
    Sfve(),
    Bertscore(),
    ExactMatch(),
    EasyMatch(),
    VqaAccuracy(),
    SoftVqaAccuracy(),
    LexicalMatch(),
    ValueMatchMetric(),
    RougeL(),
    Bleu(),
    Meteor(),
    Cider(),
    Correctness(),
    Grader(),
    LAVE,
    JUDGE_GRADE,
    JUDGE_SIMILARITY,
    JUDGE_VERDICT,
    Auto(),
)

REGISTRY: Mapping[str, Metric[Any]] = {metric.info.name: metric for metric in _METRICS}
"""Metric name to metric, in the order in which they are listed."""

COMPARISONS: Mapping[str, Metric[Any]] = {COMPARE.info.name: COMPARE}
"""What grades pairs of answers, by name; no metric of an item."""
