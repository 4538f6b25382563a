"""What a row says of its anchor: the layouts in which anchors, positives and negatives are written down."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from samesense.data.formats.columns import CLASS_NAMES, NEGATIVE_NAMES
from samesense.data.tuples.groups import Side
from samesense.errors import DataError

NLI_PAIRS = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_a", "sentence_b"))
ANCHOR_NAMES = ("anchor", "query", "sent0")
POSITIVE_NAMES = ("positive", "positives", "pos", "sent1")
NEGATIVES = (*NEGATIVE_NAMES, "negatives", "neg", "hard_negatives")
NEUTRAL_NAMES = ("neutral", "neutrals")

_NUMBERED: dict[Side, re.Pattern[str]] = {
    "positive": re.compile(r"(positive|pos)_?\d+"),
    "negative": re.compile(r"(negative|neg|hard_neg|hard_negative)_?\d+"),
}
_ACCEPTED = (
    f"Accepted: an anchor ({', '.join(ANCHOR_NAMES)}) with columns of positives ({', '.join(POSITIVE_NAMES)}, "
    f"positive_1 ...) and of negatives ({', '.join(NEGATIVES)}, negative_1 ...), each cell a text or a list of texts; "
    "or premise, hypothesis and label of NLI data"
)


@dataclass(frozen=True)
class Layout:
    """The columns of one source, as it spells them.

    Attributes:
        anchor: column of the anchor.
        partners: columns of partners, with what they are; of NLI data the one of the hypothesis, whose label decides.
        label: column of the NLI class, or nothing.
    """

    anchor: str
    partners: tuple[tuple[str, Side], ...]
    label: str | None = None


def layout_of(names: Sequence[str], source: str) -> Layout:
    """Find the columns of a source by their names; case is ignored.

    Raises:
        DataError: if there is no anchor, or nothing beside it.
    """
    spelled = {name.strip().casefold(): name for name in reversed(names)}
    label = next((spelled[name] for name in CLASS_NAMES if name in spelled), None)
    pair = next((pair for pair in NLI_PAIRS if set(pair) <= spelled.keys()), None)
    if pair is not None and label is not None:
        return Layout(spelled[pair[0]], ((spelled[pair[1]], "neutral"),), label)
    anchor = next((spelled[name] for name in ANCHOR_NAMES if name in spelled), None)
    partners = tuple((name, side) for name in names for side in _sides(name.strip().casefold()))
    if anchor is None or not partners:
        raise DataError(
            f"{source}: an anchor and columns of positives or negatives could not be found. Columns found: "
            f"{', '.join(names) or 'none'}. {_ACCEPTED}. Rename the columns."
        )
    return Layout(anchor, partners)


def _sides(name: str) -> Iterator[Side]:
    """Yield what a column of this name holds; nothing if that is unknown."""
    named: dict[Side, Sequence[str]] = {
        "positive": POSITIVE_NAMES, "negative": NEGATIVES, "neutral": NEUTRAL_NAMES,
    }  # fmt: skip
    for side, names in named.items():
        if name in names or (side in _NUMBERED and _NUMBERED[side].fullmatch(name)):
            yield side


def texts_in(cell: object) -> list[object]:
    """Return the texts of a cell: those of a list, also of one written as JSON; one text; none if it is empty."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            found = json.loads(cell)
        except ValueError:
            return [cell]
        return found if isinstance(found, list) and all(isinstance(text, str) for text in found) else [cell]
    if isinstance(cell, list):
        return cell
    return [] if cell is None or cell == "" else [cell]


def wrong_with(text: object) -> str:
    """Return what is wrong with a text, nothing if it can be used."""
    if not isinstance(text, str):
        return f"a text is needed, received {type(text).__name__} {str(text)[:40]!r}"
    if not text.strip():
        return "the text is empty"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "the text holds half of a surrogate pair, which is no character"
    return ""
