"""Writes what the package bert-score says of 54 pairs: `make_bertscore_golden.py OUTPUT NAME=FOLDER …`.

FOLDER is an encoder as Hugging Face has it, of the same weights as the model NAME of the catalog. Beside torch and
transformers it needs `pip install bert-score==0.3.13`; the file in tests/server/metrics was written with the
versions that it names.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bert_score import BERTScorer

PAIRS: Final[list[tuple[str, list[str]]]] = [
    ("Paris", ["Paris"]),
    ("Paris", ["London"]),
    ("It is the city of Paris, in France.", ["Paris"]),
    ("the answer might be Paris or Lyon", ["Paris, France", "Lutetia", "the French capital"]),
    ("two dogs", ["2 dogs", "a pair of dogs", "dogs"]),
    ("A man rides a horse along the beach at sunset.", ["horse riding", "a person on horseback by the sea"]),
    ("no", ["yes"]),
    ("yes, definitely", ["yes", "yep"]),
    ("I cannot tell from this picture.", ["a red umbrella"]),
    ("red", ["blue", "dark red", "crimson"]),
    ("!!!", ["wow!", "..."]),
    ("Well... maybe; (possibly) - it's 'fine'?", ["maybe fine"]),
    ("U.S.A.", ["USA", "United States of America"]),
    ("3.14159", ["pi", "3.14"]),
    ("1,000,000", ["one million", "1000000"]),
    ("1969-07-20", ["July 20, 1969", "20 July 1969"]),
    ("Zoë Kravitz", ["Zoe Kravitz"]),
    ("naïve café crème brûlée", ["naive cafe creme brulee"]),
    ("東京", ["Tokyo", "東京都"]),
    ("犬が二匹いる", ["two dogs", "二匹の犬"]),
    ("Москва является столицей России", ["Москва", "Moscow"]),
    ("القاهرة هي عاصمة مصر", ["القاهرة", "Cairo"]),
    ("서울", ["Seoul", "서울특별시"]),
    ("Ἀθῆναι", ["Αθήνα", "Athens"]),
    ("क्या यह सही है", ["सही"]),
    ("emoji 😀 and 🎉", ["party", "a smiling face"]),
    ("William Shakespeare wrote Hamlet around the year 1600", ["Shakespeare", "W. Shakespeare"]),
    ("hamlet was written by the bard", ["William Shakespeare"]),
    ("photosynthesis", ["the process by which plants turn light into chemical energy"]),
    ("Plants take up carbon dioxide and water and give off oxygen.", ["oxygen", "O2"]),
    ("a", ["the", "an"]),
    ("cat cat cat cat cat", ["cat"]),
    ("the the the", ["a cat sat on the mat"]),
    ("supercalifragilisticexpialidocious", ["a very long word"]),
    ("x = y + 2 * (z - 1)", ["x equals y plus two times z minus one"]),
    ("http://example.org/a?b=c&d=e", ["a web address"]),
    ("The Beatles released Abbey Road in September 1969.", ["1969", "September 26, 1969", "the sixties"]),
    ("John Lennon, Paul McCartney, George Harrison and Ringo Starr", ["Ringo Starr"]),
    ("It was not Ringo Starr.", ["Ringo Starr"]),
    ("a kitten is asleep on the sofa", ["a cat sleeps on a couch", "nothing happens"]),
    ("\tleading and trailing white space  ", ["white space"]),
    ("line one\nline two", ["two lines"]),
    ("vitamin C (ascorbic acid)", ["ascorbic acid", "vitamin c"]),
    ("Mount Everest, 8,849 metres", ["Everest", "Mt. Everest", "Sagarmatha", "Chomolungma"]),
    ("she said that she had never been there before", ["he told us he had been there once"]),
    ("water boils at 100 degrees Celsius at sea level", ["100 °C", "212 °F", "100 degrees"]),
    ("The quick brown fox jumps over the lazy dog. " * 6, ["a fox jumps over a dog"]),
    ("fox", ["The quick brown fox jumps over the lazy dog. " * 6]),
    ("word " * 300, ["another word", "word " * 290]),
    ("unrelated answer about gardening", ["the treaty was signed in 1648", "granite", "a minor chord"]),
]
QUESTIONS: Final[list[tuple[str, str, list[str]]]] = [
    ("what colour is the very big bus in this picture", "blue", ["red"]),
    ("what colour is the very big car in this picture", "yellow", ["green"]),
    ("what colour is the very big house in this picture", "white", ["black"]),
    ("what colour is the very big door in this picture", "grey", ["pink"]),
]
BASELINE: Final = (0.31, 0.29, 0.3)
LAYERS: Final = {"all-MiniLM-L6-v2": (256, (3, 5, 6)), "all-mpnet-base-v2": (384, (9, 12))}


def measure(folder: Path, layer: int, max_tokens: int, baseline: Path) -> dict[str, list[list[float]]]:
    """Precision, recall and F1 of each pair, the best of its references each, in three settings."""
    predictions = [prediction for prediction, _ in PAIRS]
    references = [references for _, references in PAIRS]
    distinct = list(dict.fromkeys(reference for each in references for reference in each))
    settings: dict[str, dict[str, Any]] = {
        "plain": {},
        "idf": {"idf": True, "idf_sents": distinct},
        "rescaled": {"rescale_with_baseline": True, "baseline_path": str(baseline), "lang": "en"},
    }
    found = {}
    for name, given in settings.items():
        scorer = BERTScorer(model_type=str(folder), num_layers=layer, device="cpu", **given)
        scorer._tokenizer.model_max_length = max_tokens
        values = zip(*(each.tolist() for each in scorer.score(predictions, references)), strict=True)
        found[name] = [[round(value, 7) for value in each] for each in values]
    return found


def measure_questions(folder: Path, layer: int, max_tokens: int) -> list[list[float]]:
    """Precision, recall and F1 of the answers behind their questions, with idf over these very references."""
    predictions = [f"{question} {prediction}" for question, prediction, _ in QUESTIONS]
    references = [f"{question} {reference}" for question, _, (reference,) in QUESTIONS]
    scorer = BERTScorer(model_type=str(folder), num_layers=layer, device="cpu", idf=True, idf_sents=references)
    scorer._tokenizer.model_max_length = max_tokens
    values = zip(*(each.tolist() for each in scorer.score(predictions, references)), strict=True)
    return [[round(value, 7) for value in each] for each in values]


def main() -> None:
    """Measures every model that is given and writes one file."""
    output, *given = sys.argv[1:]
    models: dict[str, Any] = {}
    questions: dict[str, Any] = {}
    with TemporaryDirectory() as directory:
        baseline = Path(directory) / "baseline.tsv"
        lines = ["LAYER,P,R,F", *(",".join(map(str, (layer, *BASELINE))) for layer in range(13))]
        baseline.write_text("\n".join(lines) + "\n")
        for name, folder in (each.split("=", 1) for each in given):
            max_tokens, layers = LAYERS[name]
            models[name] = {str(layer): measure(Path(folder), layer, max_tokens, baseline) for layer in layers}
            questions[name] = {str(layer): measure_questions(Path(folder), layer, max_tokens) for layer in layers}
    packages = ("bert-score", "torch", "transformers", "tokenizers")
    golden = {
        "made_by": {package: version(package) for package in packages},
        "baseline": BASELINE,
        "pairs": PAIRS,
        "models": models,
        "questions": {"items": QUESTIONS, "models": questions},
    }
    Path(output).write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
