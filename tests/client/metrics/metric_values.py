"""Metrics with any parameters, made from types.proto."""

import string
from typing import Any

from hypothesis import strategies as st

from gradewire import Metric
from gradewire.metrics import KNOWN_TYPES
from gradewire.metrics.base import ParameterKind, WireParameter, wire_parameters

TEXTS = st.text(min_size=1, max_size=40).filter(str.isprintable)
MODELS = st.text(string.ascii_letters + string.digits + "-._", min_size=1, max_size=20)


def values_of(parameter: WireParameter, *, texts: st.SearchStrategy[str] = TEXTS) -> st.SearchStrategy[Any]:
    """Values that a parameter takes, in range or not."""
    match parameter.kind:
        case ParameterKind.CHOICE:
            return st.sampled_from(sorted(parameter.choices))
        case ParameterKind.FLAG:
            return st.booleans()
        case ParameterKind.COUNT:
            return st.integers(0, 12) | st.integers(0, 2**32 - 1)
        case ParameterKind.NUMBER:
            return st.floats(0, 1) | st.floats(allow_nan=False)
        case ParameterKind.TEXT:
            return texts


def metrics_named(name: str, *, texts: st.SearchStrategy[str] = TEXTS) -> st.SearchStrategy[Metric]:
    """Values of one metric; each parameter is there or not."""
    parameters = {key: st.none() | values_of(each, texts=texts) for key, each in wire_parameters(name).items()}
    if "reference_set" in KNOWN_TYPES[name].__dataclass_fields__:
        parameters["reference_set"] = st.none() | texts
    return st.builds(KNOWN_TYPES[name], **parameters, version=st.none() | st.integers(1, 10_000))


METRICS = st.sampled_from(sorted(KNOWN_TYPES)).flatmap(metrics_named)
