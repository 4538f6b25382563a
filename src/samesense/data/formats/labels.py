"""Labels out of cells: what kind they are, what each is worth, and which cannot be used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from samesense.data.formats.columns import Columns
from samesense.data.formats.label_values import INITIALS, NLI_VALUES, WORDS, in_words, plain_numbers, to_number, word_of
from samesense.data.formats.yes_no import in_english
from samesense.errors import ConfigError, DataError
from samesense.failures import excerpt

Kind = Literal["scored", "binary", "nli", "triple"]
Scale = tuple[float, float]

ZERO_CLASSES = ("contradiction", "not_entailment")
"""Classes of natural language inference that are worth 0: of three classes, and of two."""

NLI_SCALE: Scale = (0.0, 2.0)
UNLABELLED = ("-", "-1", "-1.0", "")

KNOWN_SCALES: tuple[Scale, ...] = ((0, 1), (-1, 1), (0, 5), (0, 10), (0, 100))
"""Ranges that similarity is given on, the narrowest first."""


@dataclass(frozen=True)
class ParsedLabels:
    """The labels of one source, by position."""

    values: list[float | None]  # a number for every usable label, None elsewhere
    kind: Kind  # what the labels are
    scale: Scale | None  # lowest and highest value they can take; None if no known range holds them
    # position to what is wrong and how to put it right
    problems: dict[int, tuple[str, str]] = field(default_factory=dict)
    # positions marked as having no label, which the field's convention leaves out
    unlabelled: frozenset[int] = frozenset()
    own_scale: bool = False  # the scale is the labels' own ends, because no known one has them
    zero_class: str = ZERO_CLASSES[0]  # of classes, what the label 0 is called


def parse_labels(
    raw: Sequence[object],
    columns: Columns,
    source: str,
    label_order: str | None = None,
    label_range: Scale | None = None,
) -> ParsedLabels:
    """Decide what the labels of a source are and turn them into numbers.

    ``columns`` tells inference data from scores; ``label_order`` names the integer classes 0, 1, 2. DataError if
    integers may be inference classes and nothing says which is which; ConfigError if an option is malformed or
    contradicts the labels.
    """
    _check_options(label_order, label_range)
    initials = _are_initials(raw)
    named = initials or any(isinstance(value, str) and word_of(value) in NLI_VALUES for value in raw)
    if named and (label_order or label_range):
        option = "`label_order`" if label_order else "`label_range`"
        raise ConfigError(
            f"{source}: {option} is for numeric labels, and column {columns.label!r} names its classes. Leave it out."
        )
    if named:
        classes = INITIALS if initials else NLI_VALUES
        return _parse_classes(raw, classes, "one of " + ", ".join(classes))
    if label_order and columns.holds_scores:
        raise ConfigError(
            f"{source}: `label_order` is for classes, and column {columns.label!r} holds scores by its name. "
            "Leave it out, or name the column label. Where other files of the command need it, write their classes in "
            "words instead."
        )
    if label_order:
        order = dict(zip("012", _class_names(label_order), strict=False))
        coded = {number: NLI_VALUES[name] for number, name in order.items()}
        rule = f"one of the integers {', '.join(coded)} that `label_order` names"
        return _parse_classes(raw, coded, rule, order)
    shares = label_range is None or label_range[1] <= 1
    place = f"{source}: column {columns.label!r}"
    _refuse_crosses(raw, place)
    parsed = _parse_numbers(plain_numbers(in_english(raw, place), place, shares=shares), label_range, raw)
    if label_range is None:
        _refuse_coded_classes(parsed, columns, source)
    return parsed


def _are_initials(raw: Sequence[object]) -> bool:
    """Return whether labels are the first letters of entailment, neutral and contradiction, not yes and no."""
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
        low, high = label_range
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ConfigError(f"`label_range` takes a lower and a higher number; received {low} {high}. Example: 0 5")


def _parse_classes(
    raw: Sequence[object], classes: dict[str, float], rule: str, names: Mapping[str, str] = MappingProxyType({})
) -> ParsedLabels:
    """Return what classes are worth; ``names`` are those of integers."""
    zeros: set[str] = set()
    values: list[float | None] = []
    problems: dict[int, tuple[str, str]] = {}
    unlabelled: set[int] = set()
    for position, cell in enumerate(raw):
        text = _class_text(cell)
        values.append(classes.get(text))
        zeros.update({names.get(text, text)}.intersection(ZERO_CLASSES))
        if text in UNLABELLED:
            unlabelled.add(position)
        elif text not in classes:
            problems[position] = (
                f"label {excerpt(cell)} is not {rule}",
                "correct the label, or write - if there is none",
            )
    called = zero_class(zeros)
    return ParsedLabels(values, "nli", NLI_SCALE, problems, frozenset(unlabelled), zero_class=called)


def zero_class(found: Iterable[str]) -> str:
    """Return what the label 0 is called by the names that stand for it: that of three classes unless only the other."""
    return ZERO_CLASSES[set(found) == {ZERO_CLASSES[1]}]


def label_name(label: float, zero: str) -> str:
    """Return the class of natural language inference that is worth so much."""
    return {0.0: zero, 1.0: "neutral", 2.0: "entailment"}[label]


def _class_text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        text = cell.strip() if cell.strip() in UNLABELLED else word_of(cell)
        return text.removesuffix(".0")
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _refuse_crosses(raw: Sequence[object], place: str) -> None:
    """Raise DataError for crosses beside empty cells: those may be a no, or rows that nobody has looked at."""
    if not all(cell is None or isinstance(cell, str) for cell in raw):
        return
    words = {cell.strip().casefold() if isinstance(cell, str) else "" for cell in raw}
    if "" in words and len(words) == 2 and words & {"x", "✓", "✔", "✗", "✘", "☒", "☑"}:
        (mark,) = words - {""}
        raise DataError(
            f"{place} holds {mark!r} in some rows and nothing in the others, which may be a no, or a row without a "
            "label. Write yes and no, or 1 and 0, in every row that has a label."
        )


def _parse_numbers(cells: Sequence[object], label_range: Scale | None, raw: Sequence[object]) -> ParsedLabels:
    """Return what cells are worth; ``raw`` is how the source writes them, for messages."""
    values = [to_number(cell) for cell in cells]
    unlabelled = _without_label(cells)
    problems = {
        position: _not_a_number(raw[position])
        for position, value in enumerate(values)
        if value is None and position not in unlabelled
    }
    for position, problem in _mixed(cells, values, raw).items():
        problems[position], values[position] = problem, None
    numbers = [value for value in values if value is not None]
    scale = infer_scale(numbers) if numbers else None
    own_scale = label_range is None and scale is not None and scale not in KNOWN_SCALES
    if label_range is not None:
        scale = float(label_range[0]), float(label_range[1])
    if scale is not None:
        low, high = scale
        inside = sum(low <= number <= high for number in numbers)
        share = share_text(inside, len(numbers)) if numbers else ""
        for position, value in enumerate(values):
            if value is not None and not low <= value <= high:
                problems[position] = _outside(value, scale, "" if label_range else share)
                values[position] = None
    kept = {value for value in values if value is not None}
    kind: Kind = "binary" if kept and kept <= {0.0, 1.0} and label_range in (None, (0, 1)) else "scored"
    return ParsedLabels(values, kind, scale, problems, unlabelled, own_scale=own_scale)


def _without_label(raw: Sequence[object]) -> frozenset[int]:
    """Return the positions that are marked to have no label: by ``-``, and among named classes also by nothing."""
    named = any(isinstance(cell, str) and _is_named(cell) for cell in raw)
    marks = ("-", "") if named else ("-",)
    return frozenset(
        at
        for at, cell in enumerate(raw)
        if (cell.strip() in marks if isinstance(cell, str) else named and cell is None)
    )


def _mixed(
    cells: Sequence[object], values: Sequence[float | None], raw: Sequence[object]
) -> dict[int, tuple[str, str]]:
    """Return the problems of names such as true among numbers, or of numbers among names: whichever are fewer."""
    named = [at for at, cell in enumerate(cells) if _is_named(cell)]
    if not named:
        return {}
    numbers = [at for at, value in enumerate(values) if value is not None and not _is_named(cells[at])]
    if not numbers:
        return {}
    strays, others = (named, "numbers") if len(named) <= len(numbers) else (numbers, "true, false or named classes")
    return {at: (f"label {excerpt(raw[at])} stands among {others}", "write all labels in one way") for at in strays}


def _is_named(cell: object) -> bool:
    return isinstance(cell, bool) or (isinstance(cell, str) and word_of(cell) in WORDS)


def _not_a_number(cell: object) -> tuple[str, str]:
    if cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and math.isnan(cell)):
        return "there is no label", "give a label or delete the row"
    if isinstance(cell, str) and "," in cell and to_number(cell.replace(",", ".")) is not None:
        return f"label {excerpt(cell)} is not a number", "write decimals with a point"
    if isinstance(cell, (str, int, float)):
        known = "a finite number, true or false, yes or no, or a known class such as duplicate or not_duplicate"
        return f"label {excerpt(cell)} is not {known}", "write one of these"
    return f"label of type {type(cell).__name__} is not a number", "write one number in the label column"


def refuse_words(raw: Sequence[object], parsed: ParsedLabels, columns: Columns, source: str) -> None:
    """Raise DataError if no label is known, as of words of another language, or percentages: no row could be kept."""
    if any(value is not None for value in parsed.values):
        return
    cells = (cell for at, cell in enumerate(raw) if at not in parsed.unlabelled)
    if said := in_words([cell for cell in cells if cell is not None and not (isinstance(cell, str) and not cell)]):
        raise DataError(f"{source}: no label is known: column {columns.label!r} holds {said}")


def _outside(value: float, scale: Scale, share: str) -> tuple[str, str]:
    span = f"{number_text(scale[0])}-{number_text(scale[1])}"
    if not share:
        return f"label {number_text(value)} is outside the range {span} given with `label_range`", "correct the label"
    return (
        f"label {number_text(value)} is outside the scale {span} that the other {share} use",
        "correct the label, or give the true scale with `label_range` LOW HIGH",
    )


def _refuse_coded_classes(parsed: ParsedLabels, columns: Columns, source: str) -> None:
    """Raise if numbers may be classes: 0, 1, 2 under any name but a score's, and what else stands by a premise."""
    kept = {value for value in parsed.values if value is not None} - {-1.0}
    inference, scores = columns.is_premise_hypothesis, columns.holds_scores
    from_0 = bool(kept) and kept <= {0.0, 1.0, 2.0} and not scores and (inference or 2.0 in kept)
    from_1 = inference and bool(kept) and kept <= {1.0, 2.0, 3.0}
    if not (from_0 or from_1):
        return
    if from_0:
        naming = "Name the classes of 0, 1, 2 in order: `label_order` entailment,neutral,contradiction."
    else:
        naming = "Write the classes in words" + (
            "." if scores else ", or number them from 0 and name them in order with `label_order`."
        )
    seen = ", ".join(number_text(value) for value in sorted(kept))
    raise DataError(
        f"{source}: column {columns.label!r} holds the integers {seen}, which may be classes of natural language "
        "inference, and data sets disagree about their order (SNLI and SICK on the hub code 0 as entailment). "
        f"{naming} If they are similarity scores, give their scale: `label_range` {'0 2' if from_0 else '1 3'}."
    )


def infer_scale(numbers: Sequence[float]) -> Scale | None:
    """Return the scale of labels: the narrowest known range that holds them, or their own ends as whole numbers.

    From 100 labels on, one in a hundred may lie outside; from 20 on, a single one; below that, none. ``None`` if no
    known range holds them.

    Within 0 to 1 and -1 to 1 labels need not reach the ends, being similarities as a rule; beyond, they are ratings,
    and those from 1 to 7 have nothing to do with 10. From 1 to 5 is 0 to 5, as the field has it.
    """
    count = len(numbers)
    allowed = count // 100 if count >= 100 else int(count >= 20)
    for low, high in KNOWN_SCALES:
        inside = [number for number in numbers if low <= number <= high]
        if count - len(inside) <= allowed:
            ends = math.floor(min(inside)), math.ceil(max(inside))
            known = high <= 1 or ends in ((low, high), (1, 5)) or len(set(inside)) == 1
            return (low, high) if known else ends
    return None


def number_text(number: float) -> str:
    """Write a number as short as it goes: ``5``, ``3.75``."""
    return f"{number:.6g}"


def share_text(part: int, whole: int) -> str:
    """Write a share in percent, never rounded up to 100 while something is left over."""
    percent = 100 * part / whole
    digits = 1
    while part < whole and f"{percent:.{digits}f}".startswith("100") and digits < 6:
        digits += 1
    return f"{percent:.{digits}f} %"
