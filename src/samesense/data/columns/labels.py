"""Label cells as numbers: the kind of the labels, their scale, and what is no label."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from types import MappingProxyType
from typing import Literal, NamedTuple

from samesense.data.columns.pair_columns import Columns
from samesense.data.conventions.class_names import (
    INITIALS,
    NLI_SCALE,
    NLI_VALUES,
    UNLABELLED,
    WORDS,
    ZERO_CLASSES,
    word_of,
    zero_class,
)
from samesense.data.conventions.numbers import (
    are_quantities,
    is_number,
    number_text,
    percent_text,
    plain_numbers,
    to_number,
    with_ascii_digits,
)
from samesense.data.conventions.scales import KNOWN_SCALES, Scale, infer_scale, on_scale
from samesense.data.conventions.texts import INTO_COLUMN
from samesense.data.conventions.yes_no import translate_yes_no
from samesense.errors import ConfigError, DataError
from samesense.failures import excerpt

Kind = Literal["scored", "binary", "nli", "triplet"]
"""Graded scores; labels 0 and 1; classes of natural language inference; or a positive and a negative of an anchor."""

MOST_WORDS = 12
"""Most different words that a column of labels may have; a column with more holds something else."""

SHOWN = 5
"""Labels that a message shows, the most frequent first."""


_NLI_STEMS = ("entail", "contradict")


def describe_words(cells: Sequence[object]) -> str:
    """Return the labels with their counts and a fix, for a message, if all labels are words; else ``""``."""
    words = Counter(cell.strip() for cell in cells if isinstance(cell, str) and cell.strip())
    # Other cells are not strings, so the column is something else.
    if not words or sum(words.values()) < len(cells):
        return ""
    listed = ", ".join(f"{word[:40]!r} ({count})" for word, count in words.most_common(SHOWN))
    ending = f" and {len(words) - SHOWN} others" if len(words) > SHOWN else ""
    if are_quantities(list(words)):
        fix = "Write plain numbers, without a unit: 3/5 as 0.6, 4 stars as 4."
    elif len(words) > MOST_WORDS:
        fix = "If it is not the column of labels, name the columns: `columns` first,second,label."
    elif any(name in word.casefold() for word in words for name in _NLI_STEMS):
        fix = "Write entailment, neutral and contradiction."
    elif len(words) == 2:
        fix = "Replace them by 1 for a pair that belongs together, and 0 for one that does not."
    else:
        fix = "Replace them by numbers: the higher, the closer the two texts."
    return f"{listed}{ending}. {fix}"


class LabelProblem(NamedTuple):
    """What is wrong with a label, and how to correct it."""

    what: str
    fix: str


@dataclass(frozen=True)
class ParsedLabels:
    """The labels of one source, by position."""

    values: list[float | None]  # a number for every usable label, None elsewhere
    kind: Kind  # what the labels are
    scale: Scale | None  # lowest and highest value they can take; None if no known range holds them
    problems: dict[int, LabelProblem] = field(default_factory=dict)  # by position
    # positions marked as having no label, which are left out by convention
    unlabelled: frozenset[int] = frozenset()
    own_scale: bool = False  # the scale runs from the lowest to the highest label, because no known one fits
    zero_class: str = ZERO_CLASSES[0]  # name of the class with label 0, for NLI data


def parse_labels(
    raw: Sequence[object],
    columns: Columns,
    source: str,
    label_order: str | None = None,
    label_range: Scale | None = None,
) -> ParsedLabels:
    """Decide what the labels of a source are and turn them into numbers.

    ``columns`` distinguishes inference data from scores; ``label_order`` names the integer classes 0, 1, 2. DataError
    if integers may be inference classes and their order is unknown; ConfigError if an option is malformed or
    contradicts the labels.
    """
    _check_options(label_order, label_range)
    classes = _classes_named(raw)
    if classes is not None and (label_order or label_range):
        option = "`label_order`" if label_order else "`label_range`"
        raise ConfigError(
            f"{source}: {option} is for numeric labels, and column {columns.label!r} names its classes. Leave it out."
        )
    if classes is not None:
        return _parse_classes(raw, classes, "one of " + ", ".join(classes))
    if label_order:
        return _parse_coded_classes(raw, columns, source, label_order)
    parsed = _parse_scores(raw, f"{source}: column {columns.label!r}", label_range)
    # A given range says that the numbers are scores and not coded classes.
    if label_range is None:
        _refuse_coded_classes(parsed, columns, source)
    return parsed


def _classes_named(raw: Sequence[object]) -> dict[str, float] | None:
    """Return the values of the NLI classes if the labels name them, in full or by initials; else ``None``."""
    # Single letters are NLI classes only if e or c is among them, since n alone means no.
    if _are_initials(raw):
        return INITIALS
    words = {word_of(value) for value in {value for value in raw if isinstance(value, str)}}
    classes = words & NLI_VALUES.keys()
    # Neutral is a word of other scales too, such as positive, neutral and negative.
    if not classes or (classes == {"neutral"} and len(words - {*classes, *UNLABELLED}) > 1):
        return None
    return NLI_VALUES


def _parse_coded_classes(raw: Sequence[object], columns: Columns, source: str, label_order: str) -> ParsedLabels:
    """Return the values of integer classes, whose names ``label_order`` gives in order."""
    if columns.holds_scores:
        raise ConfigError(
            f"{source}: `label_order` is for classes, and column {columns.label!r} holds scores by its name. "
            "Leave it out, or name the column label. Where other files of the command need it, write their classes in "
            "words instead."
        )
    order = dict(zip("012", _class_names(label_order), strict=False))
    coded = {number: NLI_VALUES[name] for number, name in order.items()}
    rule = f"one of the integers {', '.join(coded)} that `label_order` names"
    return _parse_classes(raw, coded, rule, order)


def _parse_scores(raw: Sequence[object], location: str, label_range: Scale | None) -> ParsedLabels:
    """Return labels that are numbers, or words with a value; ``location`` is the column in messages."""
    _refuse_crosses(raw, location)
    cells = with_ascii_digits(raw)
    # Most columns hold numbers alone, and need no look at the words of many languages.
    if any(isinstance(cell, str) and not is_number(cell) for cell in cells):
        cells = translate_yes_no(cells, location)
    return _parse_numbers(plain_numbers(cells, location, label_range), label_range, raw)


def _are_initials(raw: Sequence[object]) -> bool:
    """Return whether labels are the first letters of entailment, neutral and contradiction, rather than yes and no."""
    words = {word_of(value) for value in raw if isinstance(value, str) and value.strip() not in UNLABELLED}
    return bool(words & {"e", "c"}) and words <= INITIALS.keys()


def _class_names(label_order: str) -> list[str]:
    return [name.strip().casefold() for name in label_order.split(",")]


def _check_options(label_order: str | None, label_range: Scale | None) -> None:
    if label_order is not None:
        names = _class_names(label_order)
        if not 2 <= len(names) <= 3 or len(set(names)) < len(names) or not NLI_VALUES.keys() >= set(names):
            raise ConfigError(
                f"`label_order` takes two or three different names out of {', '.join(NLI_VALUES)}; received "
                f"{label_order!r}. Example: `label_order` entailment,neutral,contradiction"
            )
        if label_range is not None:
            raise ConfigError("`label_order` is for classes and `label_range` for scores; give one of them.")
    if label_range is not None:
        bounds = [bound for bound in label_range if isinstance(bound, Real) and math.isfinite(bound)]
        if len(label_range) != 2 or len(bounds) != 2 or bounds[0] >= bounds[1]:
            received = " ".join(map(str, label_range))
            raise ConfigError(f"`label_range` takes a lower and a higher number; received {received}. Example: 0 5")


def _parse_classes(
    raw: Sequence[object], classes: dict[str, float], rule: str, names: Mapping[str, str] = MappingProxyType({})
) -> ParsedLabels:
    """Return the values of class labels; ``names`` maps integer labels to class names."""
    zeros: set[str] = set()
    values: list[float | None] = []
    problems: dict[int, LabelProblem] = {}
    unlabelled: set[int] = set()
    for position, cell in enumerate(raw):
        text = _class_text(cell)
        values.append(classes.get(text))
        # Remember which names of class 0 occur.
        zeros.update({names.get(text, text)}.intersection(ZERO_CLASSES))
        if text in UNLABELLED:
            unlabelled.add(position)
        elif text not in classes:
            problems[position] = LabelProblem(
                f"label {excerpt(cell)} is not {rule}",
                "correct the label, or write - if there is none",
            )
    zero_name = zero_class(zeros)
    return ParsedLabels(values, "nli", NLI_SCALE, problems, frozenset(unlabelled), zero_class=zero_name)


def has_one_label(labels: Sequence[float]) -> bool:
    """Return whether all labels are equal."""
    return all(label == labels[0] for label in labels)


def _class_text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        text = cell.strip() if cell.strip() in UNLABELLED else word_of(cell)
        # pandas writes whole numbers as decimals if one of the column is missing.
        return text.removesuffix(".0")
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _refuse_crosses(raw: Sequence[object], location: str) -> None:
    """Raise DataError for crosses beside empty cells: an empty cell may mean no, or that no one labelled the row."""
    if not all(cell is None or isinstance(cell, str) for cell in raw):
        return
    words = {cell.strip().casefold() if isinstance(cell, str) else "" for cell in raw}
    if "" in words and len(words) == 2 and words & {"x", "✓", "✔", "✗", "✘", "☒", "☑"}:
        (mark,) = words - {""}
        raise DataError(
            f"{location} holds {mark!r} in some rows and nothing in the others, which may be a no, or a row without a "
            "label. Write yes and no, or 1 and 0, in every row that has a label."
        )


def _parse_numbers(cells: Sequence[object], label_range: Scale | None, raw: Sequence[object]) -> ParsedLabels:
    """Return the cells as numbers; ``raw`` are the cells as the source writes them, for messages."""
    values = [to_number(cell) for cell in cells]
    unlabelled = _unlabelled_positions(cells)
    problems = {
        position: _number_problem(raw[position])
        for position, value in enumerate(values)
        if value is None and position not in unlabelled
    }
    # Where numbers and words are mixed, the rarer ones are probably mistakes.
    _reject(_mixed_problems(cells, values, raw), values, problems)
    # The scale is inferred after that, from the numbers that are left.
    if label_range is not None:
        scale: Scale | None = (float(label_range[0]), float(label_range[1]))
    else:
        scale = infer_scale([value for value in values if value is not None])
    if scale is not None:
        values = [None if value is None else on_scale(value, scale) for value in values]
        _reject(_range_problems(values, scale, inferred=label_range is None), values, problems)
    kind = _kind_of_numbers(values, label_range)
    own_scale = label_range is None and scale is not None and scale not in KNOWN_SCALES
    return ParsedLabels(values, kind, scale, problems, unlabelled, own_scale=own_scale)


def _reject(
    rejected: Mapping[int, LabelProblem], values: list[float | None], problems: dict[int, LabelProblem]
) -> None:
    """Take rejected labels out of ``values``, and add why to ``problems``."""
    for position, problem in rejected.items():
        problems[position] = problem
        values[position] = None


def _kind_of_numbers(values: Sequence[float | None], label_range: Scale | None) -> Kind:
    distinct = {value for value in values if value is not None}
    # Zeros and ones on another given range are scores that happen to be 0 and 1.
    if distinct and distinct <= {0.0, 1.0} and label_range in (None, (0, 1)):
        return "binary"
    return "scored"


def _unlabelled_positions(raw: Sequence[object]) -> frozenset[int]:
    """Return the positions marked as having no label: cells with ``-``, and among named classes also empty cells."""
    has_names = any(isinstance(cell, str) and _is_class_word(cell) for cell in raw)
    marks = ("-", "") if has_names else ("-",)
    positions = {position for position, cell in enumerate(raw) if isinstance(cell, str) and cell.strip() in marks}
    # Parquet and JSON have no empty cells but nulls.
    if has_names:
        positions.update(position for position, cell in enumerate(raw) if cell is None)
    return frozenset(positions)


def _mixed_problems(
    cells: Sequence[object], values: Sequence[float | None], raw: Sequence[object]
) -> dict[int, LabelProblem]:
    """Return problems where names such as true are mixed with numbers; the rarer of the two is the problem."""
    names = [position for position, cell in enumerate(cells) if _is_class_word(cell)]
    if not names:
        return {}
    numbers = [
        position for position, value in enumerate(values) if value is not None and not _is_class_word(cells[position])
    ]
    if not numbers:
        return {}
    strays = numbers
    majority = "true, false or named classes"
    if len(names) <= len(numbers):
        strays = names
        majority = "numbers"
    return {
        position: LabelProblem(f"label {excerpt(raw[position])} stands among {majority}", "write all labels in one way")
        for position in strays
    }


def _is_class_word(cell: object) -> bool:
    # Parquet and JSON have true and false as such.
    return isinstance(cell, bool) or (isinstance(cell, str) and word_of(cell) in WORDS)


def _number_problem(cell: object) -> LabelProblem:
    # NaN is how pandas writes a missing number.
    if cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and math.isnan(cell)):
        return LabelProblem("there is no label", "give a label or delete the row")
    if isinstance(cell, str) and "," in cell and to_number(cell.replace(",", ".")) is not None:
        return LabelProblem(f"label {excerpt(cell)} is not a number", "write decimals with a point")
    if isinstance(cell, (str, int, float)):
        accepted = "a finite number, true or false, yes or no, or a known class such as duplicate or not_duplicate"
        return LabelProblem(f"label {excerpt(cell)} is not {accepted}", "write one of these")
    if isinstance(cell, list) and len(cell) > 1:
        received = f"label {excerpt(cell, 60)} is a list, and a pair has one label"
        return LabelProblem(received, "write a row for each text with its own label")
    if isinstance(cell, dict):
        return LabelProblem(f"label {excerpt(cell)} is an object, which is not read", f"write its label {INTO_COLUMN}")
    return LabelProblem(f"label of type {type(cell).__name__} is not a number", "write one number in the label column")


def refuse_words(raw: Sequence[object], parsed: ParsedLabels, columns: Columns, source: str) -> None:
    """Raise DataError if no label could be parsed, as with words of another language: every row would be dropped."""
    # One label that is known shows that the others are mistakes.
    if any(value is not None for value in parsed.values):
        return
    cells = (cell for position, cell in enumerate(raw) if position not in parsed.unlabelled)
    if description := describe_words(
        [cell for cell in cells if cell is not None and not (isinstance(cell, str) and not cell)]
    ):
        raise DataError(f"{source}: no label is known: column {columns.label!r} holds {description}")


def _range_problems(values: Sequence[float | None], scale: Scale, *, inferred: bool) -> dict[int, LabelProblem]:
    """Return the problems of the labels outside a scale, by position."""
    low, high = scale
    count = sum(value is not None for value in values)
    outside = {
        position: value for position, value in enumerate(values) if value is not None and not low <= value <= high
    }
    # For an inferred scale, the message says how many labels are on it.
    percentage = percent_text(count - len(outside), count) if inferred and count else ""
    return {position: _range_problem(value, scale, percentage) for position, value in outside.items()}


def _range_problem(value: float, scale: Scale, percentage: str) -> LabelProblem:
    span = f"{number_text(scale[0])}-{number_text(scale[1])}"
    text = number_text(value)
    # Rounded, it would stand within the range.
    if scale[0] <= float(text) <= scale[1]:
        text = repr(value)
    if not percentage:
        return LabelProblem(f"label {text} is outside the range {span} given with `label_range`", "correct the label")
    return LabelProblem(
        f"label {text} is outside the scale {span} that the other {percentage} use",
        "correct the label, or give the true scale with `label_range` LOW HIGH",
    )


def _refuse_coded_classes(parsed: ParsedLabels, columns: Columns, source: str) -> None:
    """Raise if numbers may be coded classes: 0, 1, 2 in a column not named as scores, or numbers beside a premise."""
    # -1 marks a missing label in NLI data, so it does not speak against classes.
    distinct = {value for value in parsed.values if value is not None} - {-1.0}
    inference = columns.is_premise_hypothesis
    scores = columns.holds_scores
    # Classes may be numbered from 0, in any column not named as scores, or from 1 beside a premise.
    from_0 = bool(distinct) and distinct <= {0.0, 1.0, 2.0} and not scores and (inference or 2.0 in distinct)
    from_1 = inference and bool(distinct) and distinct <= {1.0, 2.0, 3.0}
    if not (from_0 or from_1):
        return
    if from_0:
        naming = "Name the classes of 0, 1, 2 in order: `label_order` entailment,neutral,contradiction."
    else:
        naming = "Write the classes in words."
        if not scores:
            naming = "Write the classes in words, or number them from 0 and name them in order with `label_order`."
    integers = ", ".join(number_text(value) for value in sorted(distinct))
    raise DataError(
        f"{source}: column {columns.label!r} holds the integers {integers}, which may be classes of natural language "
        "inference, and data sets disagree about their order (SNLI and SICK on the hub code 0 as entailment). "
        f"{naming} If they are similarity scores, give their scale: `label_range` {'0 2' if from_0 else '1 3'}."
    )
