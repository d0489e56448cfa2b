import pytest
from benchmarks.common.document import with_block


def test_a_block_is_replaced_and_nothing_else() -> None:
    document = "head\n<!-- begin a -->\nold\n<!-- end a -->\nbetween\n<!-- begin b -->\n<!-- end b -->\ntail\n"
    once = with_block(document, "a", "| new |\n")
    assert once == document.replace("old\n", "\n| new |\n\n")
    assert with_block(once, "a", "| new |\n") == once
    assert with_block(with_block(document, "b", "x"), "b", "").count("x") == 0


@pytest.mark.parametrize(
    "document",
    [
        "",
        "<!-- begin a -->\n",
        "<!-- end a -->\n<!-- begin a -->\n",
        "<!-- begin a -->\n<!-- begin a -->\n<!-- end a -->\n",
    ],
)
def test_marks_that_are_not_there_once_and_in_order_are_an_error(document: str) -> None:
    with pytest.raises(ValueError, match="once each and in this order"):
        with_block(document, "a", "new")
