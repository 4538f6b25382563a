"""The columns of a table: what their names mean by the conventions of published data, and which cells break a rule."""

from __future__ import annotations

import csv
import io
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from samesense.data.rows.list_cells import ListCellError, is_list, list_in, shorten_cell
from samesense.errors import BadRowsError, ConfigError, DataError

logger = logging.getLogger(__name__)

Row = tuple[int, Mapping[str, object]]
"""Row number as the file counts it, and the cells by column name."""

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
    r"(not?|non|is_not|isnt|un|dis)_?(duplicates?|similar|similarity|same|equal|related|match|paraphrases?)"
)

IDENTIFIERS = frozenset(("id", "idx", "index", "split", "uuid", "guid", "url", "date", "time", "timestamp", ""))
"""Names of columns with metadata, unrelated to a row's texts."""

_ACCEPTED = (
    f"Accepted: an anchor ({', '.join(ANCHOR_NAMES)}) with columns of positives ({', '.join(POSITIVE_NAMES)}, "
    f"positive_1 ...) and of negatives ({', '.join(NEGATIVES)}, negative_1 ...), each cell a text or a list of texts; "
    "or premise, hypothesis and label of NLI data"
)

MOST_LISTED = 30
"""Most columns that an error lists."""

MOST_NAMED = 10
"""Most columns that a sentence names."""

LONGEST_NAME = 100
"""Most characters of a column name in such a list; without a header line, a "name" may be a long text."""

_IDS = re.compile(r"[cdpqrsu]id\d*|(hit|doc|pair|query|row|user|response|assignment)ids?\d*|[a-z]+_id\d+|id\d+")
"""Names of identifiers in one word, such as ``qid1`` and ``pairid``."""

_MISSING = frozenset(
    "\\N <NA> #N/A #NAME? #REF! #VALUE! #DIV/0! #NULL! #NUM! #NV #WERT! #BEZUG! #NOM? #VALEUR! #¡REF! #¿NOMBRE?".split()
)
"""What databases, pandas and spreadsheets write for a missing value or an error, and no one writes as a text."""

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u00ad]")
"""Characters without width, which show nothing: joiners, marks of direction, the byte order mark, the soft hyphen."""

# the name under which pyarrow stores the index of a pandas frame
_ROW_NAMES = re.compile(r"__index_level_\d+__")

SHOWN = 10
"""Most row numbers that a message shows."""

SNIFFED_CELLS = 1000
"""Rows that are inspected to decide whether a column of single texts holds lists instead."""


def is_index(name: str) -> bool:
    """Return whether a column is the index of a pandas frame, which pandas stores as an extra column."""
    return _ROW_NAMES.fullmatch(name) is not None


@dataclass(frozen=True)
class Columns:
    """The columns of one source, as the source spells them.

    A row has a label, or a negative (a triplet).
    """

    text1: str
    text2: str
    label: str | None = None
    subset: str | None = None
    negative: str | None = None

    @property
    def holds_scores(self) -> bool:
        """Whether the name of the label column means scores."""
        return normalize_name(self.label or "") in SCORE_NAMES

    @property
    def is_premise_hypothesis(self) -> bool:
        """Whether the text columns are named premise and hypothesis."""
        return (normalize_name(self.text1), normalize_name(self.text2)) == ("premise", "hypothesis")


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


def label_and_negative_error(pair: Sequence[str], label: str, negative: str, source: str) -> DataError:
    """Return the error for two text columns with both a label column and a column of negatives."""
    return DataError(
        f"{source}: a row needs either a label or a negative, and this has both columns, {label!r} and {negative!r}. "
        f"Choose one as the third name of `columns` {pair[0]},{pair[1]},{label}."
    )


def resolve_columns(
    names: Sequence[str], override: str | None, source: str, *, labelled: bool = True, example: str = ""
) -> Columns:
    """Find the text, label and subset columns among the names of a source.

    ``override`` (``"first,second,label"``, or a negative as the third) replaces the conventions; ``example`` is an
    override for this source that errors suggest. Case is ignored. DataError if a column is missing, or there are both a
    label and a negative; ConfigError if the override is not three different names.
    """
    if override is not None:
        return _apply_override(names, override, source, labelled=labelled, example=example)
    spelled = spelled_names(names)
    pair = find_pair(TEXT_PAIRS, spelled)
    if pair is None:
        raise _missing_columns_error(names, source, "two text columns", example)
    # NLI data may also have a score; the class takes precedence there.
    order: Sequence[str] = LABEL_NAMES
    if pair == ("premise", "hypothesis"):
        order = (*CLASS_NAMES, *LABEL_NAMES)
    label = find_name(order, spelled)
    # Beside two sentences of equal standing, it would be open of which it is the negative.
    negative = find_name(NEGATIVE_NAMES, spelled) if pair in POSITIVE_PAIRS else None
    if label is not None and negative is not None and labelled:
        raise label_and_negative_error([spelled[name] for name in pair], label, negative, source)
    if label is None and negative is None and labelled:
        # A distance is a label of the wrong direction, which says more than that there is none.
        refuse_distance(next(filter(is_distance, names), None), source)
        if pair in POSITIVE_PAIRS:
            raise _unlabelled_error(names, source)
        raise _missing_columns_error(names, source, "a label column", example)
    return Columns(spelled[pair[0]], spelled[pair[1]], label, find_name(SUBSET_NAMES, spelled), negative)


def unread_labels(names: Sequence[str], columns: Columns) -> list[str]:
    """Return the other columns with names of labels, which are not read."""
    return [name for name in names if normalize_name(name) in LABEL_NAMES and name != columns.label]


def normalize_name(name: str) -> str:
    """Return the normalized name of a column: ``sentence1`` for ``Sentence 1`` and ``sentence-1``."""
    # An underscore goes only before a digit: text_1 is text1, and text_a is not texta.
    return re.sub(r"_(?=\d)", "", re.sub(r"[\s_-]+", "_", _INVISIBLE.sub("", name).strip().casefold()))


def is_identifier(name: str) -> bool:
    """Return whether the name of a column means an identifier, a date or a URL."""
    words = normalize_name(re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name))
    is_id = words.endswith(("_id", "_url", "_date")) or _IDS.fullmatch(words) is not None
    return normalize_name(name) in IDENTIFIERS or is_id


def spelled_names(names: Sequence[str]) -> dict[str, str]:
    """Return a map from normalized names to the names as the source spells them; of equal ones the first."""
    # Reversed, so that the first of several equal names wins.
    return {normalize_name(name): name for name in reversed(names)}


def find_name(names: Sequence[str], spelled: dict[str, str]) -> str | None:
    """Return the first of these names that the source has, in the source's spelling."""
    return next((spelled[name] for name in names if name in spelled), None)


def find_pair(pairs: Sequence[tuple[str, str]], spelled: dict[str, str]) -> tuple[str, str] | None:
    """Return the first pair of names of which the source has both."""
    return next((pair for pair in pairs if set(pair) <= spelled.keys()), None)


def _apply_override(names: Sequence[str], override: str, source: str, *, labelled: bool, example: str) -> Columns:
    """Return the three columns that the user names, and the subset column by its name."""
    requested = _three_names(override, names, source, example)
    spelled = spelled_names(names)
    # A name as the source spells it comes before one that differs in case or spaces.
    actual_names = [name if name in names else spelled.get(normalize_name(name)) for name in requested]
    # Where labels are not read, the source may lack the third column.
    needed = 3 if labelled else 2
    missing = [name for name, actual in zip(requested[:needed], actual_names, strict=False) if actual is None]
    if missing:
        raise _unknown_names_error(missing, names, source, example)
    first = str(actual_names[0])
    second = str(actual_names[1])
    third = actual_names[2]
    subset = find_name(SUBSET_NAMES, spelled)
    # A column that the user names as text or label is not the subset.
    if subset in (first, second, third):
        subset = None
    if third is not None and (normalize_name(third) in NEGATIVE_NAMES or find_sides(names).get(third) == "negative"):
        return Columns(first, second, None, subset, third)
    if labelled:
        refuse_distance(third, source)
    return Columns(first, second, third, subset)


def _three_names(override: str, names: Sequence[str], source: str, example: str) -> list[str]:
    """Return the names that ``columns`` gives; ConfigError if they are not three different ones."""
    requested = split_columns(override)
    if len(requested) != 3 or "" in requested or len(set(requested)) != 3:
        suggestion = _suggestion(example) or "question1,question2,is_duplicate"
        raise ConfigError(
            f"{source}: `columns` takes three different names, first,second,label; received {override!r}. Its columns: "
            f"{listed(names)}. Example: `columns` {suggestion}"
        )
    return requested


def _unknown_names_error(missing: Sequence[str], names: Sequence[str], source: str, example: str) -> DataError:
    such_as = ""
    if suggestion := _suggestion(example):
        such_as = f", such as `columns` {suggestion}"
    return DataError(
        f"{source}: `columns` names {', '.join(map(repr, missing))}, which this source does not have. "
        f"Its columns: {listed(names)}. Use three of these{such_as}; the files of one command need the same names."
    )


def _suggestion(example: str) -> str:
    """Return an example of three columns, quoted for a shell; an empty string if it names others than three."""
    if len(split_columns(example)) == 3:
        return quote_columns(example)
    return ""


def _missing_columns_error(names: Sequence[str], source: str, what: str, example: str) -> DataError:
    message = f"{source}: {what} could not be found. Its columns: {listed(names)}."
    if example:
        what = "two texts that belong together"
        if len(split_columns(example)) == 3:
            what = "two texts and the label"
        return DataError(f"{message} Name {what}: `columns` {quote_columns(example)}")
    pairs = ", ".join("/".join(pair) for pair in TEXT_PAIRS)
    return DataError(
        f"{message} Labelled pairs have two columns of texts and one of labels. Known names of texts: {pairs}; of "
        f"labels: {', '.join(LABEL_NAMES)}. A file without a header line needs one, unless it has exactly three "
        "columns, text, text and a number."
    )


def quote_columns(columns: str) -> str:
    """Return column names, comma-separated, quoted for a shell if needed."""
    if not re.search(r"[^\w,.-]", columns):
        return columns
    mark = "'" if '"' in columns else '"'
    return f"{mark}{columns}{mark}"


def split_columns(columns: str) -> list[str]:
    """Return the names in a text of column names; one with a comma stands in double quotes, as in CSV.

    >>> split_columns('text1, text2,"score, 0 to 5"')
    ['text1', 'text2', 'score, 0 to 5']
    """
    return [name.strip() for name in next(csv.reader([columns], skipinitialspace=True), [""])]


def requested_columns(columns: str, names: Sequence[str]) -> list[str]:
    """Return the names in a text of column names; the whole of it where the source has a column of that name."""
    if normalize_name(columns) in spelled_names(names):
        return [columns]
    return split_columns(columns)


def join_columns(names: Sequence[str]) -> str:
    """Return the text of column names that :func:`split_columns` splits into these.

    >>> join_columns(["text1", "text2", "score, 0 to 5"])
    'text1,text2,"score, 0 to 5"'
    """
    sink = io.StringIO()
    csv.writer(sink, lineterminator="").writerow(names)
    return sink.getvalue()


def _unlabelled_error(names: Sequence[str], source: str) -> DataError:
    return DataError(
        f"{source}: these rows have no label. Its columns: {listed(names)}. Pairs with only positives are trained on "
        "by `method` supmpn `tuples` ragged; CoSENT needs labels or negatives. Add a column 'negative' or 'label', or "
        "name an existing one with `columns` first,second,label."
    )


def listed(names: Sequence[str], limit: int = MOST_LISTED) -> str:
    """Return column names for a message: the first ones, shortened, and the number of the others.

    >>> listed(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    shortened = [name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..." for name in names[:limit]]
    ending = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    if not names:
        return "none"
    return ", ".join(shortened) + ending


def join_names(names: Sequence[str]) -> str:
    """Return names as in "a, b and c"; of more than :data:`MOST_NAMED` the first, and the number of the others."""
    if len(names) > MOST_NAMED:
        return listed(names, MOST_NAMED)
    *most, last = names
    if not most:
        return last
    return f"{', '.join(most)} and {last}"


def check_columns(columns: object) -> None:
    """Raise ConfigError if `columns` is no text of names, such as a list of them."""
    if columns is None or isinstance(columns, str):
        return
    # Of a list of names, the fix is those names.
    are_names = isinstance(columns, list | tuple) and all(isinstance(column, str) for column in columns)
    form = join_columns(columns) if are_names else "left,right,same"  # type: ignore[arg-type]  # texts
    raise ConfigError(
        f'`columns` is one text, names separated by commas; received {columns!r}. Write columns="{form}".'
    )


def named_column(names: Sequence[str], columns: str, source: str) -> str:
    """Return the column that ``columns`` names, in the source's spelling; DataError if the source lacks it."""
    if columns in names:
        return columns
    requested = requested_columns(columns, names)
    if len(requested) > 1:
        raise ConfigError(f"{source}: one text a row is read here, so that `columns` takes one name; got {columns!r}.")
    column = find_name((normalize_name(requested[0]),), spelled_names(names))
    if column is not None:
        return column
    raise DataError(
        f"{source}: `columns` names {columns!r}, which this source does not have. Its columns: {listed(names)}. "
        "Name one."
    )


@dataclass(frozen=True)
class Layout:
    """The columns of one source, as it spells them.

    NLI data have one partner, the hypothesis, whose side depends on the label.
    """

    anchor: str
    partners: tuple[tuple[str, Side], ...]
    label: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns of the partners."""
        return [name for name, _ in self.partners]

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        names = [self.anchor, *self.names]
        if self.label is not None:
            names.append(self.label)
        return names


def find_layout(names: Sequence[str], source: str, columns: str | None = None) -> Layout:
    """Return the columns of a source: those that ``columns`` names, or those with known names; case is ignored."""
    if columns is not None:
        return _named_layout(names, source, columns)
    spelled = spelled_names(names)
    label = find_name(CLASS_NAMES, spelled)
    # NLI columns take precedence over columns of anchors.
    pair = find_pair(NLI_PAIRS, spelled)
    if pair is not None and label is not None:
        return Layout(spelled[pair[0]], ((spelled[pair[1]], "neutral"),), label)
    anchor = find_name(ANCHOR_NAMES, spelled)
    sides = find_sides(names)
    # A known name comes before the words in a name.
    known_sides = {name: PARTNER_SIDES[normalize_name(name)] for name in names if normalize_name(name) in PARTNER_SIDES}
    partner_sides = {**sides, **known_sides}
    partners = tuple((name, partner_sides[name]) for name in names if name in partner_sides)
    beside = find_anchor(names, list(sides)) if sides else None
    if (anchor is None or not partners) and beside is not None:
        return Layout(beside, tuple(sides.items()))
    if anchor is None or not partners:
        raise DataError(
            f"{source}: an anchor and columns of positives or negatives could not be found. Its columns: "
            f"{listed(names)}. {_ACCEPTED}. Rename the columns, or name them: `columns` "
            "anchor,positive,negative"
        )
    return Layout(anchor, partners)


def _named_layout(names: Sequence[str], source: str, columns: str) -> Layout:
    requested = split_columns(columns)
    if len(requested) not in (2, 3):
        raise ConfigError(
            f"{source}: `columns` takes an anchor, a positive and perhaps a negative, or premise, hypothesis and "
            f"label; received {columns!r}. Its columns: {listed(names)}."
        )
    anchor, *partners = (named_column(names, name, source) for name in requested)
    # NLI data: the label decides the side of the hypothesis in each row.
    if len(partners) == 2 and normalize_name(partners[1]) in CLASS_NAMES:
        return Layout(anchor, ((partners[0], "neutral"),), partners[1])
    sides: tuple[Side, ...] = ("positive", "negative")
    return Layout(anchor, tuple(zip(partners, sides, strict=False)))


@dataclass(frozen=True)
class BadRow:
    """One cell that breaks a rule."""

    row: int
    column: str
    what: str
    fix: str


TEXT_FIX = "give the text or delete the row"
"""The fix of a cell that should be a text."""


def bad_texts(row: Row, columns: Iterable[str]) -> list[BadRow]:
    """Return the cells of a row in these columns that are no usable texts."""
    number, cells = row
    return [BadRow(number, name, problem, TEXT_FIX) for name in columns if (problem := text_problem(cells.get(name)))]


def bad_rows_error(
    source: str, problems: Sequence[BadRow], total: int, limit: int = 5, *, can_drop: bool = True
) -> BadRowsError:
    """Build the error that counts all bad rows and lists the first ``limit``; it also carries all of them as data.

    With ``can_drop``, the message says how to leave them out.
    """
    ordered = sorted(problems, key=lambda problem: problem.row)
    # With none of them, the message would not say what is wrong.
    first = ordered[: max(1, limit)]
    count = len({problem.row for problem in ordered})
    lines = [f"{source}: {count} of {total} rows cannot be used."]
    lines += [f"  row {bad.row}, column {bad.column!r}: {bad.what}. Fix: {bad.fix}." for bad in first]
    if len(ordered) > len(first):
        lines.append(f"  and {len(ordered) - len(first)} more.")
    if can_drop:
        lines.append("Correct these rows, or leave them out with `drop_bad_rows`.")
    else:
        lines.append("Correct these rows.")
    return BadRowsError("\n".join(lines), [asdict(bad) for bad in ordered])


def text_problem(value: object) -> str:
    """Return what is wrong with a cell that should be a text; an empty string if it is usable."""
    if value is None:
        return "there is no text"
    if not isinstance(value, str):
        return f"a text is needed, received {type(value).__name__} {str(value)[:40]!r}"
    if not value.strip():
        return "the text is empty"
    if is_blank(value):
        return "the text holds only characters that show nothing"
    if value.strip() in _MISSING:
        return f"the text is {value.strip()}, by which programs mark a missing or wrong value"
    return character_problem(value)


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: it is empty, or holds only spaces and characters without width."""
    return not text.strip() or (not text.isascii() and not _INVISIBLE.sub("", text).strip())


def character_problem(text: str) -> str:
    """Return a message if a text has an invalid character, which JSON escapes can express; an empty string if not."""
    if "\0" in text:
        return "the text holds NUL, which is no character"
    if holds_half_character(text):
        return "the text holds half of a surrogate pair, which is no character"
    return ""


def holds_half_character(text: str) -> bool:
    """Return whether a text has half of a surrogate pair, which no tokenizer accepts."""
    # Most texts need no look at each character.
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def warn_left_out(
    source: str, numbers: Sequence[int], total: int, reason: str = "they hold no text that can be used"
) -> None:
    """Warn that the rows with these numbers are left out; DataError if that is all ``total`` rows."""
    if not numbers:
        return
    row_numbers = ", ".join(map(str, numbers[:SHOWN]))
    if len(numbers) > SHOWN:
        row_numbers += f" and {len(numbers) - SHOWN} more"
    if len(numbers) == total:
        raise DataError(
            f"{source}: no row is left of {total}, because {reason}: {row_numbers}. Give a file with texts."
        )
    logger.warning(f"{source}: {len(numbers)} of {total} rows left out, because {reason}: {row_numbers}")


def holds_lists(rows: Iterable[Row], column: str) -> bool:
    """Return whether a column holds lists: a real list, or at least half of its texts are written like lists."""
    values = (row.get(column) for _, row in rows)
    cells = [value for value in values if value is not None and not (isinstance(value, str) and not value)]
    if any(not isinstance(cell, str) and is_list(cell) for cell in cells):
        return True
    # Half of the cells, because a single text may begin with a bracket.
    list_like = sum(map(is_list, cells))
    return list_like > 0 and 2 * list_like >= len(cells)


def refuse_lists(rows: Sequence[Row], columns: Iterable[str], source: str) -> None:
    """Raise DataError if at least half of the cells of a column of single texts are lists written as text."""
    for column in columns:
        cells = [text for _, row in rows[:SNIFFED_CELLS] if isinstance(text := row.get(column), str) and text.strip()]
        lists = [cell for cell in cells if cell.lstrip().startswith(("[", "(")) and _holds_texts(cell)]
        if lists and 2 * len(lists) >= len(cells):
            raise DataError(
                f"{source}: column {column!r} is read as one text a row, and its cells are lists, as in "
                f"{shorten_cell(lists[0])}. Write one text a row (in pandas: frame.explode({column!r})), or name the "
                "column positives, negatives or sentences if it holds these."
            )


def _holds_texts(cell: str) -> bool:
    try:
        values = list_in(cell)
    except ListCellError:
        return True
    return bool(values) and all(isinstance(value, str) for value in values or ())
