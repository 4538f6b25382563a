"""Names of columns: what they mean by the conventions of published data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from samesense.data.conventions.texts import INVISIBLE
from samesense.errors import DataError

Side = Literal["positive", "negative", "neutral"]
"""The relation of a text to its anchor."""

TEXT_PAIRS = (
    ("sentence1", "sentence2"),
    ("sentence_a", "sentence_b"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("anchor", "positive"),
    ("query", "positive"),
    ("sent0", "sent1"),
)
"""Accepted pairs of text columns, the preferred ones first."""

SINGLE_NAMES = ("sentence", "text", "sent", "question")
"""Accepted names of a column that holds the only text of its row, the preferred ones first."""

POSITIVE_PAIRS = (("anchor", "positive"), ("query", "positive"), ("sent0", "sent1"))
"""Text columns whose names say that the two texts belong together; only these go with a negative."""

NEGATIVE_NAMES = ("negative", "hard_neg", "hard_negative")
CLASS_NAMES = ("label", "labels", "gold_label", "is_duplicate", "isduplicate", "duplicate")
LABEL_NAMES = ("score", "scores", "similarity", "similarity_score", *CLASS_NAMES, "relatedness_score")
SCORE_NAMES = tuple(name for name in LABEL_NAMES if name not in CLASS_NAMES)
SENTENCE_LABEL_NAMES = ("label", "labels", "class")
"""Accepted names of the class of a single sentence, the preferred ones first."""

SUBSET_NAMES = ("subset", "genre")
NLI_PAIRS = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_a", "sentence_b"))
ANCHOR_NAMES = ("anchor", "query", "question", "sent0")
POSITIVE_NAMES = (
    "positive",
    "positives",
    "pos",
    "sent1",
    "answer",
    "document",
    "passage",
    "context",
    "entailment",
)
NEGATIVES = (*NEGATIVE_NAMES, "negatives", "neg", "hard_negatives", "contradiction")
NEUTRAL_NAMES = ("neutral", "neutrals")
KNOWN_NAMES = frozenset(name for pair in TEXT_PAIRS for name in pair).union(NEGATIVE_NAMES, LABEL_NAMES, SUBSET_NAMES)
"""Every column name with a meaning, as normalized by :func:`normalize_name`."""

_SIDE_WORDS: dict[str, Side] = {
    "positive": "positive",
    "positives": "positive",
    "pos": "positive",
    "negative": "negative",
    "negatives": "negative",
    "neg": "negative",
    "negs": "negative",
}
PARTNER_SIDES: dict[str, Side] = {
    **dict.fromkeys(NEUTRAL_NAMES, "neutral"),
    **dict.fromkeys(NEGATIVES, "negative"),
    **dict.fromkeys(POSITIVE_NAMES, "positive"),
}
"""The side of a column beside an anchor by its name; others are found by the words in their names."""

_ANCHOR_WORDS = frozenset(("anchor", "query", "question"))
_FILLERS = frozenset(
    """
    text texts sentence sentences sent passage passages doc docs document documents example examples sample samples
    candidate candidates response responses answer answers caption content string txt hard query question anchor
    """.split()
)
"""Words that may accompany a side word in a column name, as in ``text_pos`` and ``hard_negative_passage``."""

_DISTANCES = frozenset(
    """
    distance distances dist dissimilarity dissimilarities dissimilar unsimilarity divergence difference
    diff levenshtein hamming euclidean wmd kld unrelatedness different distanz abstand distancia distanza
    dissim unähnlichkeit unterschied divergenz 距离 距離 差异 差異 差异度 不相似度 расстояние
    """.split()
)
"""Words in the names of columns whose values grow as two texts become less similar."""

_COMPOUND = re.compile(r"distances?$|dissimilarit(y|ies)$|divergence$|^(cosine|cos|edit|l2|euclid)dist$")
"""Distances in one word, such as ``editdistance``."""

_NEGATED = re.compile(
    r"(not?|non|is_not|isnt|un|dis)_?"
    r"(duplicates?|similar|similarity|same|equal|related|match|paraphrases?|relevant|relevance|correct)"
    r"|irrelevant|irrelevance|incorrect|mismatch"
)

JUDGEMENT_NAMES = tuple(
    "relevance relevance_score relevant is_relevant rel correct is_correct rating grade judgment judgement".split()
)
"""Names of columns that say how well two texts belong together, besides those of labels."""

IDENTIFIERS = frozenset(
    """
    id idx index split uuid guid url date time timestamp annotator annotators lead_time lang language locale
    """.split()
).union([""])
"""Names of columns with metadata, unrelated to a row's texts."""

_IDS = re.compile(r"[cdpqrsu]id\d*|(hit|doc|pair|query|row|user|response|assignment)ids?\d*|[a-z]+_id\d+|id\d+")
"""Names of identifiers in one word, such as ``qid1`` and ``pairid``."""

# the name under which pyarrow stores the index of a pandas frame
_ROW_NAMES = re.compile(r"__index_level_\d+__")


def is_index(name: str) -> bool:
    """Return whether a column is the index of a pandas frame, which pandas stores as an extra column."""
    return _ROW_NAMES.fullmatch(name) is not None


def _words_of(name: str) -> list[str]:
    """Return the words in a column name, without numbers: ``text`` and ``pos`` for ``textPos2``."""
    words = normalize_name(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    return [word for word in re.split(r"_|(?<=\D)(?=\d)", words) if word and not word.isdigit()]


def find_sides(names: Sequence[str]) -> dict[str, Side]:
    """Return the columns with a word for positives or negatives in their names, with their side.

    The other words of the name must be words for texts, or the name of another column.

    >>> find_sides(["text", "text_pos", "hard_negative_passage", "pos_score"])
    {'text_pos': 'positive', 'hard_negative_passage': 'negative'}
    """
    bases = {tuple(_words_of(name)) for name in names if normalize_name(name) not in LABEL_NAMES}
    sides: dict[str, Side] = {}
    for name in names:
        words = _words_of(name)
        other_words = [word for word in words if word not in _SIDE_WORDS]
        # Exactly one word for a side: of positive_negative, neither side is certain.
        if len(other_words) == len(words) - 1 and (_FILLERS.issuperset(other_words) or tuple(other_words) in bases):
            sides[name] = next(_SIDE_WORDS[word] for word in words if word in _SIDE_WORDS)
    return sides


def find_anchor(names: Sequence[str], sided: Sequence[str]) -> str | None:
    """Return the anchor column for columns whose names have a side, as in ``text``, ``text_pos``, ``text_neg``.

    It is named like ``anchor_text``, or like the others without their side, or has a usual name of single texts.
    """
    candidates = [name for name in names if name not in sided]
    bases = {"_".join(word for word in _words_of(name) if word not in (*_SIDE_WORDS, "hard")) for name in sided}
    for name in candidates:
        words = set(_words_of(name))
        if words & _ANCHOR_WORDS and words <= _FILLERS:
            return name
    # A word for an anchor, looked for first, says more than likeness to the other names.
    by_base = next((name for name in candidates if "_".join(_words_of(name)) in bases), None)
    return by_base or find_name(SINGLE_NAMES, spelled_names(candidates))


def is_distance(name: str) -> bool:
    """Return whether the name of a column means a distance or an inverted label, such as ``is_different``.

    >>> is_distance("edit_distance"), is_distance("editDistance"), is_distance("similarity")
    (True, True, False)
    """
    words = normalize_name(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    return (
        any(word in _DISTANCES or _COMPOUND.search(word) for word in words.split("_"))
        or _NEGATED.fullmatch(words.removeprefix("is_")) is not None
    )


def refuse_distance(name: str | None, source: str) -> None:
    """Raise DataError for a label column with the name of a distance, because a higher label must mean more similar."""
    if name is not None and is_distance(name):
        raise DataError(
            f"{source}: by its name, column {name!r} says how different two texts are, and a label must be larger the "
            f"more alike they are. Turn the values round, such as 1 - {name} where they go from 0 to 1, and name the "
            "column score."
        )


def normalize_name(name: str) -> str:
    """Return the normalized name of a column: ``sentence1`` for ``Sentence 1`` and ``sentence-1``."""
    # An underscore goes only before a digit: text_1 is text1, and text_a is not texta.
    return re.sub(r"_(?=\d)", "", re.sub(r"[\s_-]+", "_", INVISIBLE.sub("", name).strip().casefold()))


def is_identifier(name: str) -> bool:
    """Return whether the name of a column means an identifier, a date or a URL."""
    words = normalize_name(re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name))
    is_id = words.endswith(("_id", "_url", "_date", "_at")) or _IDS.fullmatch(words) is not None
    return normalize_name(name) in IDENTIFIERS or is_id


def spelled_names(names: Sequence[str]) -> dict[str, str]:
    """Return a map from normalized names to the names as the source spells them; of equal ones the first."""
    # Reversed, so that the first of several equal names wins.
    return {normalize_name(name): name for name in reversed(names)}


def number_repeated(names: Sequence[str]) -> list[str]:
    """Return the names with a number behind each that occurs several times, ignoring case, so that all differ.

    >>> number_repeated(["Summary", "Comment", "comment"])
    ['Summary', 'Comment (1)', 'comment (2)']
    """
    folded = [name.strip().casefold() for name in names]
    counts = Counter(folded)
    numbers: Counter[str] = Counter()
    numbered_names = []
    for name, key in zip(names, folded, strict=True):
        numbers[key] += 1
        # Columns without a name are none that could be asked for.
        is_repeated = key and counts[key] > 1
        numbered_names.append(f"{name.strip()} ({numbers[key]})" if is_repeated else name)
    return numbered_names


def find_name(names: Sequence[str], spelled: dict[str, str]) -> str | None:
    """Return the first of these names that the source has, in the source's spelling."""
    return next((spelled[name] for name in names if name in spelled), None)


def find_pair(pairs: Sequence[tuple[str, str]], spelled: dict[str, str]) -> tuple[str, str] | None:
    """Return the first pair of names of which the source has both."""
    return next((pair for pair in pairs if set(pair) <= spelled.keys()), None)
