"""Which figures a report has, given what was evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from samesense.reports.figures.curves import Curve, learning_curves, sweep
from samesense.reports.figures.distribution import distribution
from samesense.reports.figures.heatmap import Groups, heatmap
from samesense.reports.figures.overview import NARROW, WIDE, Place, overview
from samesense.reports.figures.plane import ModelPoint, plane
from samesense.reports.figures.plot import Plot, Style, style_of
from samesense.reports.grid import ABSENT
from samesense.reports.headline import headlines
from samesense.reports.standing import Ranking
from samesense.reports.store import Run, sweep_points
from samesense.types import Evidence, Result, Scores


def model_styles(models: Sequence[str]) -> dict[str, Style]:
    """Return for each model the look that it has in every figure."""
    return {model: style_of(at) for at, model in enumerate(dict.fromkeys(models))}


def distributions(evidence: Sequence[Evidence], styles: Mapping[str, Style]) -> dict[tuple[str, str], list[Plot]]:
    """Return for each suite and data set with ratings how the similarities of each model are spread.

    Of several seeds of a model the first is drawn.
    """
    found: dict[tuple[str, str], dict[str, Evidence]] = {}
    for one in evidence:
        if one.has_scores:
            found.setdefault((one.task, one.dataset), {}).setdefault(one.model, one)
    return {
        (task, dataset): [_spread(list(models.values()), styles, stem("spread", task, dataset))]
        for (task, dataset), models in found.items()
    }


def _spread(evidence: Sequence[Evidence], styles: Mapping[str, Style], name: str) -> Plot:
    drawn = distribution(evidence, styles=styles, name=name)
    seeds = dict.fromkeys(str(one.seed) for one in evidence if one.seed is not None)
    said = f" Trained models: seed {' or '.join(seeds)}." if seeds else ""
    return replace(drawn, caption=drawn.caption + said)


def planes(results: Sequence[Result], averages: Sequence[Result], styles: Mapping[str, Style]) -> list[Plot]:
    """Return the alignment-uniformity plane of each data set that has both; STS averages stand behind the names."""
    figures = headlines(results)
    notes, said = _averages(averages)
    plots = []
    for (task, dataset, metric), alignments in figures.items():
        uniformities = figures.get((task, dataset, "uniformity"), {})
        points = [
            ModelPoint(run[0], row.value, uniformities[run].value, notes.get(run[0], ""))
            for run, row in alignments.items()
            if metric == "alignment" and run in uniformities
        ]
        if points:
            drawn = plane(points, styles=styles, dataset=dataset, name=stem("plane", dataset))
            plots.append(replace(drawn, caption=drawn.caption + said))
    return plots


def _averages(averages: Sequence[Result]) -> tuple[dict[str, str], str]:
    """Return the STS averages of each model, the mean over its seeds, and a sentence about what they are."""
    means: dict[str, dict[str, list[float]]] = {}
    for row in averages:
        if (row.task, row.metric) == ("sts", "spearman"):
            means.setdefault(row.dataset, {}).setdefault(row.model, []).append(100 * row.value)
    models = dict.fromkeys(model for own in means.values() for model in own)
    notes = {
        model: " / ".join(f"{np.mean(own[model]):.1f}" if model in own else ABSENT for own in means.values())
        for model in models
    }
    return notes, f" Behind each name: {' / '.join(means)}, Spearman x100." if means else ""


def openings(ranking: Ranking | None, styles: Mapping[str, Style]) -> list[Plot]:
    """Return the figure that a report opens with, for wide and for narrow screens; none without a ranking."""
    if ranking is None:
        return []
    measure = ranking.measure
    places = [
        Place(
            one.model,
            measure.factor * one.score,
            measure.factor * one.low,
            measure.factor * one.high,
            None if one.speed is None else one.speed.median,
            None if one.speed is None else (one.speed.low, one.speed.high),
        )
        for one in ranking.places
    ]
    score = f"{measure.label} on {ranking.on}"
    return [
        overview(places, styles=styles, score=score, name=name, size=size)
        for name, size in (("overview", WIDE), ("overview-narrow", NARROW))
    ]


def heatmaps(scores: Mapping[str, Scores], groups: Groups, origin: str = "sentences by topic") -> list[Plot]:
    """Return the heatmap of chosen sentences, if any model scored them; ``origin`` says where they are from.

    Scores are those of every ordered pair of sentences, row by row ``(sentences * sentences,)``.
    """
    size = sum(map(len, groups))
    matrices = {model: own.reshape(size, size) for model, own in scores.items()}
    return [heatmap(matrices, groups, origin)] if scores else []


def run_figures(runs: Sequence[Run], setting: str | None = None) -> list[Plot]:
    """Return the learning curves of runs that were evaluated on dev, and the sweep over a setting if one is named."""
    curves: list[Curve] = [run.curve for run in runs if run.curve is not None]
    plots = [learning_curves(curves)] if curves else []
    if setting is not None:
        plots.append(sweep(sweep_points(runs, setting), setting=setting))
    return plots


def stem(*words: str) -> str:
    """Return a name for files and identifiers: letters of any script, digits and hyphens."""
    return "".join(sign if sign.isalnum() else "-" for sign in "-".join(words))
