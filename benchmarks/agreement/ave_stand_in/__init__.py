"""A stand-in for the AVE benchmark, made from labelled short answers; it contains no row of AVE itself.

Part 1 is the original row, part 2 describes its prediction in three sentences, part 3 writes its references in another
form with the same meaning. SFVE's paper (section 3.3) had a language model write the descriptions and annotators check
them. Here templates and dictionaries do it, so every row names its method and can be made again.
"""

from benchmarks.agreement.ave_stand_in.making import LabelledAnswer, StandIn, StandInRow, exact_match, stand_in
from benchmarks.agreement.ave_stand_in.shifts import Thesaurus, WordForms

__all__ = ["LabelledAnswer", "StandIn", "StandInRow", "Thesaurus", "WordForms", "exact_match", "stand_in"]
