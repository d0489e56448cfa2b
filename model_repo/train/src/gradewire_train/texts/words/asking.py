"""Questions and the sentences that answer them, by topic of WordNet (lexnames(5WN)); "{}" stands for the answer."""

from collections.abc import Mapping
from types import MappingProxyType

Asked = tuple[tuple[str, str], ...]
"""Pairs of a question and a sentence that answers it."""

BY_TOPIC: Mapping[int, Asked] = MappingProxyType(
    {
        4: (
            ("what are the people doing", "The people are engaged in {}"),
            ("what is this activity called", "This activity is called {}"),
            ("which activity is going on", "What is going on is {}"),
            ("what happens here", "What happens here is {}"),
            ("what is the event about", "The event is about {}"),
        ),
        5: (
            ("what animal is shown", "The animal that is shown is {}"),
            ("which animal stands by the fence", "Standing by the fence is {}"),
            ("what kind of animal is that", "That animal is {}"),
            ("what is lying on the sofa", "There is {} lying on the sofa"),
            ("which creature lives there", "The creature that lives there is {}"),
            ("what are they feeding", "They are feeding {}"),
            ("what animal is on the logo", "The logo has {} on it"),
        ),
        6: (
            ("what is on the table", "On the table there is {}"),
            ("what is he holding", "He is holding {} in his hand"),
            ("what object is this", "This object is {}"),
            ("which tool is used here", "The tool that is used here is {}"),
            ("what is behind the door", "Behind the door you can see {}"),
            ("what did she buy", "She bought {}"),
            ("what is it made for", "It is made to serve as {}"),
            ("what is in the corner of the room", "In the corner of the room stands {}"),
            ("what was found in the garage", "In the garage they found {}"),
        ),
        7: (
            ("what quality does it have", "The quality that it has is {}"),
            ("what is it known for", "It is known for its {}"),
            ("what does the sign stand for", "The sign stands for {}"),
        ),
        8: (
            ("which part of the body hurts", "The part of the body that hurts is the {}"),
            ("where is the injury", "The injury is at the {}"),
            ("which body part is pointed at", "They point at the {}"),
        ),
        9: (
            ("what field does he study", "He studies {}"),
            ("what is the book about", "The book is about {}"),
            ("what is the theory based on", "The theory is based on {}"),
        ),
        10: (
            ("what is written there", "What is written there is {}"),
            ("what did they send", "They sent {}"),
            ("what kind of text is it", "The text is {}"),
        ),
        11: (
            ("what happened", "What happened was {}"),
            ("what event caused it", "It was caused by {}"),
        ),
        12: (
            ("what does she feel", "She feels {}"),
            ("which feeling does the song express", "The song expresses {}"),
        ),
        13: (
            ("what is on the plate", "There is {} on the plate"),
            ("what are they eating", "They are eating {}"),
            ("what is the main ingredient", "The main ingredient is {}"),
            ("what food is sold there", "The food sold there is {}"),
            ("what is he drinking or eating", "He is having {}"),
            ("what is in the bowl", "In the bowl there is {}"),
        ),
        14: (
            ("who organized it", "It was organized by {}"),
            ("which group is meant", "The group that is meant is {}"),
        ),
        17: (
            ("what is in the background", "In the background there is {}"),
            ("what do you see in the landscape", "In the landscape you see {}"),
        ),
        18: (
            ("what is his job", "He works as {}"),
            ("who is standing on the left", "On the left there stands {}"),
            ("what is her profession", "By profession she is {}"),
            ("what does the man do for a living", "The man earns his living as {}"),
            ("who is in charge", "The one in charge is {}"),
            ("what was he before", "Before that he was {}"),
            ("who called the police", "The police were called by {}"),
        ),
        19: (("what natural phenomenon is it", "The phenomenon is {}"), ("what caused the damage", "The cause was {}")),
        20: (
            ("what plant is this", "This plant is {}"),
            ("what grows in the garden", "In the garden grows {}"),
            ("which tree is it", "It is {}"),
        ),
        21: (("what did he inherit", "He inherited {}"), ("what do they pay", "They pay {}")),
        22: (("which process is described", "The process described is {}"), ("what goes on there", "There goes on {}")),
        23: (("in what unit is it given", "It is given in {}"), ("what is it measured in", "It is measured in {}")),
        24: (("how are they related", "Their relation is {}"),),
        25: (("what shape is it", "Its shape is {}"), ("which shape does it have", "It has the shape of {}")),
        26: (
            ("what disease does he have", "The disease that he has is {}"),
            ("what state is it in", "It is in a state of {}"),
            ("what is she suffering from", "She is suffering from {}"),
        ),
        27: (
            ("what is it made of", "It is made of {}"),
            ("which substance is used", "The substance used is {}"),
            ("what material is the floor", "The floor consists of {}"),
            ("what is in the bottle", "The bottle contains {}"),
        ),
        28: (("when does it happen", "It happens at {}"), ("which time of the year is it", "It is {}")),
    }
)

TERM: Asked = (
    ("what is the word for {gloss}", "The word for it is {}"),
    ("what do you call {gloss}", "You call it {}"),
    ("{gloss} is called", "It is called {}"),
    ("which term means {gloss}", "The term is {}"),
    ("what is {gloss} known as", "It is known as {}"),
    ("name for {gloss}", "Its name is {}"),
)

PERSON: Asked = (
    ("who was the {gloss}", "The one in question was {}"),
    ("which {gloss}", "This was {}"),
    ("name the {gloss}", "The name is {}"),
    ("who is known as {gloss}", "Known for that is {}"),
    ("who is the {gloss}", "That is {}"),
)

PLACE: Asked = (
    ("where was {title} filmed", "It was filmed in {}"),
    ("where does {title} take place", "It takes place in {}"),
    ("where was {person} born", "The birthplace is {}"),
    ("where did {person} grow up", "The childhood was spent in {}"),
    ("where is the {thing} located", "It is located in {}"),
    ("where does {person} live", "Home is {}"),
    ("where was the {thing} found", "It was found in {}"),
    ("where is {person} from", "The person comes from {}"),
    ("where did the {thing} come from", "It came from {}"),
    ("which place is shown", "The place in the picture is {}"),
)
