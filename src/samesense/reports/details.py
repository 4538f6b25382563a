"""Details of a report: every row, every comparison, and the pairs on which models differ most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.metrics.correlation import average_ranks
from samesense.reports.content import Content
from samesense.reports.figures.distribution import label_texts
from samesense.reports.grid import ABSENT, Cell
from samesense.reports.markup import Html, element, folded, joined, table
from samesense.reports.verdict import direction, span
from samesense.results.measures import measure_of
from samesense.results.results import WHOLE_SUBSETS
from samesense.types import Evidence, Marked, Pair, Result


def comparison_table(content: Content, suite: str) -> Html:
    """Return all comparisons of a suite, folded; empty if there are none."""
    rows = []
    for comparison in content.comparisons:
        if comparison.task != suite:
            continue
        measure = measure_of(comparison.metric)
        lead = f"{direction(comparison.difference, measure)} {comparison.reference}"
        outcome = {"yes": "significant", "no": "not significant"}.get(
            comparison.finding, f"significant {comparison.finding}"
        )
        numbers = [
            span(comparison.low, comparison.high, measure),
            f"{comparison.p_value:.3g}",
            f"{comparison.adjusted:.3g}",
            comparison.n,
        ]
        rows.append([comparison.model, lead, f"{comparison.dataset}, {measure.label}", *numbers, outcome])
    if not rows:
        return Html("")
    header = ["model", "is", "on", "95 % interval", "p", "p adjusted", "n", "outcome"]
    return folded("Comparisons", table(header, rows, class_="numbers"))


def dataset_details(content: Content, suite: str, dataset: str) -> Html:
    """Return every result of a data set with a column per model, then protocols and times."""
    rows = [row for row in content.results if (row.task, row.dataset) == (suite, dataset)]
    models = list(dict.fromkeys(row.model for row in rows))
    lines = []
    for subset, metric in dict.fromkeys((row.subset, row.metric) for row in rows):
        rows_of_metric = [row for row in rows if (row.subset, row.metric) == (subset, metric)]
        sizes = sorted({row.n for row in rows_of_metric})
        cells = [_value([row for row in rows_of_metric if row.model == model]) for model in models]
        lines.append([subset, measure_of(metric).label, " / ".join(map(str, sizes)), *cells])
    figures = table(["subset", "metric", "n", *models], lines, class_="numbers")
    return joined([figures, folded("Protocols", element("ul", *_protocols(rows)), _times(rows))])


def _protocols(rows: Sequence[Result]) -> list[Html]:
    """Return each protocol once, with the figures that were made by it."""
    protocols: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        if row.subset in WHOLE_SUBSETS:
            figures_of_protocol = protocols.setdefault((row.subset, row.protocol), {})
            figures_of_protocol[f"{row.model}, {measure_of(row.metric).label}"] = None
    return [
        element("li", element("b", "; ".join(figures_of_protocol)), f"; {subset}: {text}")
        for (subset, text), figures_of_protocol in protocols.items()
    ]


def _times(rows: Sequence[Result]) -> Html:
    """Return the seconds of each model in small print, if they were measured."""
    seconds = [f"{row.model} {row.seconds:.2f} s" for row in _first_of_each(rows) if row.seconds is not None]
    if not seconds:
        return Html("")
    return _small(f"Seconds from the pairs to all scores, where no text was encoded before: {', '.join(seconds)}.")


def _small(text: str) -> Html:
    """Return a paragraph in small print; empty for an empty text."""
    if text:
        return element("p", text, class_="note")
    return Html("")


def _value(rows: Sequence[Result]) -> str:
    """Return the value of one model with its interval, or its mean and standard deviation over seeds."""
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
    """Return the pairs that each model ranks worst, and those on which models differ; empty without labels."""
    evidence_of: dict[str, Evidence] = {}
    for evidence in content.evidence:
        if (evidence.task, evidence.dataset) == (suite, dataset) and evidence.has_scores:
            evidence_of.setdefault(evidence.model, evidence)
    if not evidence_of:
        return Html("")
    blocks = []
    for model, evidence in evidence_of.items():
        cases = against_gold(evidence)
        if cases:
            blocks += [element("h3", f"{model} against the gold"), shown_cases(cases, content.marked.get(model))]
    first, *remaining = evidence_of.values()
    for second in remaining:
        if list(first.examples) == list(second.examples):
            cases = against_each_other(first, second)
            if cases:
                blocks += [element("h3", f"{first.model} against {second.model}"), shown_cases(cases)]
    note = f"{PERCENTILES} Pairs are chosen by their difference. Of several seeds the first is shown."
    if any(content.marked.get(model) for model in evidence_of):
        note += f" {SHADES.format('the')}"
    return folded("Cases", _small(note), *blocks)


PERCENTILES = "Percentiles: share of pairs that are less similar, in per cent, by the label, then by each model."
"""Legend for the last column of :func:`shown_cases`."""

SHADES = "The stronger the colour of a word, the more it adds to the score of {} model; underlined ones lower it."
"""Legend for the marked words in :func:`shown_cases`."""


def shown_cases(cases: Sequence[Case], marked: Mapping[Pair, tuple[Marked, Marked]] | None = None) -> Html:
    """Return a table of pairs with their texts, labels and scores; words are shaded by their shares in ``marked``."""
    models = list(cases[0].scores)
    header = ["sentences", "label", *models, "percentiles"]
    rows: list[list[object]] = []
    for case in cases:
        marked_texts = (marked or {}).get(case.texts) or tuple([(text, 0.0)] for text in case.texts)
        most = max((abs(weight) for pieces in marked_texts for _, weight in pieces), default=0.0)
        texts = Html(
            "<br>".join(element("span", *(_shaded(*piece, most) for piece in pieces)) for pieces in marked_texts)
        )
        ranks = [case.gold_rank, *(case.ranks[model] for model in models)]
        percentiles = ", ".join(f"{100 * rank:.0f}" for rank in ranks)
        values = [case.label, *(f"{case.scores[model]:z.3f}" for model in models), percentiles]
        # A phone shows the heading of a column beside each value, as the values stand below the sentences.
        cells = (element("td", value, data_column=name) for name, value in zip(header[1:], values, strict=True))
        rows.append([texts, *cells])
    return table(header, rows, class_="cases")


FAINTEST = 0.05
"""Words whose share is below this fraction of the largest are not marked."""


def _shaded(piece: str, weight: float, most: float) -> Html | str:
    strength = abs(weight) / most if most else 0.0
    if strength < FAINTEST:
        return piece
    return element("mark", piece, style=f"--share:{strength:.2f}", class_="less" if weight < 0 else "")


SHOWN = 5
"""Number of pairs shown of each kind."""


@dataclass(frozen=True)
class Case:
    """A pair with its rank by the gold labels and by each model."""

    texts: tuple[str, str]  # the two sentences
    label: str  # reference similarity, on the scale of the data; of two labels yes or no
    gold_rank: float  # rank among all pairs as a fraction, from 0 (least similar) to 1
    scores: dict[str, float]  # similarity by model
    ranks: dict[str, float]  # rank among all pairs by model


def against_gold(evidence: Evidence, *, most: int = SHOWN) -> list[Case]:
    """Return the pairs whose rank by the model is farthest from that by the gold labels, each pair of sentences once.

    Pairs of equal rank are left out.
    """
    ranks = _ranks(evidence.values)
    return _chosen([evidence], [ranks], np.abs(ranks - _ranks(np.asarray(evidence.labels))), most)


def against_each_other(first: Evidence, second: Evidence, *, most: int = SHOWN) -> list[Case]:
    """Return the pairs that two models rank farthest from each other, each pair of sentences once.

    Both models must have scored the same pairs in the same order; DataError if they did not.
    """
    if list(first.examples) != list(second.examples):
        raise DataError(f"{first.model} and {second.model} were evaluated on different pairs of {first.dataset}.")
    first_ranks = _ranks(first.values)
    second_ranks = _ranks(second.values)
    return _chosen([first, second], [first_ranks, second_ranks], np.abs(first_ranks - second_ranks), most)


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the average rank of each value as a fraction between 0 and 1 ``(n,)``."""
    ranks: npt.NDArray[np.float64] = (average_ranks(values) - 0.5) / len(values)
    return ranks


def _chosen(
    evidence: Sequence[Evidence], ranks: Sequence[npt.NDArray[np.float64]], distance: npt.NDArray[np.float64], most: int
) -> list[Case]:
    """Return up to ``most`` pairs of the largest distance, the largest first."""
    labels = np.asarray(evidence[0].labels)
    gold = _ranks(labels)
    texts_of_labels = label_texts(labels)
    cases: dict[tuple[str, ...], Case] = {}
    for index in np.argsort(-distance, kind="stable"):
        if len(cases) == most or distance[index] == 0:
            break
        pair = evidence[0].examples[index]
        cases.setdefault(
            tuple(sorted(pair)),
            Case(
                (pair[0], pair[1]),
                texts_of_labels[labels[index]],
                float(gold[index]),
                {model_evidence.model: float(model_evidence.values[index]) for model_evidence in evidence},
                {
                    model_evidence.model: float(model_ranks[index])
                    for model_evidence, model_ranks in zip(evidence, ranks, strict=True)
                },
            ),
        )
    return list(cases.values())
