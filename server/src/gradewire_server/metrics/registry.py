"""All metrics by name. A new metric is one file beside this one, one test file, and one line here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gradewire_server.domain.metric import Metric
from gradewire_server.metrics.bertscore import Bertscore
from gradewire_server.metrics.bleu import Bleu
from gradewire_server.metrics.calibrated import Calibrated
from gradewire_server.metrics.cider import Cider
from gradewire_server.metrics.easy_match import EasyMatch
from gradewire_server.metrics.exact_match import ExactMatch
from gradewire_server.metrics.judge_grade import JudgeGrade
from gradewire_server.metrics.judge_similarity import JudgeSimilarity
from gradewire_server.metrics.judge_verdict import JudgeVerdict
from gradewire_server.metrics.lave import Lave
from gradewire_server.metrics.lexical_match import LexicalMatch
from gradewire_server.metrics.meteor import Meteor
from gradewire_server.metrics.rouge_l import RougeL
from gradewire_server.metrics.sbert import Sbert
from gradewire_server.metrics.sfve import Sfve
from gradewire_server.metrics.smile import Smile
from gradewire_server.metrics.soft_vqa_accuracy import SoftVqaAccuracy
from gradewire_server.metrics.vqa_accuracy import VqaAccuracy

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
    RougeL(),
    Bleu(),
    Meteor(),
    Cider(),
    Calibrated(),
    Lave(),
    JudgeGrade(),
    JudgeSimilarity(),
    JudgeVerdict(),
)

REGISTRY: Mapping[str, Metric[Any]] = MappingProxyType({metric.info.name: metric for metric in _METRICS})
"""Metric name to metric, in the order in which they are listed."""
