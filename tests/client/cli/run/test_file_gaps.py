"""What rows lack is found wherever it stands."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gradewire.cli.run.file_gaps import metrics_not_for

ITEMS = st.fixed_dictionaries(
    {"references": st.lists(st.sampled_from(["a", "b", "in 1969"]), max_size=3)},
    optional={"question": st.sampled_from(["", " ", "q", "p", None])},
)


@given(st.lists(ITEMS, max_size=5))
def test_a_metric_is_left_out_by_what_items_with_references_have(items: list[dict[str, Any]]) -> None:
    readable = [item for item in items if item["references"]]
    asked = [(item.get("question") or "").strip() for item in readable]
    expected = set()
    if readable:
        if not any(asked):
            expected.add("sfve")
        if min(len(item["references"]) for item in readable) < 2:
            expected |= {"vqa_accuracy", "soft_vqa_accuracy"}
        if not all(any("1969" in reference for reference in item["references"]) for item in readable):
            expected.add("value_match")
        if len({frozenset(item["references"]) for item in readable}) == 1:
            expected.add("cider")
    assert set(metrics_not_for(items)) == expected
