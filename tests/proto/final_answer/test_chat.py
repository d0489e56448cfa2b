"""Sentences that only address the reader."""

import pytest

from gradewire_proto.final_answer import find_final_answer
from gradewire_proto.final_answer.chat import is_title, without_closers


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("Great choice of topic! Bees have five eyes. Let me know if you want more facts!", "Bees have five eyes"),
        ("Hey! That'd be 42. 😊", "42"),
        ("I'd be glad to help. It's spelled \"necessary\".", "necessary"),
        ("Ha, nice one! It's an umbrella.", "an umbrella"),
        ("Let me answer that for you: the Pacific Ocean.", "the Pacific Ocean"),
        ("Hello! Thanks for reaching out. The museum opens at 9 a.m. Let me know if you need more.", "opens at 9 a.m."),
        ("Das kann ich dir sagen: Er heißt Emil.", "Emil"),
        ("Bien sûr, voici : 1789.", "1789"),
        ("¡Qué interesante! Es el colibrí. ¡Espero haberte ayudado!", "el colibrí"),
        ("您好！这是大熊猫。还有其他问题吗？", "大熊猫"),
        ("いい質問ですね！富士山です。", "富士山"),
    ],
)
def test_openers_and_closers_are_left_out(completion: str, answer: str) -> None:
    found = find_final_answer(completion).text
    assert found == answer or (answer.startswith("opens") and found == f"The museum {answer}")


@pytest.mark.parametrize(
    "title", ["Hello, Dolly!", "Good Morning, Vietnam", "Help!", "Sure-footed", "Oslo 🎉", "Yes, 16 people came."]
)
def test_a_title_that_begins_like_an_opener_stays_whole(title: str) -> None:
    assert find_final_answer(title).text == title


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("It is Oslo. Can I help you with anything else?", "It is Oslo."),
        ("É a Bolívia. Quer dizer, o Paraguai.", "É a Bolívia. Quer dizer, o Paraguai."),
        ("Who wrote it? Was it Brontë?", "Who wrote it? Was it Brontë?"),
        ("It is Oslo. 👍", "It is Oslo."),
    ],
)
def test_the_text_ends_before_sentences_that_close_it(text: str, rest: str) -> None:
    assert text[: without_closers(text)] == rest


@pytest.mark.parametrize(
    "completion",
    [
        "There are two films of that name. If you mean the first, it was made in 1992.",
        "It dries out. If you leave water out, it turns into vapour.",
        "to find out where the noise comes from",
        "well after 20:00",
    ],
)
def test_conditions_and_fragments_do_not_address_the_reader(completion: str) -> None:
    assert find_final_answer(completion).text == completion


@pytest.mark.parametrize(
    "completion",
    ["Which text do you mean? Please paste it.", "¿De qué se trata? ¿Me puedes pasar el texto?"],
)
def test_several_questions_and_requests_are_no_answer(completion: str) -> None:
    assert find_final_answer(completion).reason == "the completion asks a question"


TITLES = [
    *("Who Framed Roger Rabbit?", "Where Is My Friend's House?", "Whose Line Is It Anyway?", "Guess Who Is Coming?"),
    *(
        "Are You Afraid of the Dark?",
        "Can You Ever Forgive Me?",
        "Will You Still Love Me Tomorrow?",
        "Would You Rather?",
    ),
    *(
        "Would I Lie to You?",
        "O Brother, Where Art Thou?",
        "Dude, Where's My Car?",
        "Do Androids Dream of Electric Sheep?",
    ),
    *("Could You Please Repeat That?", "Should I Stay or Should I Go?", "They Shoot Horses, Don't They?"),
    *(
        "Who Wants to Be a Millionaire?",
        "Wer Hat Angst vor Virginia Woolf?",
        "Mais Où Est Donc Passée la Septième Compagnie ?",
    ),
]


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize(
    "completion",
    [
        *("{}", "**{}**", "*{}*", "The book is called {}", "It's {}", "{} Let me know if you need anything else."),
        *("It won three prizes.\n\n{}", "Answer: {}", "The answer is {}", "Answer:\n{}", "<answer>{}</answer>", "“{}”"),
    ],
)
def test_a_title_that_is_a_question_is_an_answer(title: str, completion: str) -> None:
    found = find_final_answer(completion.format(title))
    assert found.position != "nothing"
    assert title in found.text


@pytest.mark.parametrize(
    "title", ["*Wo warst du, Adam?*", "“¿Y tú quién eres?”", "«Aimez-vous Brahms ?»", "Es heißt Wo warst du, Adam?"]
)
def test_italics_quotes_or_an_announcement_make_a_question_a_title(title: str) -> None:
    assert find_final_answer(title).text in {title, title[1:-1]}


@pytest.mark.parametrize(
    "question",
    [
        *("Can I help you?", "Could you tell me which John Smith you mean?", "Könnten Sie mir helfen?"),
        *(
            "CAN YOU REPEAT THAT PLEASE?",
            "Which John Smith? Do you mean the actor?",
            "Do you know Who Framed Roger Rabbit?",
        ),
        *("**Which file do you mean?**", "¿Puedes repetir la pregunta?", "Pouvez-vous préciser ?", "Puoi ripetere?"),
    ],
)
def test_a_question_to_the_reader_is_no_answer(question: str) -> None:
    assert find_final_answer(question).position == "nothing"


@pytest.mark.parametrize(
    "question", ["Do you want to know a secret?", "What do you want to do?", "Is Paris burning?", "Wo warst du, Adam?"]
)
def test_an_announced_question_stays_whole(question: str) -> None:
    assert find_final_answer(f"Answer: {question}").text == question


def test_a_list_of_small_words_is_no_title() -> None:
    assert is_title("Who Framed Roger Rabbit?", 0, 24)
    assert not is_title("Who framed Roger Rabbit?", 0, 24)
    assert not is_title("WHO FRAMED ROGER RABBIT?", 0, 24)
    assert not is_title("Which Paris?", 0, 12)
