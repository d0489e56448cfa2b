"""Wrong arguments: InvalidRequest, at once, with the argument's name."""

from collections.abc import Callable
from typing import Any

import pytest

from gradewire import AsyncClient, Client, InvalidRequest, Item, ReferenceEntry, Scorer
from gradewire.testing import StubTransport, echo_scores

ROW: dict[str, Any] = {"references": ["a"], "prediction": "a"}


def stub() -> StubTransport:
    return StubTransport(lambda request: echo_scores(request, score=lambda _: 1.0))


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("name", ["deadline_s", "max_pending_items", "max_pending_bytes"])
@pytest.mark.parametrize("value", [-1, 0, "5", None, float("nan"), float("-inf")])
def test_constructors_check(kind: type[Client], name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"{name}={value!r}"):
        kind(transport=stub(), **{name: value})


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("name", ["address", "token", "tls"])
def test_constructors_check_what_the_connection_is_made_of(kind: type[Client], name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{name} is a bytes: give "):
        kind(**{name: b"x"})  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", [{"workers": -5}, {"deadline_s": -1}])
def test_the_embedded_constructor_checks(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=next(iter(setting))):
        Scorer.embedded(**setting)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda client, rows: client.score(rows, 5), "metrics is a int"),
        (lambda client, rows: client.score(rows, preset=[]), "preset is a list"),
        (lambda client, rows: client.score(rows, model=5), "model is a int"),
        (lambda client, rows: client.score(rows, model="\ud800"), "model="),
        (lambda client, rows: client.score(rows, synthetic={}), "synthetic is a dict"),
        (lambda client, rows: client.score(rows, reference_set=5), "reference_set is a int"),
        (lambda client, rows: client.score(rows, deadline_s="5"), "deadline_s='5'"),
        (lambda client, rows: client.score(rows, progress=5), "progress is a int"),
        (lambda client, rows: client.score_stream(rows, deadline_s="5"), "deadline_s='5'"),
        (lambda client, rows: client.prepare(rows, 5), "metrics is a int"),
        (lambda client, rows: client.prepare(rows, progress=5), "progress is a int"),
        (lambda client, _: client.models(deadline_s="5"), "deadline_s='5'"),
        (lambda client, _: client.flush("5"), "timeout_s='5'"),
    ],
)
def test_calls_name_the_argument(call: Callable[..., object], message: str) -> None:
    with Client(transport=stub()) as client, pytest.raises(InvalidRequest, match=message):
        call(client, [ROW])


@pytest.mark.parametrize("rows", [None, 5, "text", b"text", ROW, Item(**ROW), ReferenceEntry(references=["a"])])
async def test_what_is_no_list_of_rows_is_refused(rows: Any) -> None:
    with Client(transport=stub()) as client:
        for call, name in ((client.score, "items"), (client.score_stream, "items"), (client.prepare, "entries")):
            with pytest.raises(InvalidRequest, match=f"^{name} is (a|one) {type(rows).__name__}"):
                call(rows)
        assert str(client.submit(rows).exception(0)).startswith("items is ")
    async with AsyncClient(transport=stub()) as other:
        for work, name in ((other.score, "items"), (other.prepare, "entries")):
            with pytest.raises(InvalidRequest, match=f"^{name} is "):
                await work(rows)
        with pytest.raises(InvalidRequest, match=r"^items is "):
            other.score_stream(rows)


def test_what_can_be_read_by_position_only_is_a_list_too() -> None:
    class Rows:
        def __getitem__(self, index: int) -> dict[str, Any]:
            return [ROW, ROW][index]

    with Client(transport=stub()) as client:
        assert len(client.score(Rows())) == 2  # type: ignore[arg-type]


def test_a_deadline_far_away_is_one() -> None:
    with Client(transport=stub(), deadline_s=1e300) as client:
        assert len(client.score([ROW])) == 1
