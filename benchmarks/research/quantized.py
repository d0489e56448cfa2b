"""Quantized encoders against fp32: speed, scores, agreement with people, and whether a text's batch mates matter.

Builds the default model and every setting into a directory of its own, then runs them in turn, so that a change of the
machine's load affects all of them. Prints one table. The rows are EVOUNA's, which are not part of the project.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from benchmarks.common.rows import DEFAULT_DATA, Row, read_rows, sample_rows
from benchmarks.common.sessions import open_session

from gradewire_models.build import build_model
from gradewire_models.build.quality import AnswerRow, embed_texts, row_scores, spearman
from gradewire_models.catalog.entries import Limits, Recipe, Setting
from gradewire_models.catalog.loading import CatalogModel, default_model, find_model
from gradewire_models.repository.built import BuiltModel

SHAPES = ((1, 7), (1, 11), (1, 40), (36, 7), (25, 10), (6, 40))
BATCHES = frozenset({(36, 7), (25, 10), (6, 40)})
TOKENS_A_ROUND = 250
EVERYTHING = Limits(min_cosine=-1, max_token_error=1e9, max_batch_effect=1e9)


def settings() -> Mapping[str, Recipe]:
    """What is compared, by the name that the table shows."""
    chosen, weights = _recipe("int8"), _recipe("w8")
    plain: dict[str, Setting] = {"activations": "static", "rounding": "nearest", "smoothing": 0.0, "outliers": 0}
    plain |= {"hidden_outliers": 0}
    return {
        "w8, blocks of 128": _change(weights, block_size=128, excluded=()),
        "w8, blocks of 32": _change(weights, excluded=()),
        "w8, blocks of 32, `up` in fp32": weights,
        "static, min-max": _change(chosen, **plain, excluded=()),
        "static, 99.99 % of the values": _change(chosen, **plain, percentile=99.99, excluded=()),
        "static, min-max, sensitive in fp32": _change(chosen, **plain),
        "static, outliers, smoothed, GPTQ": _change(chosen, activations="static", excluded=()),
        "the same, sensitive in fp32": _change(chosen, activations="static"),
        "by row, outliers, smoothed, GPTQ": _change(chosen, excluded=()),
        "the same, sensitive in fp32 (`-int8`)": chosen,
    }


def main() -> None:
    """Builds, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--wheels", type=Path, help="directory with the model's wheels; downloaded without it")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", action="append", help="a setting by its name; may be repeated")
    arguments = parser.parse_args()
    rows = sample_rows(read_rows(arguments.data), arguments.rows, arguments.seed)
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        models = build_all(Path(scratch), arguments.wheels, arguments.only)
        speed = speed_ratios(models, arguments.rounds)
        sys.stderr.write("speed is measured\n")
        report(models, speed, rows)
    sys.stdout.write(f"\n{len(rows)} rows; load average before {load_before:.2f}, after {os.getloadavg()[0]:.2f}\n")


def build_all(scratch: Path, wheels: Path | None, only: list[str] | None) -> dict[str, BuiltModel]:
    """The base first, then every setting, then dynamic quantization, which the project refuses."""
    base = default_model()
    models = {"fp32": build_model(base, scratch, wheels=wheels, keep_downloads=True).model}
    for number, (name, recipe) in enumerate(settings().items()):
        if only and name not in only:
            continue
        sys.stderr.write(f"building: {name}\n")
        model = _variant(base, f"setting-{number}", recipe)
        models[name] = build_model(model, scratch, wheels=wheels, keep_downloads=True).model
    if not only:
        # After gradewire_models.runtime (benchmarks.common.sessions), which switches the library's telemetry off.
        from onnxruntime.quantization import quantize_dynamic

        path = scratch / "dynamic.onnx"
        quantize_dynamic(models["fp32"].onnx_path, path, per_channel=True)
        models["dynamic (refused)"] = replace(models["fp32"], onnx_path=path)
    return models


def speed_ratios(models: Mapping[str, BuiltModel], rounds: int) -> dict[str, dict[tuple[int, int], float]]:
    """Median over rounds of fp32's time over the model's in the same round, one thread, by batch shape."""
    sessions = {name: open_session(model.onnx_path, threads=1) for name, model in models.items()}
    rng = np.random.default_rng(0)
    ratios: dict[str, dict[tuple[int, int], float]] = {name: {} for name in models}
    for texts, tokens in SHAPES:
        ids = rng.integers(1000, 20_000, (texts, tokens))
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        seconds: dict[str, list[float]] = {name: [] for name in models}
        for _ in range(rounds):
            for name, session in sessions.items():
                start = time.perf_counter()
                for _ in range(max(1, TOKENS_A_ROUND // ids.size)):
                    session.run(["sentence_embedding"], inputs)
                seconds[name].append(time.perf_counter() - start)
        for name, own in seconds.items():
            pairs = zip(seconds["fp32"], own, strict=True)
            ratios[name][texts, tokens] = statistics.median(before / after for before, after in pairs)
    return ratios


def report(
    models: Mapping[str, BuiltModel], speed: Mapping[str, Mapping[tuple[int, int], float]], rows: list[Row]
) -> None:
    """Prints one line a setting."""
    answers = [AnswerRow(row["question"], tuple(row["references"]), row["prediction"]) for row in rows]
    labels = np.array([row["label"] for row in rows], np.float64)
    before = row_scores(models["fp32"], answers)
    sys.stdout.write(
        "| setting | batches | single texts | MB | sbert changes by | sfve changes by | rank correlation | "
        "agreement, sbert | agreement, sfve | batch effect |\n" + "|---" * 10 + "|\n"
    )
    for name, model in models.items():
        after = row_scores(model, answers)
        changes = [f"{np.abs(after[score] - before[score]).max():.4f}" for score in before]
        ranks = min(spearman(after[score], before[score]) for score in before)
        agreement = [f"{np.corrcoef(after[score], labels)[0, 1]:.4f}" for score in before]
        batches = statistics.geometric_mean(ratio for shape, ratio in speed[name].items() if shape in BATCHES)
        single = statistics.geometric_mean(ratio for shape, ratio in speed[name].items() if shape not in BATCHES)
        cells = [name, f"{batches:.2f}", f"{single:.2f}", f"{model.onnx_path.stat().st_size / 1e6:.0f}", *changes]
        cells += [f"{ranks:.5f}", *agreement, f"{batch_effect(model, answers[:40]):.0e}"]
        sys.stdout.write(f"| {' | '.join(cells)} |\n")
        sys.stdout.flush()


def batch_effect(model: BuiltModel, rows: list[AnswerRow]) -> float:
    """Largest change of a component when texts of unequal length run together, not one by one."""
    texts = sorted({row.prediction for row in rows} | {row.references[0] for row in rows})
    together = embed_texts(model, texts)
    alone = np.concatenate([embed_texts(model, [text]) for text in texts[:12]])
    return float(np.abs(together[:12] - alone).max())


def _recipe(suffix: str) -> Recipe:
    recipe = find_model(f"{default_model().name}-{suffix}").recipe
    if recipe is None:
        raise LookupError(f"the variant {suffix} has no recipe")
    return recipe


def _change(recipe: Recipe, **changes: Setting) -> Recipe:
    return replace(recipe, settings={**recipe.settings, **changes})


def _variant(base: CatalogModel, name: str, recipe: Recipe) -> CatalogModel:
    return replace(
        base,
        name=name,
        base=base.name,
        default=False,
        recipe=recipe,
        numeric_class="trial-cpu",
        digest="",
        limits=EVERYTHING,
    )


if __name__ == "__main__":
    main()
