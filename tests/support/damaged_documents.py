"""Documents of a program with something wrong in them, for tests of what reads them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from gradewire_cli.problems import InputError
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.row import open_rows

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@st.composite
def mangled(draw: st.DrawFn, document: Any) -> Any:
    """The document with up to three of its values replaced or taken out, at any depth."""
    document = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(document))
        if not places:
            return draw(_VALUES)
        holder, key = draw(st.sampled_from(places))
        if isinstance(holder, dict) and draw(st.booleans()):
            del holder[key]
        else:
            holder[key] = draw(_VALUES)
    return document


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def check_rows(records: Callable[[str], Iterator[Record]], path: Path) -> None:
    """Reads a file to its end: its rows are numbered, and each has an item or says why not; or the file is refused."""
    try:
        rows = list(open_rows(str(path), records(str(path)), RowOptions(), only_texts=False).rows)
    except InputError as error:
        assert str(path) in error.format_message()  # noqa: PT017 - to be refused is one of two good ends
        return
    assert [row.index for row in rows] == list(range(len(rows)))
    for row in rows:
        assert (row.item is None) == bool(row.problem)
