"""Check a built judge's files, tokenizer and logits."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from gradewire_models.build.verify import Check
from gradewire_models.errors import ModelBrokenError
from gradewire_models.judges.build.reference import TEXTS, Golden, load_golden
from gradewire_models.judges.catalog import CatalogJudge, Form
from gradewire_models.judges.cores.opening import open_core
from gradewire_models.judges.cores.rows import PADDED_FORMS, CoreError, Row, Run
from gradewire_models.judges.description import golden_file, graph_file
from gradewire_models.judges.repository import BuiltJudge, load_judge
from gradewire_models.runtime import cpu_session_options, onnxruntime, open_int8

Logits: TypeAlias = NDArray[np.float32]
States: TypeAlias = dict[str, NDArray[np.float32]]
"""Keys and values by name, ``keys_0`` to ``values_N``, each float32 [kv_heads, tokens, head_dim]."""

NO_PREFIX_BIAS = np.float32(-1e30)

MIN_CORRELATIONS: Mapping[Form, float] = {"int8": 0.97, "fp16": 0.999, "int4": 0.95}
"""Minimum correlation between a token's logits from the graph and its logits in plain float32, by form.

8-bit graphs of all tested judges reach 0.99; a graph with swapped rotary pairs stays below 0.9.
"""
MAX_BATCH_SHIFT = 1e-3
"""Maximum change of a token's probability in a padded batch. The sums of larger products have a different order."""
MAX_PREFIX_SHIFT = 0.2
"""Maximum total variation between the next token's distributions with and without a cached prefix.

The distributions differ because float32 rounding can move an activation to the next integer.
"""

_INT8_LARGEST, _UINT8_LARGEST = 127, 255


class JudgeSession:
    """A single-threaded onnxruntime session for a judge's graph and weights."""

    def __init__(self, onnx_path: Path) -> None:
        options = cpu_session_options(1)
        # Planning memory reuse takes seconds (quadratic in the number of nodes) and saves neither time nor memory.
        options.enable_mem_reuse = False
        self._session = open_int8(onnx_path, options)
        shapes = {value.name: value.shape for value in self._session.get_inputs()}
        self._names = [name.removeprefix("prefix_") for name in shapes if name.startswith(("prefix_k", "prefix_v"))]
        self._kv_heads, _, self._head_dim = shapes["prefix_keys_0"]

    def run(
        self,
        texts: Sequence[Sequence[int]],
        *,
        prefix: States | None = None,
        past: States | None = None,
        past_lengths: Sequence[int] = (),
    ) -> tuple[Logits, States]:
        """Run a batch: each text's new tokens, after a shared prefix and the text's past tokens.

        `past` contains the keys and values of all past tokens, text after text. `past_lengths` contains each text's
        number of past tokens. Return the logits of each text's last token, float32 [texts, vocabulary], and the keys
        and values of all past and new tokens, text after text.
        """
        lengths = [len(text) for text in texts]
        before = list(past_lengths) or [0] * len(lengths)
        start = 0 if prefix is None else prefix["keys_0"].shape[1]
        places = [np.arange(start + own, start + own + new) for own, new in zip(before, lengths, strict=True)]
        inputs = {
            "ids": np.concatenate([np.asarray(text, np.int64) for text in texts]),
            "positions": np.concatenate(places).astype(np.int64),
            "lengths": np.array(lengths, np.int64),
            "past_lengths": np.array(before, np.int64),
            "prefix_bias": np.array([NO_PREFIX_BIAS if prefix is None else 0], np.float32),
        }
        # A token of zeros replaces a missing prefix; the bias removes its weight.
        inputs |= {f"prefix_{name}": array for name, array in (prefix or self._blank(1)).items()}
        inputs |= {f"own_past_{name}": array for name, array in (past or self._blank(0)).items()}
        logits, *states = self._session.run(["logits", *(f"own_{name}" for name in self._names)], inputs)
        return logits, dict(zip(self._names, states, strict=True))

    def _blank(self, tokens: int) -> States:
        blank = np.zeros((self._kv_heads, tokens, self._head_dim), np.float32)
        return dict.fromkeys(self._names, blank)


def verify_judge(repository: Path, name: str, expected: CatalogJudge | None) -> list[Check]:
    """Check the judge `name` in `repository`; `expected` is None if the judge is not in the catalog.

    If the files are broken, or the judge has only the GGUF form, check only the files and the catalog.

    Raises:
        ModelNotBuiltError: The judge is missing.
    """
    try:
        judge = load_judge(repository, name, every_byte=True)
        goldens = {form: load_golden(judge.directory / golden_file(form)) for form in judge.forms if graph_file(form)}
    except (ModelBrokenError, OSError, ValueError) as error:
        return [Check("files", passed=False, detail=str(error))]
    said = ", ".join(f"{form} {judge.digests[form]}" for form in judge.forms)
    checks = [Check("files", passed=True, detail=f"digests {said}"), _check_catalog(judge, expected)]
    if goldens:
        checks.append(_check_tokenizer(judge, next(iter(goldens.values()))))
    if "int8" in goldens:
        golden, session = goldens["int8"], JudgeSession(judge.path("int8"))
        checks += [
            check_processor(),
            _check_logits("int8", session.run([text.tolist() for text in golden.ids])[0], golden),
            _check_batches(session, golden),
            _check_prefix(session, golden),
        ]
    for form in PADDED_FORMS:
        if form in goldens:
            checks += check_padded(judge.path(form), form, goldens[form])
    return checks


def check_processor() -> Check:
    """Check that integer products are exact on this processor; if they saturate, a judge's output is nonsense."""
    width = 64
    nodes = [helper.make_node("MatMulInteger", ["values", "weights"], ["sums"])]
    weights = numpy_helper.from_array(np.full((width, width), _INT8_LARGEST, np.int8), "weights")
    values = [helper.make_tensor_value_info("values", TensorProto.UINT8, ["rows", width])]
    sums = [helper.make_tensor_value_info("sums", TensorProto.INT32, ["rows", width])]
    graph = helper.make_graph(nodes, "largest_products", values, sums, [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = cpu_session_options(1)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"values": np.full((3, width), _UINT8_LARGEST, np.uint8)})
    exact = bool((found == width * _UINT8_LARGEST * _INT8_LARGEST).all())
    detail = (
        "8-bit products are exact"
        if exact
        else "8-bit products saturate on this processor. Use the GGUF form (--form gguf)"
    )
    return Check("processor", passed=exact, detail=detail)


def _check_catalog(judge: BuiltJudge, expected: CatalogJudge | None) -> Check:
    if expected is None:
        return Check("catalog", passed=True, detail="not in the catalog")
    wrong = [
        f"{form}: {expected.digests[form]}"
        for form in judge.forms
        if expected.digests.get(form, judge.digests[form]) != judge.digests[form]
    ]
    detail = f"the catalog has different digests: {', '.join(wrong)}" if wrong else "the digests match the catalog"
    return Check("catalog", passed=not wrong, detail=detail)


def _check_tokenizer(judge: BuiltJudge, golden: Golden) -> Check:
    tokenizer = Tokenizer.from_file(str(judge.tokenizer_path))
    same = [tokenizer.encode(text).ids == ids.tolist() for text, ids in zip(TEXTS, golden.ids, strict=True)]
    tokenizer.encode_special_tokens = True
    plain = not set(tokenizer.encode(TEXTS[0]).ids) & set(judge.eos_ids)
    detail = f"{sum(same)} of {len(same)} texts give the same ids as during the build; chat tokens in a text "
    detail += "can be read as plain text" if plain else "cannot be read as plain text"
    return Check("tokenizer", passed=all(same) and plain, detail=detail)


def _check_logits(form: Form, logits: Logits, golden: Golden) -> Check:
    found = min(float(np.corrcoef(own, its)[0, 1]) for own, its in zip(logits, golden.logits, strict=True))
    name = "logits" if form == "int8" else f"logits of {form}"
    detail = f"lowest correlation with float32 {found:.4f} (at least {MIN_CORRELATIONS[form]})"
    return Check(name, passed=found >= MIN_CORRELATIONS[form], detail=detail)


def check_padded(path: Path, form: Form, golden: Golden) -> list[Check]:
    """Check a graph for GPUs on the CPU: its logits, and a text alone, in a batch, and after a cached prefix.

    Raises:
        ModelBrokenError: The graph cannot be opened or does not compute.
    """
    every = tuple(range(golden.logits.shape[1]))
    texts = [tuple(text.tolist()) for text in golden.ids]
    try:
        core = open_core(path, form, threads=1, device="cpu")
        together = [result.probabilities for result in core.run(Run(None, _rows(texts, every)))]
        alone = [core.run(Run(None, _rows([text], every)))[0].probabilities for text in texts]
        core.run(Run(None, (Row(-1, texts[0][:2], keep=True),)))
        (after,) = core.run(Run(-1, _rows([texts[0][2:]], every)))
    except CoreError as error:
        raise ModelBrokenError(f"the {form} graph does not compute: {error}") from error
    with np.errstate(divide="ignore"):
        logits = np.maximum(np.log(np.array(together)), np.float64(-1e3)).astype(np.float32)
    shift = float(np.abs(np.array(together) - np.array(alone)).max())
    moved = float(np.abs(np.array(after.probabilities) - np.array(alone[0])).max())
    worst = max(shift, moved)
    detail = f"a probability moves {worst:.2g} in a batch or after a cached prefix (at most {MAX_BATCH_SHIFT})"
    return [
        _check_logits(form, logits, golden),
        Check(f"batches of {form}", passed=worst <= MAX_BATCH_SHIFT, detail=detail),
    ]


def _rows(texts: Sequence[tuple[int, ...]], labels: tuple[int, ...]) -> tuple[Row, ...]:
    return tuple(Row(place, text, labels) for place, text in enumerate(texts))


def _check_batches(session: JudgeSession, golden: Golden) -> Check:
    texts = [text.tolist() for text in golden.ids]
    together, states = session.run(texts)
    next_tokens = [[text[0]] for text in texts]
    further, _ = session.run(next_tokens, past=states, past_lengths=[len(text) for text in texts])
    same = True
    for place, text in enumerate(texts):
        alone, own = session.run([text])
        later, _ = session.run([next_tokens[place]], past=own, past_lengths=[len(text)])
        same &= bool((alone[0] == together[place]).all() and (later[0] == further[place]).all())
    detail = "the same alone and in a batch, bit for bit" if same else "a text's result depends on its batch"
    return Check("batches", passed=same, detail=detail)


def _check_prefix(session: JudgeSession, golden: Golden) -> Check:
    text = max((text.tolist() for text in golden.ids), key=len)
    middle = len(text) // 2
    _, prefix = session.run([text[:middle]])
    kept, _ = session.run([text[middle:]], prefix=prefix)
    whole, _ = session.run([text])
    shares = [np.exp(row.astype(np.float64) - row.max()) for row in (kept[0], whole[0])]
    shift = float(np.abs(shares[0] / shares[0].sum() - shares[1] / shares[1].sum()).sum() / 2)
    detail = f"a cached prefix moves {shift:.4f} of the next token's probability (at most {MAX_PREFIX_SHIFT})"
    return Check("prefix", passed=shift <= MAX_PREFIX_SHIFT, detail=detail)
