"""Find the 8-bit graphs that choose windows, without packages that write graphs.

`gradewire_models.build.window_graph` writes a graph. The file's name contains the model's digest, the writer's version
and the content's digest, so a damaged, truncated or outdated file is never used.
"""

import hashlib
from pathlib import Path
from typing import Final

from gradewire_models.repository.built import BuiltModel

COSINE_ERROR: Final = "gradewire.cosine_error"
"""The key of the graph's metadata with the largest measured error of a cosine."""
WRITER_VERSION: Final = 1
"""Change this version whenever the writer gives other graphs for the same model."""
UNFINISHED: Final = ".writing-"
"""The first characters of an unfinished file's name."""
WINDOW_CLASS: Final = "int8-windows-cpu"
_DIGITS: Final = 32

CHECKED_TEXTS: Final = (
    "a",
    "7",
    "the",
    "paris",
    "1969",
    "two dogs",
    "3.14159265358979",
    "1,234,567,890 kg",
    "neil armstrong",
    "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
    "wolfgang amadeus mozart in vienna",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "zoë smørrebrød naïve façade ångström",
    "東京 は 日本 の 首都 です",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
    "e\u0301\u0327\u0323 \u200d\u200b \U0001f9d1\u200d\U0001f680 \U0001f1eb\U0001f1f7",
    "\ufffd \u0000 \ue000 \ufdfd",
    "aaaa aaaa aaaa aaaa aaaa aaaa aaaa aaaa",
    "<s> [CLS] [SEP] [MASK] </s> ##ing ##s",
    "((((!!!!????....,,,,;;;;::::----____))))",
    "x = -b \u00b1 \u221a(b\u00b2 \u2212 4ac) \u2044 2a \u2208 \u211d",
    " ".join(("the treaty be sign by germany and the ally power in june after month of talk in a hall of mirror",) * 3),
)
"""Short, long and unusual texts, on which a graph's vectors are checked whenever the graph is opened."""


def graph_name(model: BuiltModel, content: bytes) -> str:
    """Return the name of the file for a model's graph with this content."""
    return f"{_prefix(model)}{hashlib.sha256(content).hexdigest()[:_DIGITS]}.onnx"


def find_graph(folder: Path, model: BuiltModel) -> Path | None:
    """Return the file with a model's graph, or None. Remove files that are damaged."""
    for path in sorted(folder.glob(f"{_prefix(model)}*.onnx")):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if path.stem.endswith(f"-{digest[:_DIGITS]}"):
            return path
        path.unlink(missing_ok=True)
    return None


def remove_leftovers(folder: Path, model: BuiltModel) -> None:
    """Remove the model's graphs from other versions of the writer, and unfinished files of writers that were killed."""
    current = _prefix(model)
    for path in (*folder.glob(f"{model.digest[:_DIGITS]}-*.onnx"), *folder.glob(f"{UNFINISHED}*")):
        if not path.name.startswith(current):
            path.unlink(missing_ok=True)


def _prefix(model: BuiltModel) -> str:
    return f"{model.digest[:_DIGITS]}-{WRITER_VERSION}-"
