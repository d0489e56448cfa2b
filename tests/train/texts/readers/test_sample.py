"""A sample of a stream: seeded, bounded, whole groups, of no order."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gradewire_train.texts.readers.sample import Sample


@given(st.lists(st.integers(0, 40), max_size=200), st.integers(1, 10), st.randoms())
def test_the_same_keys_are_kept_in_any_order_and_each_with_all_its_entries(
    keys: list[int], size: int, rng: object
) -> None:
    found = []
    for _ in range(2):
        sample: Sample[int] = Sample(size, seed=3)
        for key in keys:
            sample.add(str(key), key)
        found.append(list(sample.groups()))
        rng.shuffle(keys)  # type: ignore[attr-defined] # hypothesis' Random
    assert found[0] == found[1]
    assert len(found[0]) == min(size, len(set(keys)))
    assert all(len(set(group)) == 1 and len(group) == Counter(keys)[group[0]] for group in found[0])


def test_another_seed_keeps_others() -> None:
    kept = []
    for seed in (1, 2):
        sample: Sample[int] = Sample(10, seed=seed)
        for key in range(1000):
            sample.add(str(key), key)
        kept.append({group[0] for group in sample.groups()})
    assert kept[0] != kept[1]


def test_every_key_is_as_likely() -> None:
    counts: Counter[int] = Counter()
    for seed in range(400):
        sample: Sample[int] = Sample(2, seed=seed)
        for key in range(8):
            sample.add(str(key), key)
        counts.update(group[0] for group in sample.groups())
    # 400 draws of 2 out of 8: 100 a key, standard deviation 8.7; five of them on either side
    assert all(56 < counts[key] < 144 for key in range(8))
