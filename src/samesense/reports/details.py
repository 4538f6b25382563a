"""The long part of a report: every row, every comparison, and pairs that show where models differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.metrics.correlation import average_ranks
from samesense.reports.content import Content
from samesense.reports.grid import ABSENT, Cell
from samesense.reports.markup import Html, element, folded, joined, table
from samesense.reports.verdict import direction, span
from samesense.results import WHOLE_SUBSETS, measure_of
from samesense.types import Evidence, Marked, Pair, Result


def comparison_table(content: Content, suite: str) -> Html:
    """Return all comparisons of a suite, folded; nothing if there are none."""
    rows = []
    for one in content.comparisons:
        if one.task != suite:
            continue
        measure = measure_of(one.metric)
        lead = f"{direction(one.difference, measure)} {one.reference}"
        outcome = {"yes": "significant", "no": "not significant"}.get(one.finding, f"significant {one.finding}")
        numbers = [span(one.low, one.high, measure), f"{one.p_value:.3g}", f"{one.adjusted:.3g}", one.n]
        rows.append([one.model, lead, f"{one.dataset}, {measure.label}", *numbers, outcome])
    if not rows:
        return Html("")
    header = ["model", "is", "on", "95 % interval", "p", "p adjusted", "n", ""]
    return folded("Comparisons", table(header, rows, class_="numbers"))


def dataset_details(content: Content, suite: str, dataset: str) -> Html:
    """Return every row of a data set, model beside model, then protocols and times."""
    rows = [row for row in content.results if (row.task, row.dataset) == (suite, dataset)]
    models = list(dict.fromkeys(row.model for row in rows))
    lines = []
    for subset, metric in dict.fromkeys((row.subset, row.metric) for row in rows):
        own = [row for row in rows if (row.subset, row.metric) == (subset, metric)]
        sizes = sorted({row.n for row in own})
        cells = [_value([row for row in own if row.model == model]) for model in models]
        lines.append([subset, measure_of(metric).label, " / ".join(map(str, sizes)), *cells])
    protocols: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        if row.subset in WHOLE_SUBSETS:
            of = protocols.setdefault((row.subset, row.protocol), {})
            of[f"{row.model}, {measure_of(row.metric).label}"] = None
    seconds = [f"{row.model} {row.seconds:.2f} s" for row in _first_of_each(rows) if row.seconds is not None]
    notes = [
        element("li", element("b", "; ".join(of)), f"; {subset}: {text}") for (subset, text), of in protocols.items()
    ]
    counted = "Seconds from the pairs to all scores, where no text was encoded before: "
    took = _small(f"{counted}{', '.join(seconds)}." if seconds else "")
    shown = table(["subset", "metric", "n", *models], lines, class_="numbers")
    return joined([shown, folded("Protocols", element("ul", *notes), took)])


def _small(text: str) -> Html:
    """Return a paragraph in small print; nothing for no text."""
    return element("p", text, class_="note") if text else Html("")


def _value(rows: Sequence[Result]) -> str:
    """Return the value of one model, or its mean and deviation over seeds."""
    if not rows:
        return ABSENT
    measure = measure_of(rows[0].metric)
    cell = Cell.of(rows)
    return " ".join(filter(None, [cell.text(measure), cell.interval_text(measure)]))


def _first_of_each(rows: Sequence[Result]) -> list[Result]:
    """Return the first row of each model and seed."""
    first: dict[tuple[str, int | None], Result] = {}
    for row in rows:
        first.setdefault((row.model, row.seed), row)
    return list(first.values())


def cases_table(content: Content, suite: str, dataset: str) -> Html:
    """Return the pairs that each model places worst, and those on which models differ; nothing without labels."""
    found: dict[str, Evidence] = {}
    for one in content.evidence:
        if (one.task, one.dataset) == (suite, dataset) and one.has_scores:
            found.setdefault(one.model, one)
    if not found:
        return Html("")
    parts = []
    for model, one in found.items():
        cases = against_gold(one)
        if cases:
            parts += [element("h3", f"{model} against the gold"), shown_cases(cases, content.marked.get(model))]
    first, *others = found.values()
    for other in others:
        if list(first.examples) == list(other.examples):
            cases = against_each_other(first, other)
            parts += [element("h3", f"{first.model} against {other.model}"), shown_cases(cases)] if cases else []
    note = (
        "Percentile: share of pairs that are less similar, in per cent; pairs are chosen by its difference. Of "
        "several seeds the first is shown."
    )
    if any(content.marked.get(model) for model in found):
        note += f" {SHADES.format('the')}"
    return folded("Cases", _small(note), *parts)


SHADES = "The darker a word, the more it adds to the score of {} model; underlined ones lower it."
"""What the marks of words in :func:`shown_cases` mean."""


def shown_cases(cases: Sequence[Case], marked: Mapping[Pair, tuple[Marked, Marked]] | None = None) -> Html:
    """Return pairs with their texts, labels and scores as a table, and words shaded by shares that are known."""
    models = list(cases[0].scores)
    header = ["sentences", "gold", "percentile", *(word for model in models for word in (model, "percentile"))]
    rows = []
    for case in cases:
        known = (marked or {}).get(case.texts) or tuple([(text, 0.0)] for text in case.texts)
        most = max((abs(share) for pieces in known for _, share in pieces), default=0.0)
        texts = Html("<br>".join(element("span", *(_shaded(*piece, most) for piece in pieces)) for pieces in known))
        row: list[object] = [texts, f"{case.gold:z.2f}", f"{100 * case.gold_rank:.0f}"]
        for model in models:
            row += [f"{case.scores[model]:z.3f}", f"{100 * case.ranks[model]:.0f}"]
        rows.append(row)
    return table(header, rows, class_="cases")


FAINTEST = 0.05
"""Share of a word, of the largest one, below which it is not marked."""


def _shaded(piece: str, share: float, most: float) -> Html | str:
    strength = abs(share) / most if most else 0.0
    if strength < FAINTEST:
        return piece
    return element("mark", piece, style=f"--share:{strength:.2f}", class_="less" if share < 0 else "")


SHOWN = 5
"""Pairs that are shown of each kind."""


@dataclass(frozen=True)
class Case:
    """A pair and the rank that the gold labels and each model give it."""

    texts: tuple[str, str]  # the two sentences
    gold: float  # reference similarity, on the scale of the data
    gold_rank: float  # its rank among all pairs as a share, from 0 (least similar) to 1
    scores: dict[str, float]  # similarity by model
    ranks: dict[str, float]  # rank among all pairs by model


def against_gold(evidence: Evidence, *, most: int = SHOWN) -> list[Case]:
    """Return the pairs that a model ranks farthest from where the gold labels do, each pair of sentences once.

    Pairs that both rank alike are none.
    """
    ranks = _ranks(evidence.values)
    return _chosen([evidence], [ranks], np.abs(ranks - _ranks(np.asarray(evidence.labels))), most)


def against_each_other(first: Evidence, second: Evidence, *, most: int = SHOWN) -> list[Case]:
    """Return the pairs that two models rank farthest from each other, each pair of sentences once.

    Both evidences are on the same pairs in the same order.
    """
    if list(first.examples) != list(second.examples):
        raise DataError(f"{first.model} and {second.model} were evaluated on different pairs of {first.dataset}.")
    one, other = _ranks(first.values), _ranks(second.values)
    return _chosen([first, second], [one, other], np.abs(one - other), most)


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the average rank of each value as a share ``(n,)``, between 0 and 1."""
    ranks: npt.NDArray[np.float64] = (average_ranks(values) - 0.5) / len(values)
    return ranks


def _chosen(
    evidence: Sequence[Evidence], ranks: Sequence[npt.NDArray[np.float64]], distance: npt.NDArray[np.float64], most: int
) -> list[Case]:
    labels = np.asarray(evidence[0].labels)
    gold = _ranks(labels)
    found: dict[tuple[str, ...], Case] = {}
    for at in np.argsort(-distance, kind="stable"):
        if len(found) == most or distance[at] == 0:
            break
        pair = evidence[0].examples[at]
        found.setdefault(
            tuple(sorted(pair)),
            Case(
                (pair[0], pair[1]),
                float(labels[at]),
                float(gold[at]),
                {one.model: float(one.values[at]) for one in evidence},
                {one.model: float(own[at]) for one, own in zip(evidence, ranks, strict=True)},
            ),
        )
    return list(found.values())
