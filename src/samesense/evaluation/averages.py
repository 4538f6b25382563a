"""Averages over data sets, computed as in the tables of papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from samesense.data.benchmarks.comparability import NOT_COMPARABLE, why_not_comparable
from samesense.errors import DataError
from samesense.evaluation.suite import Average
from samesense.evaluation.suites import SUITES
from samesense.evaluation.task import SAMPLES
from samesense.metrics.seeds import interval_of_runs, mean_of_sets, resampled_figures
from samesense.results.results import Results, mean_name
from samesense.types import Evidence, Result


def averages(results: Sequence[Result], evidence: Sequence[Evidence] = ()) -> Results:
    """Average the figures of each model and seed over data sets, as papers do; one row for each average and model.

    An average is the mean of its members' figures for all rows (subset ``"all"``), each first multiplied by 100 and
    rounded to 2 decimals; it lies in [-1, 1] like them, and its n is the sum of theirs. If members are missing, the
    average is over those present and is named ``"sts-avg-6 of 7"``, because it is not comparable with the full one; a
    single member has no average. If all members have evidence, the average has a 95 % interval, for which each data
    set is resampled separately. DataError if a member has two results for one model and seed.

    Source: the tables of Gao et al. (2021), SimCSE, and of later papers; the rounding is that of SimCSE's evaluation
        script, as its authors' code prints it.
    """
    groups = list(dict.fromkeys((row.model, row.seed) for row in results))
    rows = Results()
    for model, seed in groups:
        model_results = [row for row in results if (row.model, row.seed) == (model, seed)]
        for suite in SUITES.values():
            for average in suite.averages:
                members = _members(suite.name, average, model_results)
                if len(members) > 1:
                    rows.append(_row(average, members, evidence))
    return rows


def suite_averages(results: Sequence[Result], evidence: Sequence[Evidence] = ()) -> Results:
    """Return the averages of :func:`averages`, and for suites without one the mean of their data sets, if several.

    Such a mean is called ``"mean of 3"`` and is taken for each main metric of the suite. Suites whose metrics belong
    together, such as geometry, have none.
    """
    rows = averages(results, evidence)
    for suite in SUITES.values():
        suite_results = [row for row in results if row.task == suite.name and row.subset == "all"]
        names = tuple(dict.fromkeys(row.dataset for row in suite_results))
        if len(names) < 2 or suite.one_table or suite.name in {row.task for row in rows}:
            continue
        for metric in suite.metrics:
            members = {row.dataset: row for row in suite_results if row.metric == metric}
            if len(members) == len(names):
                rows.append(_row(Average(mean_name(len(names)), metric, names), members, evidence))
    return rows


_OVER = "figures x100, each rounded to 2 decimals: "


def members_of(average: Result) -> str:
    """Return the names of the data sets that an average is over."""
    return average.protocol.partition(_OVER)[2].partition(";")[0]


def _members(suite: str, average: Average, results: Sequence[Result]) -> dict[str, Result]:
    """Return the rows of the members that are present, in the order of the average."""
    present: dict[str, Result] = {}
    for row in results:
        kind = (row.task, row.metric, row.subset)
        if kind != (suite, average.metric, "all") or row.dataset not in average.members:
            continue
        if row.dataset in present:
            raise DataError(
                f"{average.name}: there are two results on {row.dataset} for model {row.model!r}, seed {row.seed}. "
                "Give each run a name or seed of its own, or leave the older results out."
            )
        present[row.dataset] = row
    return {name: present[name] for name in average.members if name in present}


def _row(average: Average, members: Mapping[str, Result], evidence: Sequence[Evidence]) -> Result:
    name = average.name
    if len(members) < len(average.members):
        name = f"{average.name}-{len(members)} of {len(average.members)}"
    rounded = [round(100 * row.value, 2) for row in members.values()]
    first = next(iter(members.values()))
    timed = [row.seconds for row in members.values() if row.seconds is not None]
    low, high = _interval(list(members.values()), evidence) or (None, None)
    clauses = _protocol(average, members)
    if low is not None:
        clauses.append(f"95 % bootstrap, {SAMPLES} samples of each")
    return Result(
        task=first.task,
        dataset=name,
        split=first.split,
        subset="all",
        metric=average.metric,
        value=sum(rounded) / len(rounded) / 100,
        n=sum(row.n for row in members.values()),
        protocol="; ".join(clauses),
        model=first.model,
        low=low,
        high=high,
        seed=first.seed,
        # The sum over some members would pass for the cost of all.
        seconds=sum(timed) if len(timed) == len(members) else None,
    )


def _protocol(average: Average, members: Mapping[str, Result]) -> list[str]:
    """Return what the average is over, and why it cannot be compared with published ones."""
    missing = [name for name in average.members if name not in members]
    differing = [name for name, row in members.items() if why_not_comparable(row.protocol)]
    clauses = [f"mean of {len(members)} {_OVER}{', '.join(members)}"]
    reasons = []
    if missing:
        clauses.append(f"without {', '.join(missing)}")
        reasons.append(f"{len(members)} of {len(average.members)} members")
    if differing:
        reasons.append(f"{', '.join(differing)} differ from what was published")
    if reasons:
        clauses.append(NOT_COMPARABLE + ", ".join(reasons))
    return clauses


def _interval(members: Sequence[Result], evidence: Sequence[Evidence]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of the members; ``None`` without evidence for all, or with too little."""
    evidence_of = {(item.task, item.dataset, item.metric, item.model, item.seed): item for item in evidence}
    of_members = [evidence_of.get((row.task, row.dataset, row.metric, row.model, row.seed)) for row in members]
    figures = [
        # A seed for each set: with one seed, sets of equal size would be resampled alike.
        resampled_figures([item.values], item.labels, item.statistic, samples=SAMPLES, seed=number)
        for number, item in enumerate(of_members)
        if item is not None
    ]
    if len(figures) < len(members):
        return None
    # Only resamples on which all figures are defined count; small data sets may have too few of them.
    with suppress(DataError):
        return interval_of_runs(mean_of_sets(figures))
    return None
