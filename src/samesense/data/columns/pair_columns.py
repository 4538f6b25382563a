"""The columns of labelled pairs: two texts, and a label or a negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from samesense.data.conventions.column_names import (
    CLASS_NAMES,
    LABEL_NAMES,
    NEGATIVE_NAMES,
    POSITIVE_PAIRS,
    SCORE_NAMES,
    SUBSET_NAMES,
    TEXT_PAIRS,
    find_name,
    find_pair,
    find_sides,
    is_distance,
    normalize_name,
    refuse_distance,
    spelled_names,
)
from samesense.data.conventions.named_columns import listed, quote_columns, split_columns
from samesense.data.rows.load import BEIR_FIX
from samesense.errors import ConfigError, DataError


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
        f"Its columns: {listed(names)}. Use three of these{such_as}. Where another file of the "
        "command has them, give both the same names."
    )


def _suggestion(example: str) -> str:
    """Return an example of three columns, quoted for a shell; an empty string if it names others than three."""
    if len(split_columns(example)) == 3:
        return quote_columns(example)
    return ""


def _missing_columns_error(names: Sequence[str], source: str, what: str, example: str) -> DataError:
    message = f"{source}: {what} could not be found. Its columns: {listed(names)}."
    if {"query-id", "corpus-id"} <= set(names):
        return DataError(f"{message} These are judgements of BEIR, which name texts by their ids. {BEIR_FIX}")
    if example:
        proposed = f"`columns` {quote_columns(example)}"
        if len(split_columns(example)) != 3:
            return DataError(f"{message} Name two texts that belong together: {proposed}")
        # The option may be that of another file.
        return DataError(
            f"{message} Names that need no option are sentence1, sentence2, label. Name two texts and the label: "
            f"{proposed}"
        )
    pairs = ", ".join("/".join(pair) for pair in TEXT_PAIRS)
    return DataError(
        f"{message} Labelled pairs have two columns of texts and one of labels. Known names of texts: {pairs}; of "
        f"labels: {', '.join(LABEL_NAMES)}. A file without a header line needs one, or `header` no, unless it "
        "has exactly three columns, text, text and a number."
    )


def _unlabelled_error(names: Sequence[str], source: str) -> DataError:
    return DataError(
        f"{source}: these rows have no label. Its columns: {listed(names)}. Pairs with only positives are trained on "
        "by `method` supmpn `tuples` ragged; CoSENT needs labels or negatives. Add a column 'negative' or 'label', or "
        "name an existing one with `columns` first,second,label."
    )
