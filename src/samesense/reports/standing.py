"""Which model is best, by how much, and how sure that is: one figure a model, in which all suites weigh equally."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from samesense.errors import DataError
from samesense.evaluation.run import EvaluatedModel
from samesense.evaluation.suites import SUITES
from samesense.execution.speed import Speed
from samesense.metrics import holm
from samesense.metrics.seeds import Resampled, compare_resampled, interval_of_runs, mean_of_sets, resampled_figures
from samesense.reports.headline import headlines
from samesense.reports.significance import SAMPLES, Comparison, aligned, in_seed_order, runs_behind, seed_order
from samesense.results import Measure, mean_name, measure_of
from samesense.types import Evidence, Result

SEVERAL = "mean score"
"""The metric of a mean over suites of different metrics."""

MEAN_SCORE = Measure(SEVERAL)


Sets = dict[str, dict[str, list[Evidence]]]
"""The runs of each model, by data set and model."""

SuiteSets = tuple[str, str, Sets]
"""A suite, its first main metric of which more is better, and what lies behind its figures."""

Known = dict[Any, tuple[int, int]]
"""Number and size of each list of examples, which several data sets may share."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One model's place."""

    model: str
    score: float  # mean over its seeds and the data sets, in the natural unit
    low: float  # lower end of its 95 % interval
    high: float  # upper end of it
    seeds: int  # runs behind it
    computed: str = ""  # in which arithmetic and on how many threads, in words
    speed: Speed | None = None  # sentences a second, where it was measured
    disturbed: str = ""  # why the machine was not quiet then, in words
    parameters: int | None = None  # where they are known
    megabytes: float | None = None  # of its weights on disk, where they are known
    memory: float | None = None  # MB that a process of its own took, at its peak, where it was measured


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """A suite in which another model has a higher figure than the one that is spoken of."""

    suite: str
    metric: str
    on: str  # what the figure was measured on, in words
    comparison: Comparison  # of that model with the one that is highest there


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Models by their mean figure, the best first."""

    suite: str  # suites that count in the figure, as in "sts and probes"
    metric: str  # of the figure; SEVERAL where suites have different ones
    datasets: tuple[str, ...]  # whose mean the figure is
    n: int  # different examples of all of them
    places: tuple[Standing, ...]
    unranked: tuple[str, ...]  # models of which a run lacks a figure on one of the data sets
    against_reference: Mapping[str, Comparison]  # by model, of every ranked one but the reference
    reference: str
    best_others: tuple[Comparison, ...]  # of the best with each other model
    suites: tuple[str, ...] = ()  # all suites whose figures were compared
    counted: tuple[str, ...] = ()  # those whose mean the figure is
    elsewhere: Mapping[str, tuple[Elsewhere, ...]] = field(default_factory=dict)  # by model, where it is not highest

    @property
    def measure(self) -> Measure:
        """How the figure is shown."""
        return MEAN_SCORE if self.metric == SEVERAL else measure_of(self.metric)

    @property
    def pairs(self) -> int:
        """Pairs of ranked models, whose comparisons are adjusted together."""
        return len(self.places) * (len(self.places) - 1) // 2

    @property
    def on(self) -> str:
        """What the figure was measured on, in words."""
        if len(self.counted) > 1:
            return f"the mean of {len(self.counted)} suites ({', '.join(self.counted)})"
        return _measured_on(self.suite, self.datasets)

    @property
    def of_means(self) -> list[Comparison]:
        """The comparisons with the reference, of a data set named as the mean is in tables; none of a single set."""
        name = mean_name(len(self.datasets))
        return [replace(one, dataset=name) for one in self.against_reference.values() if len(self.datasets) > 1]


def rank(
    evidence: Sequence[Evidence],
    results: Sequence[Result],
    models: Sequence[EvaluatedModel] = (),
    *,
    against: str | None = None,
    failed: Collection[str] = (),
) -> Ranking | None:
    """Rank models by the mean over suites; ``None`` where nothing says which is better.

    The figure of a suite is the mean of its first main metric over its data sets and over the seeds of a model. Suites
    weigh equally, whatever their number of sets. A suite that a model cannot do, as a cross-encoder has no transfer,
    counts for none; a model that ``failed`` is not ranked instead, nor one of which a run lacks a set. Data sets are
    resampled independently of each other unless they have the same examples, models on the same examples. Each model
    is compared with the reference, the first or ``against``, p-values adjusted by Holm over these; the best is compared
    with each of the others, p-values adjusted by Holm over all pairs of models, since it is chosen by its figure.
    DataError if no model has a figure on every data set, or models were evaluated on different examples.

    Source: Davison and Hinkley (1997), "Bootstrap Methods and their Application", section 3.2, for several samples;
        Holm (1979).
    """
    suites = _suites(evidence, results)
    if not suites:
        return None
    names = list(dict.fromkeys([one.name for one in models] + [row.model for row in results]))
    counted = _counted(suites, names, failed)
    sets = [behind for _, _, by_set in counted for behind in by_set.values()]
    seeds = {name: {_seeds(behind, name) for behind in sets} for name in names}
    for name in {one.name for one in models}:  # a run that failed on every data set is seen in none of them
        seeds[name].add(tuple(sorted({one.seed for one in models if one.name == name}, key=seed_order)))
    everywhere = [name for name in names if len(seeds[name]) == 1 and () not in seeds[name]]
    datasets = tuple(dict.fromkeys(dataset for _, _, by_set in counted for dataset in by_set))
    if not everywhere:
        raise DataError(
            f"no model has a figure on each of {', '.join(datasets)}, and means of different sets say nothing."
        )
    drawn, examples = _resampled([by_set for _, _, by_set in counted], everywhere)
    reference = against or names[0]
    measured = {one.name: one for one in reversed(models)}
    shown = _shown_intervals(*counted[0], results) if len(counted) == 1 else {}
    places = [_standing(name, drawn[name], measured.get(name), shown.get(name)) for name in everywhere]
    places.sort(key=lambda one: -one.score)
    suite = " and ".join(name for name, _, _ in counted)
    metrics = {metric for _, metric, _ in counted}
    metric = metrics.pop() if len(metrics) == 1 else SEVERAL
    context = _Context(suite, metric, datasets, examples, drawn, {name: seeds[name].pop() for name in everywhere})
    alone = len(suites) == 1
    return Ranking(
        suite=suite,
        metric=metric,
        datasets=datasets,
        n=examples,
        places=tuple(places),
        unranked=tuple(name for name in names if name not in everywhere),
        against_reference=_against(context, everywhere, reference),
        reference=reference,
        best_others=_of_the_best(context, [one.model for one in places]),
        suites=tuple(name for name, _, _ in suites),
        counted=tuple(name for name, _, _ in counted),
        elsewhere={} if alone else {name: _losses(name, suites) for name in everywhere},
    )


def _counted(suites: Sequence[SuiteSets], names: Sequence[str], failed: Collection[str]) -> list[SuiteSets]:
    """Return the suites that every model can do; all of them where there is none."""
    able = [name for name in names if name not in failed]
    counted = [one for one in suites if all(any(name in behind for behind in one[2].values()) for name in able)]
    return counted or list(suites)


def _of_the_best(context: _Context, names: Sequence[str]) -> tuple[Comparison, ...]:
    """Compare the first of the names with each other, p-values adjusted by Holm over all pairs of them."""
    compared = [context.compare(model, other) for model, other in combinations(names, 2)]
    adjusted = holm([one.p_value for one in compared]) if compared else []
    made = [replace(one, adjusted=p) for one, p in zip(compared, adjusted, strict=True)]
    return tuple(one for one in made if one.model == names[0])


def _losses(model: str, suites: Sequence[SuiteSets]) -> tuple[Elsewhere, ...]:
    """Return the suites in which another model is higher."""
    return tuple(filter(None, (_elsewhere(model, *one) for one in suites)))


def _measured_on(suite: str, datasets: Sequence[str]) -> str:
    return datasets[0] if len(datasets) == 1 else f"the mean of {len(datasets)} {suite} sets"


def _suites(evidence: Sequence[Evidence], results: Sequence[Result]) -> list[SuiteSets]:
    """Return each suite, its first main metric of which more is better, and what lies behind its figures."""
    figures = headlines(results)
    found: dict[str, tuple[str, str, Sets]] = {}
    for suite, metric in dict.fromkeys((key[0], key[2]) for key in figures):
        main = suite in SUITES and metric in SUITES[suite].metrics and measure_of(metric).better == "higher"
        keys = [key for key in figures if (key[0], key[2]) == (suite, metric)]
        sets = {key[1]: runs_behind(key, figures[key], evidence) for key in keys} if main else {}
        sets = {dataset: behind for dataset, behind in sets.items() if behind}
        if sets:
            found.setdefault(suite, (suite, metric, sets))
    return list(found.values())


def _elsewhere(best: str, suite: str, metric: str, sets: Sets) -> Elsewhere | None:
    """Return the comparison with the highest model of another suite; ``None`` if that is ``best``, or it has no figure.

    Models that lack a figure on one of its sets are left out, and so is a suite whose models cannot be compared.
    """
    seeds = {name: {_seeds(behind, name) for behind in sets.values()} for behind in sets.values() for name in behind}
    everywhere = [name for name in seeds if len(seeds[name]) == 1 and () not in seeds[name]]
    if best not in everywhere or len(everywhere) < 2:
        return None
    try:
        drawn, examples = _resampled([sets], everywhere)
        runs = {name: seeds[name].pop() for name in everywhere}
        context = _Context(suite, metric, tuple(sets), examples, drawn, runs)
        highest = max(everywhere, key=lambda name: float(drawn[name].figures.mean()))
        comparison = None if highest == best else context.compare(best, highest)
    except DataError:  # said where the suite itself is shown
        return None
    if comparison is None or comparison.difference >= 0:
        return None
    return Elsewhere(suite=suite, metric=metric, on=_measured_on(suite, tuple(sets)), comparison=comparison)


def _shown_intervals(suite: str, metric: str, sets: Sets, results: Sequence[Result]) -> dict[str, tuple[float, float]]:
    """Return the intervals that the tables show of the same figures: of one run on one data set."""
    if len(sets) > 1:
        return {}
    rows = headlines(results).get((suite, next(iter(sets)), metric), {})
    count = Counter(model for model, _ in rows)
    return {
        model: (row.low, row.high)
        for (model, _), row in rows.items()
        if count[model] == 1 and row.low is not None and row.high is not None
    }


def _resampled(suites: Sequence[Sets], names: Sequence[str]) -> tuple[dict[str, Resampled], int]:
    """Return for each model the mean over suites, as it is and resampled, and the number of examples."""
    known: Known = {}
    means: dict[str, list[Resampled]] = {name: [] for name in names}
    for sets in suites:
        of_sets: dict[str, list[Resampled]] = {name: [] for name in names}
        for behind in sets.values():
            for name, drawn in _resampled_set(behind, names, known).items():
                of_sets[name].append(drawn)
        for name, drawn_sets in of_sets.items():
            means[name].append(mean_of_sets(drawn_sets))
    examples = sum(size for _, size in known.values())
    return {name: mean_of_sets(drawn_suites) for name, drawn_suites in means.items()}, examples


def _resampled_set(
    behind: Mapping[str, Sequence[Evidence]], names: Sequence[str], known: Known
) -> dict[str, Resampled]:
    """Return the figures of each model on one data set; ``known`` numbers its examples, which seeds the resamples."""
    ordered = {name: in_seed_order(behind[name]) for name in names}
    runs = [run for model_runs in ordered.values() for run in model_runs]
    values, labels = aligned(runs)
    single = sum(len(model_runs) == 1 for model_runs in ordered.values())
    pairs = single * (single - 1) // 2  # tested by counting resamples, and multiplied by their number
    number, _ = known.setdefault(tuple(runs[0].examples), (len(known), len(labels)))
    samples = max(SAMPLES, 50 * pairs)
    drawn = resampled_figures(values, labels, runs[0].statistic, samples=samples, seed=number)
    figures = {}
    start = 0
    for name, model_runs in ordered.items():
        figures[name] = drawn.part(start, start + len(model_runs))
        start += len(model_runs)
    return figures


def _seeds(behind: Mapping[str, Sequence[Evidence]], name: str) -> tuple[int | None, ...]:
    """Return the seeds of a model on a data set, in order; none where it has no figure."""
    return tuple(run.seed for run in in_seed_order(behind.get(name, ())))


def _standing(
    name: str, drawn: Resampled, measured: EvaluatedModel | None, shown: tuple[float, float] | None
) -> Standing:
    """Return the place of a model; its interval is the one that is shown elsewhere, as a figure has one interval."""
    low, high = interval_of_runs(drawn) if shown is None else shown
    cost = measured.cost if measured is not None else None
    return Standing(
        model=name, score=float(drawn.figures.mean()), low=low, high=high, seeds=len(drawn.figures),
        **({} if cost is None else vars(cost)),
    )  # fmt: skip


@dataclass(frozen=True)
class _Context:
    suite: str
    metric: str
    datasets: tuple[str, ...]
    n: int
    drawn: Mapping[str, Resampled]
    seeds: Mapping[str, tuple[int | None, ...]]

    def compare(self, model: str, other: str) -> Comparison:
        """Compare two models, with the p-value not yet adjusted."""
        own, theirs = self.seeds[model], self.seeds[other]
        same = len(own) > 1 and own == theirs
        found = compare_resampled(self.drawn[model], self.drawn[other], same_seeds=same)
        trained = [len(seeds) for seeds in (own, theirs) if seeds[0] is not None]
        return Comparison(
            task=self.suite, dataset=", ".join(self.datasets), metric=self.metric, model=model, reference=other,
            difference=found.difference, low=found.low, high=found.high, p_value=found.p_value,
            adjusted=found.p_value, n=self.n, seeds=min(trained, default=None),
        )  # fmt: skip


def _against(context: _Context, names: Sequence[str], reference: str) -> dict[str, Comparison]:
    if reference not in names:
        return {}
    made = [context.compare(name, reference) for name in names if name != reference]
    adjusted = holm([one.p_value for one in made]) if made else []
    return {one.model: replace(one, adjusted=p) for one, p in zip(made, adjusted, strict=True)}
