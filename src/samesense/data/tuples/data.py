"""Anchors with any number of positives and negatives each: the training data of SupMPN."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from samesense.data.conflicts import Conflict
from samesense.data.conventions.column_names import Side
from samesense.data.pairs.targets import Targets
from samesense.errors import DataError
from samesense.hashes import rows_hash
from samesense.results.shown import ShownRows

ITSELF = "partners that are their anchor"
"""What is counted of partners that are left out because they equal their anchor."""

BINS = ("none", "1", "2 to 4", "5 or more")


class Statement(NamedTuple):
    """An anchor and a partner with its side, from one row; statements of one group are merged."""

    group: str
    anchor: str
    partner: str
    side: Side
    row: int = 0  # of the source


@dataclass(frozen=True)
class Group:
    """An anchor with its partners, each once and in order of appearance."""

    anchor: str  # the text
    positives: list[str]  # texts that say the same, or follow from it
    negatives: list[str]  # texts that contradict it
    neutrals: list[str]  # texts that do neither
    conflicts: list[Conflict] = field(default_factory=list)  # partners that are both positive and negative; left out
    repeated: int = 0  # repeated statements that were left out
    itself: int = 0  # statements left out because the partner equals the anchor


def group_statements(statements: Iterable[Statement]) -> Iterator[Group]:
    """Yield the groups in order of first appearance; the statements of a group need not be consecutive."""
    rows_of_group: dict[str, tuple[str, list[Statement]]] = {}
    for row in statements:
        rows_of_group.setdefault(row.group, (row.anchor, []))[1].append(row)
    yield from (_group(anchor, rows) for anchor, rows in rows_of_group.values())


def _group(anchor: str, rows: list[Statement]) -> Group:
    sides: dict[Side, dict[str, None]] = {"positive": {}, "negative": {}, "neutral": {}}
    itself = 0
    for row in rows:
        # A text is not a partner of itself.
        if row.partner == anchor:
            itself += 1
        else:
            sides[row.side][row.partner] = None
    # Of a text given both ways, neither side is right.
    contradictory = sides["positive"].keys() & sides["negative"].keys()
    return Group(
        anchor,
        [text for text in sides["positive"] if text not in contradictory],
        [text for text in sides["negative"] if text not in contradictory],
        list(sides["neutral"]),
        conflicts=[_conflict(rows, partner) for partner in sides["positive"] if partner in contradictory],
        repeated=len(rows) - itself - sum(map(len, sides.values())),
        itself=itself,
    )


def _conflict(rows: list[Statement], partner: str) -> Conflict:
    conflicting = [row for row in rows if row.partner == partner]
    return Conflict(
        [row.row for row in conflicting], [conflicting[0].anchor, partner], [row.side for row in conflicting]
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class TupleData(ShownRows):
    """Anchors of one or several sources, in order of first appearance."""

    anchors: list[str]  # the texts
    positives: list[list[str]]  # of each anchor; may be empty
    negatives: list[list[str]]  # of each anchor; may be empty
    neutrals: list[list[str]]  # of each anchor: neither entailed nor contradicted (NLI data only)
    source: str  # the files or names as the user gave them
    name: str  # short name for display
    left_out: dict[str, int] = field(default_factory=dict)  # number of rows left out, by reason
    conflicts: list[Conflict] = field(default_factory=list, compare=False)  # partners both positive and negative
    classes: dict[str, int] | None = (
        None  # class number of each text; texts of a class are never each other's negatives
    )
    class_names: tuple[str, ...] = ()  # by number
    # anchors, or texts with classes, that are not trained on
    held_out: HeldOutAnchors | HeldOutTexts | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.anchors)

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the content in order; the same for the same content in any file format."""
        columns = (self.anchors, self.positives, self.negatives, self.neutrals)
        if self.classes is None:
            return rows_hash(zip(*columns, strict=True), b"tuples\n")
        return rows_hash(zip(*columns, self.labels, strict=True), b"classes\n")

    def __str__(self) -> str:
        first, *others = self.summary()
        return "\n".join([f"{self.name}: {first}", *others])

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each anchor as a dictionary, with the lists of its positives and negatives, or with its class."""
        if self.classes is not None:
            return [{"text": text, "label": label} for text, label in zip(self.anchors, self.labels, strict=True)]
        columns = zip(self.anchors, self.positives, self.negatives, strict=True)
        return [dict(zip(("anchor", "positives", "negatives"), row, strict=True)) for row in columns]

    @property
    def labels(self) -> list[str]:
        """The name of the class of each anchor; DataError where they have none."""
        if self.classes is None:
            raise DataError(f"{self.source}: these are anchors with positives, which have no classes.")
        return [self.class_names[self.classes[text]] for text in self.anchors]

    @property
    def test(self) -> TupleData | None:
        """The user's test, where it is of the kind of these data."""
        if self.held_out is None or not self.held_out.is_test:
            return None
        return self.held_out.data

    def take(self, indices: Iterable[int]) -> TupleData:
        """Return the anchors at these positions, in the order given."""
        rows = [int(index) for index in indices]
        return replace(
            self,
            anchors=[self.anchors[row] for row in rows],
            positives=[self.positives[row] for row in rows],
            negatives=[self.negatives[row] for row in rows],
            neutrals=[self.neutrals[row] for row in rows],
        )

    def with_held_out(self) -> TupleData:
        """Return these anchors and, behind them, those that were held out; texts with classes in their first order.

        A test of the user's stays out.
        """
        if isinstance(self.held_out, HeldOutTexts) and self.held_out.whole is not None:
            return self.held_out.whole
        held_out = self.held_out.data if self.held_out else None
        if held_out is None or self.test is not None:
            return replace(self, held_out=None)
        return replace(
            self,
            anchors=[*self.anchors, *held_out.anchors],
            positives=[*self.positives, *held_out.positives],
            negatives=[*self.negatives, *held_out.negatives],
            neutrals=[*self.neutrals, *held_out.neutrals],
            held_out=None,
        )

    def summary(self) -> list[str]:
        """Return lines of text: the numbers of anchors, positives and negatives, and how many rows were left out."""
        positives = sum(map(len, self.positives))
        negatives = sum(map(len, self.negatives))
        of = f" of {len(set(self.classes.values())):,} classes" if self.classes else ""
        lines = [f"{len(self):,} anchors{of} with {positives:,} positives and {negatives:,} negatives"]
        lines += counts_table(self.positives, self.negatives)
        if left_out := self.describe_left_out():
            lines.append(left_out)
        return lines

    def describe_left_out(self) -> str:
        """Return how many rows were left out and why, in words; ``""`` if none was."""
        reasons = [f"{number:,} {reason}" for reason, number in self.left_out.items() if number]
        if not reasons:
            return ""
        return f"left out: {', '.join(reasons)}"


@dataclass(frozen=True, kw_only=True)
class HeldOutAnchors:
    """Anchors that are held out from training, and the texts among which their positives are to be found.

    Attributes:
        data: the anchors with their positives and negatives; none if they are too few.
        candidates: the texts to rank for each anchor, each once; its positives are among them.
        description: what these texts are, and what is trained on of them.
        reason: why no anchor is held out, and what to do; empty if some are.
        is_test: whether they are a test of the user's, which chooses nothing.
    """

    data: TupleData | None = None
    candidates: tuple[str, ...] = ()
    description: str = ""
    reason: str = ""
    is_test: bool = False


@dataclass(frozen=True, kw_only=True)
class HeldOutTexts:
    """Texts with classes that are held out from training, for a classifier that learns from the others.

    Attributes:
        data: the texts as anchors, with their classes; none if they are too few.
        whole: all texts, those of training and those that are held out; none of a test.
        reason: why no text is held out, and what to do; empty if some are.
        is_test: whether they are a test of the user's, which chooses nothing.
    """

    data: TupleData | None = None
    whole: TupleData | None = None
    reason: str = ""
    is_test: bool = False


def tuple_data(groups: Iterable[Group], *, source: str, name: str, left_out: dict[str, int] | None = None) -> TupleData:
    """Return groups as one object; ``left_out`` are counts of rows left out while the groups were read."""
    group_list = list(groups)  # first of all, because reading the groups completes the counts in ``left_out``
    return TupleData(
        anchors=[group.anchor for group in group_list],
        positives=[group.positives for group in group_list],
        negatives=[group.negatives for group in group_list],
        neutrals=[group.neutrals for group in group_list],
        source=source,
        name=name,
        left_out={
            **(left_out or {}),
            "partners given both ways": sum(len(group.conflicts) for group in group_list),
            "repeated rows": sum(group.repeated for group in group_list),
            ITSELF: sum(group.itself for group in group_list),
        },
        conflicts=[conflict for group in group_list for conflict in group.conflicts],
    )


def counts_table(positives: Iterable[Sequence[str]], negatives: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table that counts anchors by their number of positives and negatives.

    The diagonal has the counts of the paper: exactly one of each, two to four of each, five or more of each.

    Source: Dehghan and Amasyali 2022 (SupMPN), Table 1.
    Differs: the table also has the anchors off the diagonal, which the paper leaves out.
    """
    counts = Counter(
        (_bin(len(anchor_positives)), _bin(len(anchor_negatives)))
        for anchor_positives, anchor_negatives in zip(positives, negatives, strict=True)
    )
    table = [["positives", *(f"negatives: {name}" for name in BINS)]]
    table += [[name, *(f"{counts[row, column]:,}" for column in range(4))] for row, name in enumerate(BINS)]
    widths = [max(len(line[column]) for line in table) for column in range(5)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in table]


def _bin(count: int) -> int:
    if count >= 5:
        return 3
    return min(count, 2)


def partners_as_classes(data: TupleData) -> Targets:
    """Return each anchor with each of its partners, labelled by class number: negatives, neutrals, positives from 0.

    DataError if all partners are of the same kind.
    """
    sides = {"contradiction": data.negatives, "neutral": data.neutrals, "entailment": data.positives}
    classes = [name for name, partners in sides.items() if any(partners)]
    if len(classes) < 2:
        raise DataError(
            f"{data.source}: softmax tells classes apart, and there are partners of {', '.join(classes)} only. Give "
            "data with negatives, or take loss info-nce."
        )
    rows = [
        (anchor, partner, label)
        for row, anchor in enumerate(data.anchors)
        for label, name in enumerate(classes)
        for partner in sides[name][row]
    ]
    columns = dict(zip(("sentence1", "sentence2", "label"), map(list, zip(*rows, strict=True)), strict=True))
    summary = f"softmax: {len(rows):,} pairs of {len(classes)} classes ({', '.join(classes)})"
    return Targets(columns, summary, {"classes": len(classes)})
