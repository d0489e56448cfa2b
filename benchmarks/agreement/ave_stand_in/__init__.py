"""Make a stand-in for the AVE benchmark from labelled short answers, without rows from AVE.

Part 1 is the original row. Part 2 describes the prediction in three sentences. Part 3 rewrites the references with the
same meaning. In SFVE's paper (section 3.3), a language model wrote the descriptions and annotators checked them. Here,
templates and dictionaries write the descriptions, so every row states its method and can be reproduced.
"""

from benchmarks.agreement.ave_stand_in.making import LabelledAnswer, StandIn, StandInRow, exact_match, stand_in
from benchmarks.agreement.ave_stand_in.shifts import Thesaurus, WordForms

__all__ = ["LabelledAnswer", "StandIn", "StandInRow", "Thesaurus", "WordForms", "exact_match", "stand_in"]
