"""Choose and draw the figures of a report from what was evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from samesense.reports.figures.curves import Curve, learning_curves, sweep
from samesense.reports.figures.distribution import distribution
from samesense.reports.figures.heatmap import Groups, heatmap
from samesense.reports.figures.overview import NARROW, WIDE, ModelScore, overview
from samesense.reports.figures.plane import ModelPoint, plane
from samesense.reports.figures.plot import Plot, Style, style_of
from samesense.reports.grid import ABSENT
from samesense.reports.headline import headlines
from samesense.reports.standing import Ranking
from samesense.reports.store import Run, sweep_points
from samesense.types import Evidence, Result, Scores


def model_styles(models: Sequence[str]) -> dict[str, Style]:
    """Return the style of each model, the same in every figure."""
    return {model: style_of(index) for index, model in enumerate(dict.fromkeys(models))}


def distributions(evidence: Sequence[Evidence], styles: Mapping[str, Style]) -> dict[tuple[str, str], list[Plot]]:
    """Return by suite and data set the distribution of similarities, for data sets with ratings.

    The first of several seeds of a model is drawn.
    """
    by_dataset: dict[tuple[str, str], dict[str, Evidence]] = {}
    for evidence_item in evidence:
        if evidence_item.has_scores:
            by_dataset.setdefault((evidence_item.task, evidence_item.dataset), {}).setdefault(
                evidence_item.model, evidence_item
            )
    return {
        (task, dataset): [_spread(list(models.values()), styles, stem("spread", task, dataset))]
        for (task, dataset), models in by_dataset.items()
    }


def _spread(evidence: Sequence[Evidence], styles: Mapping[str, Style], name: str) -> Plot:
    plot = distribution(evidence, styles=styles, name=name)
    seeds = dict.fromkeys(str(run.seed) for run in evidence if run.seed is not None)
    seeds_note = f" Trained models: seed {' or '.join(seeds)}." if seeds else ""
    return replace(plot, caption=plot.caption + seeds_note)


def planes(results: Sequence[Result], averages: Sequence[Result], styles: Mapping[str, Style]) -> list[Plot]:
    """Return the alignment-uniformity plane of each data set that has both; STS averages follow the names."""
    figures = headlines(results)
    notes, averages_note = _averages(averages)
    plots = []
    for (task, dataset, metric), alignments in figures.items():
        uniformities = figures.get((task, dataset, "uniformity"), {})
        points = [
            ModelPoint(run[0], row.value, uniformities[run].value, notes.get(run[0], ""))
            for run, row in alignments.items()
            if metric == "alignment" and run in uniformities
        ]
        if points:
            plot = plane(points, styles=styles, dataset=dataset, name=stem("plane", dataset))
            plots.append(replace(plot, caption=plot.caption + averages_note))
    return plots


def _averages(averages: Sequence[Result]) -> tuple[dict[str, str], str]:
    """Return the STS averages of each model (means over its seeds), and a sentence that explains them."""
    means: dict[str, dict[str, list[float]]] = {}
    for row in averages:
        if (row.task, row.metric) == ("sts", "spearman"):
            means.setdefault(row.dataset, {}).setdefault(row.model, []).append(100 * row.value)
    models = dict.fromkeys(model for by_model in means.values() for model in by_model)
    notes = {
        model: " / ".join(
            f"{np.mean(by_model[model]):.1f}" if model in by_model else ABSENT for by_model in means.values()
        )
        for model in models
    }
    legend = f" Behind each name: {' / '.join(means)}, Spearman x100." if means else ""
    return notes, legend


def openings(ranking: Ranking | None, styles: Mapping[str, Style]) -> list[Plot]:
    """Return the opening figure of a report, for wide and for narrow screens; empty without a ranking."""
    if ranking is None:
        return []
    measure = ranking.measure
    scores = [
        ModelScore(
            standing.model,
            measure.factor * standing.score,
            measure.factor * standing.low,
            measure.factor * standing.high,
            None if standing.speed is None else standing.speed.median,
            None if standing.speed is None else (standing.speed.low, standing.speed.high),
        )
        for standing in ranking.standings
    ]
    score = f"{measure.label} on {ranking.on}"
    return [
        overview(scores, styles=styles, score=score, name=name, size=size)
        for name, size in (("overview", WIDE), ("overview-narrow", NARROW))
    ]


def heatmaps(scores: Mapping[str, Scores], groups: Groups, origin: str = "sentences by topic") -> list[Plot]:
    """Return the heatmap of chosen sentences; empty if no model scored them. ``origin`` says where they are from.

    Scores are those of every ordered pair of sentences, row by row ``(sentences * sentences,)``.
    """
    size = sum(map(len, groups))
    matrices = {model: similarities.reshape(size, size) for model, similarities in scores.items()}
    if not scores:
        return []
    return [heatmap(matrices, groups, origin)]


def run_figures(runs: Sequence[Run], setting: str | None = None) -> list[Plot]:
    """Return the learning curves of runs that were evaluated on dev, and the sweep over ``setting`` if there is one."""
    curves: list[Curve] = [run.curve for run in runs if run.curve is not None]
    plots = [learning_curves(curves)] if curves else []
    if setting is not None:
        plots.append(sweep(sweep_points(runs, setting), setting=setting))
    return plots


def stem(*words: str) -> str:
    """Return a name for files and identifiers: letters of any script, digits and hyphens."""
    return "".join(sign if sign.isalnum() else "-" for sign in "-".join(words))
