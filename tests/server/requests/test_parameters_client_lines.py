"""Server, wire and Python client agree on every metric: its parameters, its line, its message."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.metrics.metric_values import MODELS, metrics_named
from tests.support.engines.cascade_fits import auto_fit_text, stored_auto_fit
from tests.support.engines.correctness_fits import fit_text, stored_fit
from tests.support.examples import example_count

from gradewire import Metric, format_metric_line, parse_metric_line
from gradewire.metrics import METRIC_TYPES
from gradewire.metrics.base import ParameterKind, wire_parameters
from gradewire_cli.calibrate.command import THRESHOLDS
from gradewire_cli.calibrate.store import line_parameters
from gradewire_server.domain.metric import Calibration, ModelMetadata, ParameterError, TokenLayer
from gradewire_server.metrics.correctness.fit import fit_id
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.parameters import read_parameters, write_line, write_spec

SCORES_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
DIGEST = "0a1b2c3d4e5f" + "6" * 52
METADATA = ModelMetadata(
    calibrations=(
        Calibration("smile", 1, (("preset", "v1"), ("synthetic", "none")), 0.6, 0.45),
        Calibration("sbert", 1, (), 0.7),
        *stored_fit(fit_text(model_digest=DIGEST)),
        stored_auto_fit(auto_fit_text(model_digest=DIGEST, correctness_fit=fit_id(fit_text(model_digest=DIGEST)))),
    ),
    digest=DIGEST,
    token_layers=tuple(TokenLayer(number, (0.1, 0.2, 0.15)) for number in range(1, 7)),
    bertscore_layer=5,
)
BESIDE = ("judge_model", "grader")
SETS = st.text(min_size=1, max_size=20).filter(str.isprintable)


def test_the_client_knows_every_metric_of_the_server() -> None:
    assert set(REGISTRY) <= set(METRIC_TYPES)


def test_the_page_of_scores_has_a_row_for_every_metric_and_a_link_where_it_has_a_section() -> None:
    page = SCORES_PAGE.read_text(encoding="utf-8")
    sections = {name for name in REGISTRY if f"\n## `{name}`\n" in page}
    assert sections >= {"smile", "bertscore", "lave"}
    rows = {name: f"[`{name}`](#{name})" if name in sections else f"`{name}`" for name in REGISTRY}
    assert [name for name, cell in rows.items() if f"\n| {cell} |" not in page] == []


@pytest.mark.parametrize("name", REGISTRY)
def test_the_list_names_the_parameters_of_the_wire(name: str) -> None:
    info = REGISTRY[name].info
    on_wire = wire_parameters(name)
    assert sorted(each.name for each in info.parameters) == list(on_wire)
    assert (info.needs_model or info.needs_judge or info.needs_grader) == ("model" in on_wire)
    for each in info.parameters:
        parameter = on_wire[each.name]
        assert each.description, each.name
        if parameter.kind is ParameterKind.CHOICE:
            # A choice may be of the wire and not of the metric (cider without weights): never the reverse.
            allowed = {value.strip() for value in each.allowed.split(",")}
            assert allowed <= set(parameter.choices), each.name
            assert each.default_value in allowed, each.name
        elif parameter.kind is ParameterKind.FLAG:
            # What a message leaves out is false.
            assert each.default_value == "false", each.name


@pytest.mark.parametrize("name", REGISTRY)
@settings(max_examples=example_count(40), deadline=None)
@given(data=st.data())
def test_the_line_of_the_server_is_read_and_written_by_the_client(name: str, data: st.DataObject) -> None:
    wanted = data.draw(metrics_named(name, texts=MODELS))
    reference_set = data.draw(st.just("") | SETS)
    metric = REGISTRY[name]
    try:
        parameters: Any = read_parameters(
            getattr(wanted.to_spec(), name),
            metric,
            "p",
            model="" if wanted_model(wanted) is None else "m-1",
            beside={each: f"{each}-1" for each in BESIDE if getattr(wanted, each, None)},
        ).resolved(METADATA)
    except ParameterError:
        return  # out of range: there is no line
    shown = reference_set if parameters.reads_prepared else ""
    line = write_line(metric, parameters, DIGEST, beside=dict.fromkeys(BESIDE, DIGEST), reference_set=shown)
    read = parse_metric_line(line)
    assert format_metric_line(read) == line
    assert read.version == metric.info.version
    assert (getattr(read, "reference_set", None) or "") == shown
    # The message that the server gives back as provenance is the one that the line asks for, but for the digest.
    spec, of_line = write_spec(name, parameters), read.to_spec()
    if wanted_model(read) is not None:
        getattr(of_line, name).model = wanted_model(read).partition("@")[0]  # type: ignore[union-attr]
    for each in BESIDE:
        if named := getattr(read, each, None):
            setattr(getattr(of_line, name), each, named.partition("@")[0])
    if getattr(read, "prompt", None):
        # As with models, a line has the first twelve digits.
        assert parameters.prompt.startswith(getattr(of_line, name).prompt)
        getattr(of_line, name).prompt = parameters.prompt
    assert of_line == spec


def wanted_model(metric: Metric) -> str | None:
    return getattr(metric, "model", None)


@pytest.mark.parametrize("name", REGISTRY)
def test_what_the_client_leaves_unset_is_the_servers_default(name: str) -> None:
    metric = REGISTRY[name]
    parameters: Any = read_parameters(getattr(METRIC_TYPES[name]().to_spec(), name), metric, "p", model="")
    assert parameters == metric.parameters_type()
    line = parse_metric_line(write_line(metric, parameters.resolved(METADATA), DIGEST))
    for each in metric.info.parameters:
        if wire_parameters(name)[each.name].kind in {ParameterKind.CHOICE, ParameterKind.FLAG}:
            assert str(getattr(line, each.name)).lower() == each.default_value, each.name


@pytest.mark.parametrize("name", THRESHOLDS)
@settings(max_examples=example_count(25), deadline=None)
@given(data=st.data())
def test_what_calibrate_reads_off_a_line_holds_for_scores_of_that_line(name: str, data: st.DataObject) -> None:
    wanted = data.draw(metrics_named(name, texts=MODELS))
    metric = REGISTRY[name]
    try:
        parameters: Any = read_parameters(getattr(wanted.to_spec(), name), metric, "p", model="m-1").resolved(METADATA)
    except ParameterError:
        return
    read = parse_metric_line(write_line(metric, parameters, DIGEST))
    fitted = Calibration(
        name, metric.info.version, line_parameters(read), 0.123, getattr(read, "sentence_weight", None)
    )
    assert fitted.holds_for(parameters)
    metadata = replace(METADATA, calibrations=(fitted,)).seen_by(metric.info)
    assert replace(parameters, threshold=None).resolved(metadata).threshold == 0.123
