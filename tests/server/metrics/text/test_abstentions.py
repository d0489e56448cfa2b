"""Answers that say that a question cannot be answered, in five languages."""
# ruff: noqa: RUF001 - Chinese texts have full-width punctuation

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradewire_server.metrics.text.abstentions import abstains

ABSTAIN = [
    "The answer is not in the text.",
    "The passage doesn't provide this information.",
    "I do not know the answer to this question.",
    "No answer is given in the passage.",
    "The text does not specify which country won.",
    "There's no mention of a treaty in the paragraph.",
    "Unknown.",
    "The context doesn't say anything about that.",
    "Based on the passage, it is not possible to determine who won.",
    "The question cannot be answered from the given context.",
    "This isn't mentioned in the article.",
    "Unanswerable: the passage discusses the treaty of 1648, not 1748.",
    "I couldn't find that in the document.",
    "The document is silent on this point.",
    "It's unclear from the passage.",
    "n/a",
    "N.A.",
    "[no answer]",
    "<no answer>",
    "(unanswerable)",
    '"I don\'t know"',
    "The answer is unknown.",
    "Answer: not stated",
    "Not enough info.",
    "There isn't enough information to answer.",
    "The author does not say.",
    "We are not told.",
    "We aren't told who he married.",
    "The passage gives no date for the battle.",
    "I'm sorry, but I cannot answer this question.",
    "The image does not show a clock.",
    "There is no clock in the picture.",
    "Sorry, the picture is too dark to tell.",
    "I don't have enough information to answer that.",
    "As an AI language model, I don't have access to that information.",
    "Nobody knows.",
    "The text only says that he left; it does not say where he went.",
    "None of the passages mention the price.",
    "The information is not available.",
    "It doesn't say.",
    "not in passage",
    "No relevant information.",
    "The provided text does not contain the answer.",
    "That can't be determined.",
    "Das geht aus dem Text nicht hervor.",
    "Das steht nicht im Text.",
    "Ich weiß es nicht.",
    "Keine Angabe",
    "k. A.",
    "Der Text enthält keine Informationen darüber.",
    "Dazu gibt es im Text keine Angaben.",
    "Die Frage lässt sich nicht beantworten.",
    "Unbekannt",
    "Leider kann ich das nicht beantworten.",
    "Das wird im Artikel nicht erwähnt.",
    "Der Absatz sagt nichts über seine Mutter.",
    "On ne sait pas.",
    "Le texte ne le précise pas.",
    "Le passage ne mentionne pas la date.",
    "Ce n'est pas indiqué dans le texte.",
    "Aucune information à ce sujet.",
    "Inconnu",
    "Je ne sais pas qui a gagné.",
    "L'article n'en parle pas.",
    "Il est impossible de répondre à cette question.",
    "La réponse n'est pas dans le texte.",
    "No se menciona en el texto.",
    "El texto no lo dice.",
    "No lo sé.",
    "No hay información sobre eso en el pasaje.",
    "Se desconoce.",
    "No se puede determinar a partir del texto.",
    "Sin respuesta",
    "El artículo no proporciona esa información.",
    "Lo siento, no puedo responder a esa pregunta.",
    "文章没有提到这一点。",
    "根据文章无法确定。",
    "我不知道。",
    "未知",
    "文中没有说明。",
    "抱歉，我无法回答这个问题。",
    "没有相关信息",
    "原文没有给出答案。",
    "不清楚",
]
ANSWER = [
    "None",
    "Nothing",
    "nobody",
    "0",
    "no",
    "No.",
    "Paris",
    "the Norman dynasty",
    "He said he didn't know.",
    "The unknown soldier",
    "I Don't Know is the title of a song by Paul McCartney.",
    "The text doesn't say, but it is probably Paris.",
    "I don't know for sure, but Paris.",
    "I'm not sure, maybe 1492?",
    "Not Paris but Lyon",
    "not guilty",
    "Anonymous",
    "no information was lost",
    "information theory",
    "The passage says it was never found.",
    "The report says no one was hurt.",
    "According to the text, he never answered the letter.",
    "The text states that the date was not recorded by monks.",
    "He could not find his keys.",
    "She refused to answer.",
    "because the king was unable to speak",
    "unknown to the king, his brother",
    "It was not clear cut forest.",
    "The data were not available until 1990",
    "No answer was received from Berlin",
    "He lacked information about the enemy.",
    "No Country for Old Men",
    "an unnamed source in the report",
    "The answer is 42.",
    "cannot be divided",
    "The date is unknown, but historians believe around 1200.",
    "The exact number is not known; estimates range from 10 to 20.",
    "No data is lost",
    "It isn't stated outright: Paris.",
    "The passage never names him but he is Robert Smith.",
    "Keiner",
    "Nichts",
    "ein unbekannter Maler",
    "Er wusste es nicht.",
    "Das steht nicht im Text, aber wohl Berlin.",
    "nicht bekannt gegeben wurde der Preis",
    "Der Text sagt, dass niemand überlebte.",
    "Nicht Goethe, sondern Schiller",
    "Personne",
    "Rien",
    "un inconnu",
    "Il ne sait pas nager",
    "Le texte ne le dit pas, mais c'est sans doute Lyon.",
    "Le texte dit que personne n'a survécu.",
    "pas Paris mais Lyon",
    "Nadie",
    "Nada",
    "No",
    "un autor desconocido",
    "No fue Colón sino Vespucio",
    "El texto dice que nadie sobrevivió.",
    "No se menciona, pero probablemente Madrid.",
    "No se casó",
    "没有人",
    "什么都没有",
    "没有",
    "北京",
    "无名氏",
    "他不知道",
    "没有说明，但可能是北京。",
    "不明飞行物",
    "未来",
    "无",
    "",
    " ",
]
# What an answer says before, between and after.
IN_SPITE = [
    "He moved in 1876; where to, the text does not say.",
    "The text does not say where; he moved in 1876.",
    "I'm not sure. It looks like a Fiat.",
    "Unknown; my best guess is 1492.",
    "Er kam 1876; woher, steht nicht im Text.",
    "Il est né à Pau, la date n'est pas précisée.",
    "Nació en Cádiz, pero la fecha no consta.",
    "建于1876年，建造者没有记载。",
]
REASONS = [
    "The passage describes the mill and the church. It does not mention the fair.",
    "The plate is blurred, so I cannot read it.",
    "Der Artikel beschreibt die Mühle. Den Namen des Müllers nennt er aber nicht.",
    "Le texte parle du moulin, mais le nom du meunier n'y figure pas.",
    "El texto habla del molino; del molinero no ofrece ningún dato.",
    "文章介绍了磨坊，但没有提到磨坊主的名字。",
]


@pytest.mark.parametrize("answer", [*ABSTAIN, *REASONS])
def test_abstentions(answer: str) -> None:
    assert abstains(answer)
    assert abstains(f"  {answer.upper()}\n")


@pytest.mark.parametrize("answer", [*ANSWER, *IN_SPITE])
def test_answers(answer: str) -> None:
    assert not abstains(answer)


def test_accents_apostrophes_and_invisible_characters_do_not_matter() -> None:
    assert abstains("I don\u2019t know")
    assert abstains("I don\u02bct kn\u200bow")
    assert abstains("On ne sait pas\u00a0!")
    assert abstains("No lo se\u0301")
    assert abstains("ＵＮＫＮＯＷＮ")


PIECES = st.sampled_from([
    *"?!.,;:-'()\"\n 。，？", "not ", "no ", "I ", "do ", "n't", "know ", "the text ", "says ", "ist ", "nicht ", "ne ",
    "pas ", "no se ", "consta ", "没有", "提到", "文中", "unknown", "but ", "probably ", "Paris ", "\u0301",
    "\ud800", "n/a",
])  # fmt: skip


@given(st.one_of(st.text(), st.lists(PIECES, max_size=60).map("".join)))
def test_any_text_is_read(answer: str) -> None:
    assert abstains(answer) in {True, False}


@settings(max_examples=30, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=4).map("".join))
def test_the_time_of_a_repetitive_text_is_bounded(piece: str) -> None:
    began = time.process_time()
    abstains((piece * 1000)[:1000])
    assert not abstains(piece * 1001)
    assert time.process_time() - began < 0.5
