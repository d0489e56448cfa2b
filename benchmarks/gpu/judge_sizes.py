"""The sizes of judges that are measured with drawn weights."""

from dataclasses import replace
from typing import Final

from gradewire_models.judges.build.shapes import Sizes

SMALL: Final = Sizes(
    architecture="qwen2",
    layers=28,
    dims=1536,
    heads=12,
    kv_heads=2,
    feed_forward_dims=8960,
    norm_epsilon=1e-6,
    rope_base=1e6,
    context_tokens=4096,
    vocabulary=151_936,
)
"""The shape of Qwen2.5-1.5B."""
LARGE: Final = replace(SMALL, dims=3584, heads=28, kv_heads=4, feed_forward_dims=18_944, vocabulary=152_064)
"""The shape of Qwen2.5-7B."""
TINY: Final = replace(SMALL, layers=4, dims=256, heads=4, feed_forward_dims=512, context_tokens=1024, vocabulary=2048)
"""A shape for parity, whose results a CPU computes at once."""
