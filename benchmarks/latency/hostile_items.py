"""Items that are as large as the server takes them, or cost it much; a mark tells each from all others."""

import base64
import io
from typing import Any

Item = dict[str, Any]


def hostile_items(mark: str = "") -> dict[str, Item]:
    """By name; `mark` stands in every text, so that nothing of it is known from a call before."""
    asked = {"question": f"What is it, {mark}?"}
    many = [f"reference {mark} {number} of many words" for number in range(1_000)]
    lengths = [f"{mark} " + " ".join(f"v{number}" for number in range(1, count)) for count in range(1, 200)]
    return {
        "2 000 words": {**asked, "references": ["an orchard", "a red brick barn"], "prediction": numbered(mark, 2_000)},
        "2 000 words, 199 lengths of references": {
            **asked,
            "references": lengths,
            "prediction": numbered(mark, 2_000),
        },
        "100 KB": {**asked, "references": ["an orchard"], "prediction": numbered(mark, 14_000)},
        "450 000 Han letters": {**asked, "references": [f"an orchard {mark}"], "prediction": mark + "語" * 450_000},
        "80 000 words": {**asked, "references": ["an orchard"], "prediction": f"{mark} " + "river glass " * 40_000},
        "1 000 references": {
            **asked,
            "references": many,
            "prediction": f"{mark} " + "a bridge of many words over the river " * 20,
        },
        "1 000 references of 1.3 KB": {
            **asked,
            "references": [f"{mark}{number} " + "an old bridge over it " * 60 for number in range(1_000)],
            "prediction": f"{mark} " + "a bridge of many words over the river " * 20,
        },
        "20 references of 65 KB": {
            **asked,
            "references": [f"{mark}word{number} " * 6_000 for number in range(20)],
            "prediction": f"{mark} " + "a bridge " * 2_000,
        },
        "one word of 400 KB": {**asked, "references": ["an orchard"], "prediction": mark + "x" * 400_000},
        "400 KB of marks": {**asked, "references": ["an orchard"], "prediction": mark + "-,.'" * 100_000},
        "400 KB of digits": {**asked, "references": ["17"], "prediction": mark + " 1,234 and 5.6" * 28_000},
        "300 KB of accents": {**asked, "references": ["é"], "prediction": mark + "e\u0301 \u1ebf\u0323" * 50_000},
        "200 KB of emoji": {**asked, "references": ["a cat"], "prediction": mark + "\U0001f408\u200d\u2b1b" * 20_000},
    }


def numbered(mark: str, count: int) -> str:
    """So many words, each of which stands there once."""
    return " ".join(f"{mark}w{number}" for number in range(count))


def pictured(mark: int, width: int = 2_000, count: int = 4) -> list[dict[str, Any]]:
    """So many PNG files of noise, about 3 MB each at a width of 1 000; needs Pillow and numpy."""
    import numpy as np
    from PIL import Image

    found = []
    for number in range(count):
        pixels = np.random.default_rng((mark, number)).integers(0, 256, (width // 2, width // 2, 3), np.uint8)
        data = io.BytesIO()
        Image.fromarray(pixels).save(data, "PNG", compress_level=1)
        found.append({"data": base64.b64encode(data.getvalue()).decode(), "mediaType": "image/png"})
    return found
