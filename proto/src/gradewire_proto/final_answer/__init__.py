"""The final answer that a completion asserts: found by marks, phrases and corrections in 13 languages."""

from gradewire_proto.final_answer.find import CONFIDENCE, MAX_READ_CHARACTERS, FinalAnswer, find_final_answer
from gradewire_proto.final_answer.marks import Position

__all__ = ["CONFIDENCE", "MAX_READ_CHARACTERS", "FinalAnswer", "Position", "find_final_answer"]
