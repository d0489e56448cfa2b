"""A question, a reference and an answer as one text, by which caches and queues know them."""

from gradewire_server.domain.needs import GradedTexts


def joined(texts: GradedTexts) -> str:
    """One text; other texts never give the same, wherever one ends and the next begins."""
    question, reference, answer = texts
    return f"{len(question)} {len(reference)} {question}{reference}{answer}"


def parted(text: str) -> GradedTexts:
    """The texts that `joined` made `text` of."""
    question_length, reference_length, texts = text.split(" ", 2)
    end = int(question_length)
    answer = end + int(reference_length)
    return texts[:end], texts[end:answer], texts[answer:]
