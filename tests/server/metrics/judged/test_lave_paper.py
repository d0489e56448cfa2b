"""LAVE as its paper has it, and what a judge is shown of the paper's own examples (table 4)."""

from typing import Any

import pytest
from tests.support.engines.programs import Table
from tests.support.judges.prompts import LAVE as TEST_PROMPT
from tests.support.judges.scripted import Script, preferring, saying, shown

from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.items import Item
from gradewire_server.domain.judge import Generate
from gradewire_server.domain.metric import NO_MODEL, ParameterError
from gradewire_server.metrics.judged.lave import LAVE, LaveParameters
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.parameters import read_parameters, write_line

# Table 4 of the paper, "duplicate reference answers have been omitted".
ECOSYSTEM = Item(
    "a",
    "What kind of ecological system is this?",
    ("water", "lake", "unanswerable", "tropical", "lush", "cloudy", "warm"),
    "aquatic",
)
BOAT = Item(
    "b",
    "What is ironic about this photo?",
    (
        *("no water", "boat", "boat is out of water", "boat not in water", "boat is not in water", "boat on dry land"),
        *("boat is on dry land", "boat on land", "boat is on land"),
    ),
    "there is a boat on the street",
)
FLAG = Item("c", "What country's flag is shown?", ("usa", "united states of america"), "american")


def parameters(**said: Any) -> LaveParameters:
    read = read_parameters(types_pb2.LaveParameters(**said), REGISTRY["lave"], "metrics[0].lave", model="j")
    assert isinstance(read, LaveParameters)
    return read


def asked(item: Item, **said: Any) -> tuple[Any, Table]:
    table = Table(judge=Script(on_choose=preferring("3", 0.6), on_generate=saying("It fits. So rating = 3")))
    return table.run(LAVE.score(item, parameters(**said), NO_MODEL)), table


PAPER = {"preset": types_pb2.LAVE_PRESET_PAPER}


@pytest.mark.parametrize(
    ("item", "said", "references"),
    [
        (ECOSYSTEM, PAPER, "'water', 'lake', 'unanswerable', 'tropical', 'lush', 'cloudy', 'warm'"),
        (BOAT, PAPER, ", ".join(map(repr, BOAT.references))),
        (FLAG, PAPER, "'usa', 'united states of america'"),
        # No word of "aquatic" or "american" is in a reference: all are shown. "boat" is one: it is the closest.
        (ECOSYSTEM, {}, "water; lake; unanswerable; tropical; lush; cloudy; warm"),
        (BOAT, {}, "boat"),
        (FLAG, {}, "usa; united states of america"),
        (ECOSYSTEM, {"references": types_pb2.SHOWN_REFERENCES_CLOSEST}, "water"),
        (FLAG, {"references": types_pb2.SHOWN_REFERENCES_CLOSEST}, "usa"),
        (BOAT, {"references": types_pb2.SHOWN_REFERENCES_ALL}, "; ".join(BOAT.references)),
    ],
)
def test_what_a_judge_reads_of_the_papers_examples(item: Item, said: dict[str, Any], references: str) -> None:
    _, table = asked(item, **said)
    of_the_item = shown(table.judge.asked[0].prompt).rpartition("user: ")[2]
    named = ("Reference answers", "Candidate answer") if said is PAPER else ("Accepted answers", "Student's answer")
    opening = "" if said is PAPER else "The student's answer is"
    assert of_the_item == (
        f"Question: {item.question}\n{named[0]}: {references}\n{named[1]}: {item.prediction}\nassistant: {opening}"
    )


def test_the_closest_reference_alone_is_shown_beside_the_preset_where_that_is_asked() -> None:
    for item, closest in ((FLAG, "usa"), (BOAT, "boat")):
        result, table = asked(item, references=types_pb2.SHOWN_REFERENCES_CLOSEST, **PAPER)
        assert f"Reference answers: '{closest}'\nCandidate answer: {item.prediction}\n" in shown(
            table.judge.asked[0].prompt
        )
        assert result.matched_reference == item.references.index(closest)


def test_votes_are_repeated_in_the_order_in_which_they_were_given() -> None:
    votes = ("lake", "water", "lush", "water", "water", "lake", "Water", "water", "water", "water")
    _, table = asked(Item("1", "What is it?", votes, "aquatic"), **PAPER)
    # One of ten is less than a quarter of seven.
    kept = ", ".join(repr(vote) for vote in votes if vote != "lush")
    assert f"Reference answers: {kept}\n" in shown(table.judge.asked[0].prompt)
    _, table = asked(Item("1", "What is it?", votes, "aquatic"), reference_filter=0.0, **PAPER)
    assert f"Reference answers: {', '.join(map(repr, votes))}\n" in shown(table.judge.asked[0].prompt)
    _, table = asked(Item("1", "What is it?", votes, "aquatic"))
    assert "Accepted answers: water (7 of 9); lake (2 of 9)\n" in shown(table.judge.asked[0].prompt)


def test_the_preset_takes_the_papers_ways() -> None:
    result, table = asked(ECOSYSTEM, **PAPER)
    # One request for an item, as in the paper.
    (written,) = table.judge.asked
    assert isinstance(written, Generate)
    assert (written.prompt.opening, written.stop) == ("", ())
    # The rating of the text, mapped linearly: (3 - 1) / 2.
    assert (result.score, result.parts.value, result.parts.reason) == (1.0, 3.0, "It fits. So rating = 3")
    assert (result.parts.labels, result.parts.probabilities) == (("1", "2", "3"), (0.0, 0.0, 1.0))
    assert (result.parts.decided_by, result.parts.demonstrations) == ("judge", "short")


def test_the_judge_rates_binary_questions_too() -> None:
    binary = Item("1", "Is it red?", ("yes",) * 8 + ("no",) * 2, "yes")
    result, table = asked(binary, **PAPER)
    assert (result.parts.decided_by, result.parts.demonstrations) == ("judge", "binary")
    assert len(table.judge.asked) == 1
    result, table = asked(binary)
    assert (result.parts.decided_by, table.judge.asked) == ("rule", [])


@pytest.mark.parametrize(("rating", "score"), [("1", 0.0), ("2", 0.5), ("3", 1.0)])
def test_ratings_are_mapped_as_printed(rating: str, score: float) -> None:
    table = Table(judge=Script(on_generate=saying(f"2 of 3 say so, hence so. So rating = {rating}")))
    assert table.run(LAVE.score(FLAG, parameters(**PAPER), NO_MODEL)).score == score


def test_what_is_said_goes_before_the_preset() -> None:
    said = parameters(mode=types_pb2.LAVE_MODE_RATING, prompt="lave/2", **PAPER)
    assert (said.mode, said.prompt_name, said.value, said.references) == ("rating", "lave/2", "most_probable", "all")


def test_the_line_names_all_that_the_preset_means() -> None:
    line = write_line(REGISTRY["lave"], parameters(**PAPER), "0" * 64)
    assert line.startswith(
        "lave:paper/3?binary=judge&caption=false&demonstrations=auto&guard=none&mode=rationale&model=j@000000000000&prompt="
        "lave_paper/2@"
    )
    assert line.endswith("&reference_filter=0.25&references=all&value=most_probable")
    assert write_line(REGISTRY["lave"], parameters(), "0" * 64).startswith("lave:v1/3?")


@pytest.mark.parametrize("shots", [0, 1, 5, 8])
def test_so_many_demonstrations_stand_before_the_item(shots: int) -> None:
    result, table = asked(FLAG, shots=shots)
    assert shown(table.judge.asked[0].prompt).count("\nStudent's answer: ") == shots + 1
    assert result.parts.demonstrations == ("long" if shots else "")
    assert parameters(shots=shots).view.shots == shots


def test_there_are_no_more_demonstrations_than_the_prompt_has() -> None:
    with pytest.raises(ParameterError, match="shots: must be at most 8, the size of lave/2's smallest"):
        parameters(shots=9)
    with pytest.raises(ParameterError, match="shots: must be at most 1,"):
        parameters(shots=2, prompt=TEST_PROMPT)


def test_captions_are_shown_with_captioned_demonstrations() -> None:
    item = Item("1", FLAG.question, FLAG.references, FLAG.prediction, captions=("A flag.", "Stripes and stars."))
    _, table = asked(item, caption=True, **PAPER)
    text = shown(table.judge.asked[0].prompt)
    assert "You are told what an image shows." in text.partition("user: ")[0]
    assert text.count("\nuser: Image: ") == 9
    assert "\nuser: Image: A flag. / Stripes and stars.\nQuestion: What country's flag is shown?\n" in text
    _, table = asked(item, **PAPER)
    assert "Image" not in shown(table.judge.asked[0].prompt)


def test_a_prompt_without_a_place_for_captions_says_so() -> None:
    without = TEST_PROMPT.replace("Image: {caption}\n", "")
    with pytest.raises(ParameterError, match=r"caption: test-lave/1 has no \{caption\} in the item of rating"):
        parameters(caption=True, prompt=without)
