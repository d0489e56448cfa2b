"""How far the lemmas of SMILE's words agree with WordNet's lemmatizer, on the words of human-labelled answers.

Both sides use one order: first noun, else verb, adjective, adverb, else the word itself. WordNet's side is NLTK's
lemmatizer (the shortest of what morphy finds) over WordNet's files, which a Debian-like system brings:

    apt-get download wordnet-base wordnet-sense-index
    for package in wordnet-*.deb; do dpkg -x "$package" wordnet; done
    .venv/bin/python -m benchmarks.research.lemmas --wordnet wordnet/usr/share/wordnet
"""

import argparse
import shutil
import sys
import tempfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import nltk.data
from benchmarks.common.rows import DATA_DIRECTORY, GET_COMMAND, read_lines
from nltk.corpus import wordnet
from nltk.stem import WordNetLemmatizer

from gradewire_server.metrics.text.normalise import bare_words, lemmatizer

EXAMPLES = 8
NEEDED = ("index.sense", *(f"{kind}.{pos}" for kind in ("index", "data") for pos in ("noun", "verb", "adj", "adv")))


def words_of(data: Path) -> Counter[str]:
    """Words of all references and predictions, lower-cased, without punctuation, and how often each occurs."""
    words: Counter[str] = Counter()
    for file in sorted(data.glob("*.jsonl")):
        for row in read_lines(file):
            for text in (*row["references"], row["prediction"]):
                words.update(bare_words(unicodedata.normalize("NFC", text)))
    return words


def lay_out(folder: Path, root: Path) -> None:
    """Copies WordNet's files to where NLTK looks for them: under `root`, which is added to NLTK's search path."""
    corpus = root / "corpora" / "wordnet"
    shutil.copytree(folder, corpus)
    names = corpus / "lexnames"
    if not names.exists():
        # NLTK wants this table of subject names, which Debian leaves out; lemmas do not depend on it.
        names.write_text("00\tadj.all\t3\n", encoding="ascii")
    nltk.data.path.append(str(root))


def by_order(word: str) -> str:
    """WordNet's lemma by our order of the parts of speech."""
    for part_of_speech in ("n", "v", "a", "r"):
        if wordnet.morphy(word, part_of_speech) is not None:
            return str(WordNetLemmatizer().lemmatize(word, part_of_speech))
    return word


def as_noun(word: str) -> str:
    """WordNet's lemma where every word is taken for a noun, NLTK's default."""
    return str(WordNetLemmatizer().lemmatize(word))


def kind_of_difference(word: str, ours: str, wordnets: str) -> str:
    """Who changed the word, for the table."""
    if ours == word:
        return "left as it is by us, changed by WordNet"
    if wordnets == word:
        return "changed by us, left as it is by WordNet"
    return "changed by both, to different words"


def report(words: Counter[str]) -> Iterator[str]:
    """Lines of the report."""
    look_up = lemmatizer()
    tokens = words.total()
    yield f"{tokens} words, {len(words)} distinct"
    for title, theirs in (("noun, verb, adjective, adverb", by_order), ("nouns only", as_noun)):
        different = {word: theirs(word) for word in words if theirs(word) != look_up(word, word)}
        by_token = 1 - sum(words[word] for word in different) / tokens
        by_type = 1 - len(different) / len(words)
        yield f"agreement with WordNet, {title}: {by_token:.2%} of words, {by_type:.2%} of distinct words"
        kinds: defaultdict[str, list[str]] = defaultdict(list)
        for word in sorted(different, key=lambda word: (-words[word], word)):
            kinds[kind_of_difference(word, look_up(word, word), different[word])].append(word)
        for kind, members in sorted(kinds.items(), key=lambda kind: -sum(words[word] for word in kind[1])):
            share = sum(words[word] for word in members) / tokens
            shown = ", ".join(f"{word} ({look_up(word, word)} / {different[word]})" for word in members[:EXAMPLES])
            yield f"  {kind}: {share:.2%} of words, {len(members)} distinct: {shown}"


def main() -> int:
    """Prints the report; 2 where data or WordNet is not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with WordNet's index.noun, data.noun …")
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="folder of the labelled rows (%(default)s)")
    options = parser.parse_args()
    missing = [name for name in NEEDED if not (options.wordnet / name).is_file()]
    if not any(options.data.glob("*.jsonl")):
        lacking = (
            f"no *.jsonl in {options.data}: get the labelled rows with {GET_COMMAND}, or name their folder (--data)"
        )
    elif missing:
        lacking = f"{options.wordnet} lacks {', '.join(missing)}: --help says where WordNet's files come from"
    else:
        lacking = ""
    if lacking:
        print(lacking, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as root:
        lay_out(options.wordnet, Path(root))
        for line in report(words_of(options.data)):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
