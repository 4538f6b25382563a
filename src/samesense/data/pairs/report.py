"""The report on labelled pairs, as plain data and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from samesense.data.formats.labels import Kind
from samesense.data.formats.scale import Scale, number_text

_MOST_SUBSETS = 10


@dataclass(frozen=True, kw_only=True)
class DataReport:
    """What ``examine`` found.

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
        conflicting_pairs: different pairs, in either order, that stand with more than one label.
        equal_pairs: rows whose two sentences are the same.
        subsets: rows of each part of the data, where it names parts.
        overlaps: for each other data set, how many different pairs are also in it.
        dropped: bad rows left out on request.
        dropped_unlabelled: rows left out because they are marked as having no label.
        warnings: what a user should look at.
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
    equal_pairs: int
    subsets: dict[str, int] | None
    overlaps: dict[str, int]
    dropped: int
    dropped_unlabelled: int
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON types."""
        content = asdict(self)
        content["scale"] = None if self.scale is None else list(self.scale)
        return content

    def lines(self) -> list[str]:
        """Return the report for people, the warnings last."""
        return _report_lines(self.to_dict())


def _report_lines(report: Mapping[str, Any]) -> list[str]:
    quantiles = {name: number_text(value) for name, value in report["label_quantiles"].items()}
    kind = {"nli": "inference", "triple": "triple"}.get(report["kind"], report["kind"])
    lines = [
        f"{report['name']}: {report['rows']} {kind} pairs, labels {quantiles['min']} to {quantiles['max']} "
        f"(median {report['label_quantiles']['50%']:.1f})"
    ]
    lines.append(f"  labels: {_labels(report, quantiles)}")
    if report["scale"] is not None:
        lines.append(f"  scale: {' to '.join(number_text(end) for end in report['scale'])}")
    lines.append(
        f"  sentences: {report['distinct_sentences']} distinct; {report['length_unit']}: median "
        f"{number_text(report['words_median'])}, 99 % have at most {number_text(report['words_p99'])}"
    )
    lines.append(
        f"  repeated pairs: {report['duplicate_pairs']}; pairs with different labels: {report['conflicting_pairs']}; "
        f"pairs of equal sentences: {report['equal_pairs']}"
    )
    if report["subsets"] is not None:
        lines.append(f"  subsets: {_counts(report['subsets'], _MOST_SUBSETS)}")
    lines += [f"  pairs also in {name}: {count}" for name, count in report["overlaps"].items()]
    if report["dropped"] or report["dropped_unlabelled"]:
        lines.append(f"  left out: {report['dropped']} bad rows, {report['dropped_unlabelled']} without a label")
    lines += [f"  warning: {warning}" for warning in report["warnings"]]
    return lines


def _labels(report: Mapping[str, Any], quantiles: Mapping[str, str]) -> str:
    if report["label_counts"] is None:
        return ", ".join(f"{name} {value}" for name, value in quantiles.items())
    share = report["positive_share"]
    positive = "" if share is None else f" ({100 * share:.1f} % positive)"
    return _counts(report["label_counts"], len(report["label_counts"])) + positive


def _counts(counts: Mapping[str, int], most: int) -> str:
    shown = [f"{name or '(none)'}: {count}" for name, count in list(counts.items())[:most]]
    hidden = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {hidden} more" if hidden else "")
