"""Client and AsyncClient, Scorer and AsyncScorer: the same methods, the same arguments."""

import inspect
import typing
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator

import pytest

from gradewire import (
    AsyncClient,
    AsyncScorer,
    Client,
    Comparison,
    ItemLike,
    ItemScores,
    PairLike,
    PairsLike,
    Scorer,
)
from gradewire.items import ItemsLike
from gradewire.testing import StubTransport, echo_scores

# Where the twins must differ, what the blocking one has instead.
COUNTERPARTS = {
    AsyncGenerator[ItemScores]: Iterator[ItemScores],
    ItemsLike | AsyncIterable[ItemLike]: ItemsLike,
    AsyncGenerator[Comparison]: Iterator[Comparison],
    PairsLike | AsyncIterable[PairLike]: PairsLike,
}


def public_methods(kind: type) -> dict[str, Callable[..., object]]:
    return {name: method for name, method in inspect.getmembers(kind, callable) if not name.startswith("_")} | {
        "__init__": kind.__init__  # type: ignore[misc]
    }


@pytest.mark.parametrize(("blocking", "asynchronous"), [(Client, AsyncClient), (Scorer, AsyncScorer)])
def test_same_methods(blocking: type, asynchronous: type) -> None:
    assert public_methods(blocking).keys() == public_methods(asynchronous).keys()


@pytest.mark.parametrize("name", sorted(public_methods(Client)))
def test_same_signature(name: str) -> None:
    ours, theirs = public_methods(Client)[name], public_methods(AsyncClient)[name]
    mine, other = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
    assert [(p.name, p.kind, p.default) for p in mine.values()] == [(p.name, p.kind, p.default) for p in other.values()]
    expected = {argument: COUNTERPARTS.get(hint, hint) for argument, hint in typing.get_type_hints(theirs).items()}
    assert typing.get_type_hints(ours) == expected


@pytest.mark.parametrize("name", sorted(public_methods(AsyncClient)))
def test_everything_public_is_explained(name: str) -> None:
    if name != "__init__":
        assert public_methods(AsyncClient)[name].__doc__
        assert public_methods(Client)[name].__doc__


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("name", ["score", "score_stream", "prepare", "submit"])
def test_the_options_are_the_same_everywhere(kind: type, name: str) -> None:
    shared = {"preset", "synthetic", "model", "deadline_s"}
    (options,) = typing.get_args(typing.get_type_hints(public_methods(kind)[name])["options"])
    assert options.__optional_keys__ == (
        shared if name == "prepare" else shared | {"judge", "priority", "reference_set"}
    )
    assert not options.__required_keys__


async def answered(method: Callable[..., object], options: dict[str, str]) -> object:
    answer = method([{"references": ["a"], "prediction": "a"}], **options)
    return await answer if inspect.isawaitable(answer) else answer


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("name", ["score", "score_stream", "prepare", "submit"])
async def test_an_unknown_option_is_an_error_of_the_call(kind: type, name: str) -> None:
    method = getattr(kind(transport=StubTransport(lambda request: echo_scores(request, score=lambda _: 1.0))), name)
    unknown = {"presett": "fast"} | ({"judge": "j"} if name == "prepare" else {})
    for option, value in unknown.items():
        said = rf"^{kind.__name__}\.{name}\(\) got an unexpected keyword argument '{option}'"
        with pytest.raises(TypeError, match=said):
            await answered(method, {option: value})
