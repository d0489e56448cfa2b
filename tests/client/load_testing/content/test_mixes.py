import pytest

from gradewire.load_testing.content.mixes import MIXES, DrawnItem, Items, Mix


def drawn(items: Items, count: int) -> list[DrawnItem]:
    return [items.next() for _ in range(count)]


@pytest.mark.parametrize("name", ["short", "verbose"])
def test_answers_have_as_many_words_as_the_mix_says_and_are_new(name: str) -> None:
    mix = MIXES[name]
    found = drawn(mix.items("0/0/1"), 3000)
    lengths = [len(each.item.prediction.split()) for each in found]
    assert (min(lengths), max(lengths)) == (mix.min_words, mix.max_words)
    assert lengths == [each.words for each in found]
    assert not any(each.repeated or each.again for each in found)
    assert len({each.item.prediction for each in found}) > 0.99 * len(found)
    assert all(each.item.references and each.item.question for each in found)


def test_half_of_the_answers_of_repeats_are_of_one_pool() -> None:
    mix = MIXES["repeats"]
    pool = {item.prediction for item in mix.pool()}
    for seed in ("0/0/1", "0/1/1"):
        found = drawn(mix.items(seed), 2000)
        repeated = [each.item.prediction for each in found if each.repeated]
        assert 900 < len(repeated) < 1100
        assert set(repeated) <= pool


def test_the_same_seed_gives_the_same_answers() -> None:
    mix = Mix(min_words=3, max_words=50, repeat_share=0.2)
    assert drawn(mix.items("a"), 50) == drawn(mix.items("a"), 50)
    assert drawn(mix.items("a"), 50) != drawn(mix.items("b"), 50)


def test_every_process_and_order_has_answers_of_its_own() -> None:
    mix = MIXES["short"]
    supplies = [mix.supply(7, part, 2) for part in range(2)]
    sent = [{each.item.prediction for each in drawn(supply(order), 200)} for supply in supplies for order in (1, 2)]
    assert len(set.union(*sent)) > 0.97 * 800
    assert drawn(mix.supply(7, 0, 2)(1), 20) == drawn(supplies[0](1), 20)
