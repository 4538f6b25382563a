"""The columns of anchors with positives and negatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from samesense.data.conventions.column_names import (
    ANCHOR_NAMES,
    CLASS_NAMES,
    NEGATIVES,
    NLI_PAIRS,
    PARTNER_SIDES,
    POSITIVE_NAMES,
    Side,
    find_anchor,
    find_name,
    find_pair,
    find_sides,
    normalize_name,
    spelled_names,
)
from samesense.data.conventions.named_columns import listed, named_column, split_columns
from samesense.errors import ConfigError, DataError

_ACCEPTED = (
    f"Accepted: an anchor ({', '.join(ANCHOR_NAMES)}) with columns of positives ({', '.join(POSITIVE_NAMES)}, "
    f"positive_1 ...) and of negatives ({', '.join(NEGATIVES)}, negative_1 ...), each cell a text or a list of texts; "
    "or premise, hypothesis and label of NLI data"
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
