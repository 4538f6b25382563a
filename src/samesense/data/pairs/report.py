"""The report on labelled pairs, as data and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from samesense.data.columns.labels import Kind
from samesense.data.conflicts import Conflict, describe_conflicts
from samesense.data.conventions.numbers import number_text
from samesense.data.conventions.scales import Scale
from samesense.failures import abridged
from samesense.results.shown import Shown

_MOST_SUBSETS = 10
"""Most subsets that a report lists."""


@dataclass(frozen=True, kw_only=True, repr=False)
class DataReport(Shown):
    """What :func:`~samesense.data.examine` says of labelled pairs.

    Attributes:
        name: short name of the data.
        sha256: fingerprint of its content.
        rows: number of pairs.
        kind: what the labels are.
        scale: lowest and highest value a label can take, where known.
        label_quantiles: ``min``, ``25%``, ``50%``, ``75%`` and ``max`` of the labels.
        label_counts: rows of each label, where there are at most 12 distinct ones.
        positive_share: share of the rows with label 1, for binary labels.
        distinct_sentences: number of different texts on either side.
        length_unit: ``"words"``, or ``"characters"`` where most sentences are in a script without spaces.
        words_median: median length of a sentence; a text in such a script counts its characters.
        words_p99: 99th percentile of the same.
        duplicate_pairs: rows that repeat an earlier pair, in either order.
        conflicting_pairs: different pairs, in either order, that occur with more than one label.
        conflicts: the rows of these pairs.
        equal_pairs: rows whose two sentences are the same.
        subsets: number of rows of each subset, where the data name subsets.
        overlaps: for each other data set, how many different pairs are also in it.
        shared_sentences: for each other data set, how many different sentences are also in it, in any pair.
        dropped: bad rows left out on request.
        dropped_unlabelled: rows left out because they are marked as having no label.
        warnings: what a user should look at.
        read_as: what the data were taken for, why, and what a method makes of them; empty if they were read before.
        sure: whether column names or the file's form decide the kind; otherwise it is a guess from the cells.
    """

    name: str
    sha256: str
    rows: int
    kind: Kind
    scale: Scale | None
    label_quantiles: dict[str, float]
    label_counts: dict[str, int] | None
    positive_share: float | None
    distinct_sentences: int
    length_unit: str
    words_median: float
    words_p99: float
    duplicate_pairs: int
    conflicting_pairs: int
    conflicts: list[Conflict]
    equal_pairs: int
    subsets: dict[str, int] | None
    overlaps: dict[str, int]
    shared_sentences: dict[str, int]
    dropped: int
    dropped_unlabelled: int
    warnings: list[str]
    read_as: str = ""
    sure: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON types."""
        # JSON has no tuples: the scale becomes a list.
        content = asdict(self)
        content["scale"] = None if self.scale is None else list(self.scale)
        return content

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, *, all_rows: bool = False) -> list[str]:
        """Return the report as text: counts, warnings, and the rows that contradict each other (some, or all)."""
        return [*_report_lines(self), *describe_conflicts(self.conflicts, all_rows=all_rows)]


def _report_lines(report: DataReport) -> list[str]:
    quantiles = {name: number_text(value) for name, value in report.label_quantiles.items()}
    kind = "inference" if report.kind == "nli" else report.kind
    lines = [
        f"{report.name}: {report.rows} {kind} pairs, labels {quantiles['min']} to {quantiles['max']} "
        f"(median {report.label_quantiles['50%']:.1f})"
    ]
    if report.read_as:
        lines.append(f"  {report.read_as}")
    lines.append(f"  labels: {_describe_labels(report, quantiles)}")
    if report.scale is not None:
        lines.append(f"  scale: {' to '.join(map(number_text, report.scale))}")
    lines.append(texts_line(vars(report)))
    lines.append(
        f"  repeated pairs: {report.duplicate_pairs}; pairs with different labels: {report.conflicting_pairs}; "
        f"pairs of equal sentences: {report.equal_pairs}"
    )
    if report.subsets is not None:
        lines.append(f"  subsets: {_list_counts(report.subsets, _MOST_SUBSETS)}")
    lines += [
        f"  also in {name}: {pairs} pairs, {report.shared_sentences[name]} of {report.distinct_sentences} sentences"
        for name, pairs in report.overlaps.items()
    ]
    if report.dropped or report.dropped_unlabelled:
        lines.append(f"  left out: {report.dropped} bad rows, {report.dropped_unlabelled} without a label")
    lines += [f"  warning: {warning}" for warning in report.warnings]
    return lines


def _describe_labels(report: DataReport, quantiles: Mapping[str, str]) -> str:
    if report.label_counts is None:
        return ", ".join(f"{name} {value}" for name, value in quantiles.items())
    fraction = report.positive_share
    positive = "" if fraction is None else f" ({100 * fraction:.1f} % positive)"
    return _list_counts(report.label_counts, len(report.label_counts)) + positive


def _list_counts(counts: Mapping[str, int], limit: int) -> str:
    return abridged([f"{name or '(none)'}: {count}" for name, count in counts.items()], limit)


def texts_line(report: Mapping[str, Any]) -> str:
    """Return the result of :func:`describe_texts` as a line of text."""
    return (
        f"  sentences: {report['distinct_sentences']} distinct; {report['length_unit']}: median "
        f"{number_text(report['words_median'])}, 99 % have at most {number_text(report['words_p99'])}"
    )
