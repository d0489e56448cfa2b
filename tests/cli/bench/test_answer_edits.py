"""Each edit on texts whose edited form is known."""

import pytest

from gradewire_cli.bench.answer_edits import EDITS, edited


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        ("lower case", "The Danube", "the danube"),
        ("upper case", "Straße", "STRASSE"),
        ("with full stop", "the Danube", "the Danube."),
        ("with full stop", "the Danube!", "the Danube!"),
        ("without full stop", "the Danube.", "the Danube"),
        ("without full stop", "the Danube...", "the Danube..."),
        ("without full stop", "多瑙河。", "多瑙河"),
        ("The answer is", "the Danube", "The answer is the Danube"),
        ("bold", "the Danube", "**the Danube**"),
        (r"\boxed{}", "the Danube", r"\boxed{the Danube}"),
        ("double quotes", "the Danube", '"the Danube"'),
        ("single quotes", "the Danube", "'the Danube'"),
        ("blank lines", "the Danube", "\n\nthe Danube\n\n"),
        ("NFD", "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\N{COMBINING ACUTE ACCENT}"),
        ("NFC", "cafe\N{COMBINING ACUTE ACCENT}", "caf\N{LATIN SMALL LETTER E WITH ACUTE}"),
        ("non-breaking blanks", "the blue Danube", "the\N{NO-BREAK SPACE}blue\N{NO-BREAK SPACE}Danube"),
    ],
)
def test_edits(edit: str, before: str, after: str) -> None:
    assert EDITS[edit](before) == after
    assert (edit in edited(before)) == (before != after)


def test_every_edit_is_tried_once() -> None:
    text = "Cafe\N{COMBINING ACUTE ACCENT} D\N{LATIN SMALL LETTER E WITH ACUTE}but"
    found = edited(text)
    assert found.keys() == EDITS.keys() - {"without full stop"}
    assert text not in found.values()
