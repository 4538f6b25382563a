"""Rank models by one figure each, in which all suites weigh equally, with intervals and tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

from samesense.errors import DataError
from samesense.evaluation.run import Cost, EvaluatedModel
from samesense.evaluation.suites import SUITES
from samesense.metrics.seeds import Resampled, compare_resampled, interval_of_runs, mean_of_sets, resampled_figures
from samesense.reports.headline import headlines
from samesense.reports.significance import (
    SAMPLES,
    Comparison,
    adjusted_together,
    aligned,
    in_seed_order,
    runs_behind,
    seed_order,
)
from samesense.results.measures import Measure, measure_of
from samesense.results.results import mean_name
from samesense.types import Evidence, Result

SEVERAL = "mean score"
"""The metric of a mean over suites of different metrics."""

MEAN_SCORE = Measure(SEVERAL)


RunsBySet = dict[str, dict[str, list[Evidence]]]
"""The runs of each model, by data set and model."""

ExampleLists = dict[tuple[Any, ...], tuple[int, int]]
"""Number and size of each distinct list of examples; several data sets may share a list."""


class SuiteEvidence(NamedTuple):
    """A suite and the runs behind its figures."""

    suite: str
    metric: str  # its first main metric of which more is better
    sets: RunsBySet


@dataclass(frozen=True, kw_only=True)
class Standing(Cost):
    """The score of one model with its interval, and its cost, where it was measured."""

    model: str
    score: float  # mean over its seeds and the data sets, in the natural unit
    low: float  # lower end of its 95 % interval
    high: float  # upper end of it
    seeds: int  # runs behind it
    computed: str = ""  # empty where nothing was measured


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """A suite in which another model has a higher figure than the model in question."""

    suite: str
    metric: str
    on: str  # what the figure was measured on, in words
    comparison: Comparison  # of the model in question with the highest one there


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Models by their mean figure, the best first."""

    suite: str  # suites that count in the figure, as in "sts and probes"
    metric: str  # of the figure; SEVERAL if the suites have different ones
    datasets: tuple[str, ...]  # the figure is their mean
    n: int  # distinct examples in all of them
    standings: tuple[Standing, ...]
    unranked: tuple[str, ...]  # models with a run that lacks a figure on one of the data sets
    against_reference: Mapping[str, Comparison]  # by model, of every ranked one but the reference
    reference: str
    best_others: tuple[Comparison, ...]  # of the best with each other model
    suites: tuple[str, ...] = ()  # all suites whose figures were compared
    counted: tuple[str, ...] = ()  # those that enter the mean
    elsewhere: Mapping[str, tuple[Elsewhere, ...]] = field(default_factory=dict)  # by model, where it is not highest

    @property
    def measure(self) -> Measure:
        """How the figure is shown."""
        if self.metric == SEVERAL:
            return MEAN_SCORE
        return measure_of(self.metric)

    @property
    def pairs(self) -> int:
        """Pairs of ranked models, whose comparisons are adjusted together."""
        return len(self.standings) * (len(self.standings) - 1) // 2

    @property
    def on(self) -> str:
        """What the figure was measured on, in words."""
        if len(self.counted) > 1:
            return f"the mean of {len(self.counted)} suites ({', '.join(self.counted)})"
        return _measured_on(self.suite, self.datasets)

    @property
    def of_means(self) -> list[Comparison]:
        """The comparisons with the reference under the name that tables give the mean; empty for a single data set."""
        name = mean_name(len(self.datasets))
        return [
            replace(comparison, dataset=name)
            for comparison in self.against_reference.values()
            if len(self.datasets) > 1
        ]


def rank(
    evidence: Sequence[Evidence],
    results: Sequence[Result],
    models: Sequence[EvaluatedModel] = (),
    *,
    against: str | None = None,
    failed: Collection[str] = (),
) -> Ranking | None:
    """Rank models by their mean over suites; return ``None`` if no figure says which is better.

    The figure of a suite is the mean of its first main metric over its data sets and over the seeds of a model. Suites
    weigh equally, however many sets they have. A suite that some model cannot do (a cross-encoder has no transfer) is
    not counted for any model. A model that ``failed``, or with a run that lacks a set, is not ranked.

    Data sets are resampled independently unless they have the same examples; all models are resampled on the same
    examples. Each model is compared with the reference (``against``, by default the first model), with p-values
    adjusted by Holm over these comparisons. The best is compared with each of the others, with p-values adjusted by
    Holm over all pairs of models, because it is chosen by its figure.

    Source: Davison and Hinkley (1997), "Bootstrap Methods and their Application", section 3.2, for several samples;
        Holm (1979).

    Raises:
        DataError: if no model has a figure on every data set, or models were evaluated on different examples.
    """
    suites = _suites(evidence, results)
    if not suites:
        return None
    names = list(dict.fromkeys([model.name for model in models] + [row.model for row in results]))
    counted = _counted(suites, names, failed)
    context = _context_of_means(counted, names, models)
    ranked = list(context.seeds)
    standings = _standings(context.resampled, models, _table_intervals(counted, results))
    reference = against or names[0]
    elsewhere = {}
    if len(suites) > 1:
        elsewhere = {name: tuple(filter(None, (_elsewhere(name, suite) for suite in suites))) for name in ranked}
    return Ranking(
        suite=context.suite,
        metric=context.metric,
        datasets=context.datasets,
        n=context.n,
        standings=tuple(standings),
        unranked=tuple(name for name in names if name not in context.seeds),
        against_reference=_against(context, ranked, reference),
        reference=reference,
        best_others=_of_the_best(context, [standing.model for standing in standings]),
        suites=tuple(suite.suite for suite in suites),
        counted=tuple(suite.suite for suite in counted),
        elsewhere=elsewhere,
    )


def _context_of_means(
    counted: Sequence[SuiteEvidence], names: Sequence[str], models: Sequence[EvaluatedModel]
) -> _Context:
    """Return the means of the models over suites, resampled; DataError if no model has a figure on every data set."""
    datasets = tuple(dict.fromkeys(dataset for suite in counted for dataset in suite.sets))
    runs_by_suite = [suite.sets for suite in counted]
    seeds = _seeds_on_every_set(runs_by_suite, names, models)
    if not seeds:
        raise DataError(
            f"no model has a figure on each of {', '.join(datasets)}, and means of different sets say nothing."
        )
    resampled, examples = _resampled(runs_by_suite, list(seeds))
    metrics = {suite.metric for suite in counted}
    return _Context(
        suite=" and ".join(suite.suite for suite in counted),
        metric=metrics.pop() if len(metrics) == 1 else SEVERAL,
        datasets=datasets,
        n=examples,
        resampled=resampled,
        seeds=seeds,
    )


def _counted(suites: Sequence[SuiteEvidence], names: Sequence[str], failed: Collection[str]) -> list[SuiteEvidence]:
    """Return the suites that every model can do; all of them if there is none."""
    able = [name for name in names if name not in failed]
    counted = [suite for suite in suites if all(any(name in runs for runs in suite.sets.values()) for name in able)]
    return counted or list(suites)


def _seeds_on_every_set(
    suites: Sequence[RunsBySet], names: Sequence[str], models: Sequence[EvaluatedModel] = ()
) -> dict[str, tuple[int | None, ...]]:
    """Return the seeds of each model that has the same ones on every data set; other models are left out."""
    seeds = {name: {_seeds(runs, name) for sets in suites for runs in sets.values()} for name in names}
    # A run that failed on every data set appears in none of them, but among the models.
    for name in {model.name for model in models}:
        seeds[name].add(tuple(sorted({model.seed for model in models if model.name == name}, key=seed_order)))
    return {name: seeds[name].pop() for name in names if len(seeds[name]) == 1 and () not in seeds[name]}


def _standings(
    resampled: Mapping[str, Resampled],
    models: Sequence[EvaluatedModel],
    table_intervals: Mapping[str, tuple[float, float]],
) -> list[Standing]:
    """Return the standing of each model, the best first.

    An interval that the tables show is used as it is, so that a figure has one interval throughout a report.
    """
    # Reversed, so that the first of several seeds wins.
    measured = {model.name: model for model in reversed(models)}
    standings = []
    for name, figures in resampled.items():
        low, high = table_intervals.get(name) or interval_of_runs(figures)
        cost = measured[name].cost if name in measured else None
        standings.append(
            Standing(
                model=name,
                score=float(figures.figures.mean()),
                low=low,
                high=high,
                seeds=len(figures.figures),
                **({} if cost is None else vars(cost)),
            )
        )
    return sorted(standings, key=lambda standing: -standing.score)


def _of_the_best(context: _Context, names: Sequence[str]) -> tuple[Comparison, ...]:
    """Compare the first model with each of the others, p-values adjusted by Holm over all pairs of models."""
    comparisons = adjusted_together([context.compare(model, rival) for model, rival in combinations(names, 2)])
    return tuple(comparison for comparison in comparisons if comparison.model == names[0])


def _measured_on(suite: str, datasets: Sequence[str]) -> str:
    if len(datasets) == 1:
        return datasets[0]
    return f"the mean of {len(datasets)} {suite} sets"


def _suites(evidence: Sequence[Evidence], results: Sequence[Result]) -> list[SuiteEvidence]:
    """Return each suite with its first main metric of which more is better, and the runs behind its figures."""
    figures = headlines(results)
    suites: dict[str, SuiteEvidence] = {}
    for suite, metric in dict.fromkeys((key[0], key[2]) for key in figures):
        main = suite in SUITES and metric in SUITES[suite].metrics and measure_of(metric).better == "higher"
        if not main:
            continue
        keys = [key for key in figures if (key[0], key[2]) == (suite, metric)]
        sets = {key[1]: runs_behind(key, figures[key], evidence) for key in keys}
        sets = {dataset: runs for dataset, runs in sets.items() if runs}
        if sets:
            suites.setdefault(suite, SuiteEvidence(suite, metric, sets))
    return list(suites.values())


def _elsewhere(model: str, suite: SuiteEvidence) -> Elsewhere | None:
    """Compare a model with the highest of a suite; ``None`` if it is the highest itself, or has no figure there.

    Models that lack a figure on one of the sets are left out, and so is a suite whose models cannot be compared.
    """
    names = list(dict.fromkeys(name for runs in suite.sets.values() for name in runs))
    seeds = _seeds_on_every_set([suite.sets], names)
    if model not in seeds or len(seeds) < 2:
        return None
    datasets = tuple(suite.sets)
    try:
        resampled, examples = _resampled([suite.sets], list(seeds))
        context = _Context(suite.suite, suite.metric, datasets, examples, resampled, seeds)
        highest = max(seeds, key=lambda name: float(resampled[name].figures.mean()))
        comparison = context.compare(model, highest) if highest != model else None
    except DataError:  # reported where the suite itself is shown
        return None
    if comparison is None or comparison.difference >= 0:
        return None
    on = _measured_on(suite.suite, datasets)
    return Elsewhere(suite=suite.suite, metric=suite.metric, on=on, comparison=comparison)


def _table_intervals(suites: Sequence[SuiteEvidence], results: Sequence[Result]) -> dict[str, tuple[float, float]]:
    """Return the intervals that the tables show of the same figures: of one run on the one data set of one suite."""
    if len(suites) > 1 or len(suites[0].sets) > 1:
        return {}
    [dataset] = suites[0].sets
    rows = headlines(results).get((suites[0].suite, dataset, suites[0].metric), {})
    runs_of = Counter(model for model, _ in rows)
    return {
        model: (row.low, row.high)
        for (model, _), row in rows.items()
        if runs_of[model] == 1 and row.low is not None and row.high is not None
    }


def _resampled(suites: Sequence[RunsBySet], names: Sequence[str]) -> tuple[dict[str, Resampled], int]:
    """Return for each model the mean over suites, as it is and resampled, and the number of examples."""
    example_lists: ExampleLists = {}
    means: dict[str, list[Resampled]] = {name: [] for name in names}
    for sets in suites:
        by_model: dict[str, list[Resampled]] = {name: [] for name in names}
        for runs in sets.values():
            for name, figures in _resampled_set(runs, names, example_lists).items():
                by_model[name].append(figures)
        for name, figures_of_sets in by_model.items():
            means[name].append(mean_of_sets(figures_of_sets))
    examples = sum(size for _, size in example_lists.values())
    return {name: mean_of_sets(suite_means) for name, suite_means in means.items()}, examples


def _resampled_set(
    runs_of: Mapping[str, Sequence[Evidence]], names: Sequence[str], example_lists: ExampleLists
) -> dict[str, Resampled]:
    """Return the resampled figures of each model on one data set.

    ``example_lists`` numbers each list of examples; the number seeds the resamples, so equal lists are resampled alike.
    """
    ordered = {name: in_seed_order(runs_of[name]) for name in names}
    runs = [run for model_runs in ordered.values() for run in model_runs]
    values, labels = aligned(runs)
    single = sum(len(model_runs) == 1 for model_runs in ordered.values())
    # Single runs are tested by counting resamples, and their p-values are multiplied by the number of pairs: enough
    # resamples keep the smallest p-value below the level.
    pairs = single * (single - 1) // 2
    number, _ = example_lists.setdefault(tuple(runs[0].examples), (len(example_lists), len(labels)))
    samples = max(SAMPLES, 50 * pairs)
    drawn = resampled_figures(values, labels, runs[0].statistic, samples=samples, seed=number)
    figures = {}
    start = 0
    for name, model_runs in ordered.items():
        figures[name] = drawn.part(start, start + len(model_runs))
        start += len(model_runs)
    return figures


def _seeds(runs_of: Mapping[str, Sequence[Evidence]], name: str) -> tuple[int | None, ...]:
    """Return the seeds of a model on a data set, in order; none where it has no figure."""
    return tuple(run.seed for run in in_seed_order(runs_of.get(name, ())))


@dataclass(frozen=True)
class _Context:
    """What comparisons of models on the same sets share."""

    suite: str
    metric: str
    datasets: tuple[str, ...]
    n: int
    resampled: Mapping[str, Resampled]
    seeds: Mapping[str, tuple[int | None, ...]]

    def compare(self, model: str, rival: str) -> Comparison:
        """Compare two models, with the p-value not yet adjusted."""
        model_seeds = self.seeds[model]
        rival_seeds = self.seeds[rival]
        same = len(model_seeds) > 1 and model_seeds == rival_seeds
        result = compare_resampled(self.resampled[model], self.resampled[rival], same_seeds=same)
        trained = [len(seeds) for seeds in (model_seeds, rival_seeds) if seeds[0] is not None]
        return Comparison(
            task=self.suite,
            dataset=", ".join(self.datasets),
            metric=self.metric,
            model=model,
            reference=rival,
            adjusted=result.p_value,
            **vars(result),
            n=self.n,
            seeds=min(trained, default=None),
        )


def _against(context: _Context, names: Sequence[str], reference: str) -> dict[str, Comparison]:
    if reference not in names:
        return {}
    comparisons = [context.compare(name, reference) for name in names if name != reference]
    return {comparison.model: comparison for comparison in adjusted_together(comparisons)}
