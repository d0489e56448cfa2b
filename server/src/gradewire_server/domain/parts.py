"""Parts of scores, a type for each kind; written from types.proto."""

from gradewire_proto import parts
from gradewire_proto.parts import *

__all__: list[str] = []
__all__ += parts.__all__
