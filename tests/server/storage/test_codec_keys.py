"""Everything that decides a vector is in its key."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.storage.codec import HASH_BYTES, EntryKind, KeySpace

_TEXT = st.text(st.characters(codec="utf-8"))


def space(
    *, namespace: str = "a", model_digest: str = "0" * 64, kind: EntryKind = EntryKind.SENTENCE, input_prefix: str = ""
) -> KeySpace:
    return KeySpace(namespace=namespace, model_digest=model_digest, kind=kind, input_prefix=input_prefix)


def test_every_ingredient_changes_both_names() -> None:
    spaces = [
        space(),
        space(namespace="b"),
        space(model_digest="1" * 64),
        space(kind=EntryKind.TOKENS),
        space(input_prefix="q: "),
    ]
    for one, other in combinations(spaces, 2):
        (mine,), (theirs,) = one.hashes(["text"]), other.hashes(["text"])
        assert mine != theirs
        assert one.stored(mine) != other.stored(theirs)


def test_prefix_and_text_do_not_run_into_each_other() -> None:
    assert space(input_prefix="ab").hashes(["c"]) != space(input_prefix="a").hashes(["bc"])


@given(st.lists(_TEXT, unique=True, max_size=20))
def test_names_depend_on_the_text_alone(texts: list[str]) -> None:
    names = space().hashes(texts)
    assert len(set(names)) == len(texts)
    assert all(len(name) == HASH_BYTES for name in names)
    assert [space().hashes([text])[0] for text in reversed(texts)] == names[::-1]


def test_a_stored_key_can_be_read_by_people() -> None:
    (name,) = space().hashes(["text"])
    assert space().stored(name) == b"gradewire:1:a:" + b"0" * 64 + b":s:" + name


def test_names_do_not_change_between_releases() -> None:
    # A changed name would orphan every stored vector: raise FORMAT_VERSION when that is meant.
    assert space(input_prefix="q: ").hashes(["grüße"])[0].hex() == "b8dd83b6c78baad1ceeb50ba4106992d"
