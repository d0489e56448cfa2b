"""Make a stand-in for the AVE benchmark from labelled short answers.

Part 1 is the original row. Part 2 describes the prediction in three sentences. Part 3 rewrites the references with the
same meaning. In SFVE's paper (section 3.3), a language model wrote the descriptions; here, templates and dictionaries
write them.
"""

from benchmarks.agreement.ave_stand_in.making import LabelledAnswer, StandIn, StandInRow, exact_match, stand_in
from benchmarks.agreement.ave_stand_in.shifts import Thesaurus, WordForms

__all__ = ["LabelledAnswer", "StandIn", "StandInRow", "Thesaurus", "WordForms", "exact_match", "stand_in"]
