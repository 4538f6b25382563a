"""The averages that papers print under their tables, formed as they form them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from samesense.data.benchmarks.comparability import NOT_COMPARABLE, why_not_comparable
from samesense.errors import DataError
from samesense.evaluation.suite import Average
from samesense.evaluation.suites import SUITES
from samesense.evaluation.task import SAMPLES
from samesense.metrics.seeds import interval_of_runs, mean_of_sets, resampled_figures
from samesense.results import Results, mean_name
from samesense.types import Evidence, Result


def averages(results: Sequence[Result], evidence: Sequence[Evidence] = ()) -> Results:
    """Average the figures of each model and seed over data sets, as papers do: a row an average, model and seed.

    An average is the mean of its members' figures for all rows (subset ``"all"``), each multiplied by 100 and rounded
    to 2 decimals first; it lies in [-1, 1] like these, and its n is the sum of theirs. Where members are missing, it is
    taken over those present and named so, ``"sts-avg-6 of 7"``, because it cannot be compared with the full one; a
    single member has no average. With the evidence behind all members an average has a 95 % interval, for which each
    data set is resampled by itself. DataError if a member has two results for one model and seed.

    Source: the tables of Gao et al. (2021), SimCSE, and of the papers that follow it; the rounding is that of SimCSE's
        evaluation script, as its authors' code prints it.
    """
    groups = list(dict.fromkeys((row.model, row.seed) for row in results))
    rows = Results()
    for model, seed in groups:
        own = [row for row in results if (row.model, row.seed) == (model, seed)]
        for suite in SUITES.values():
            for average in suite.averages:
                members = _members(suite.name, average, own)
                if len(members) > 1:
                    rows.append(_row(average, members, evidence))
    return rows


def suite_averages(results: Sequence[Result], evidence: Sequence[Evidence] = ()) -> Results:
    """Return the averages of :func:`averages`; of a suite without one the mean of its data sets, if it has several.

    Such a mean is called ``"mean of 3"`` and is over the main metrics of the suite; where these say something only
    together, as in geometry, there is none.
    """
    rows = averages(results, evidence)
    for suite in SUITES.values():
        own = [row for row in results if row.task == suite.name and row.subset == "all"]
        names = tuple(dict.fromkeys(row.dataset for row in own))
        if len(names) < 2 or suite.one_table or suite.name in {row.task for row in rows}:
            continue
        for metric in suite.metrics:
            members = {row.dataset: row for row in own if row.metric == metric}
            if len(members) == len(names):
                rows.append(_row(Average(mean_name(len(names)), metric, names), members, evidence))
    return rows


_OVER = "figures x100, each rounded to 2 decimals: "


def members_of(average: Result) -> str:
    """Return the names of the data sets that an average is over."""
    return average.protocol.partition(_OVER)[2].partition(";")[0]


def _members(suite: str, average: Average, results: Sequence[Result]) -> dict[str, Result]:
    """Return the rows of the members that are present, in the order of the average."""
    found: dict[str, Result] = {}
    for row in results:
        kind = (row.task, row.metric, row.subset)
        if kind != (suite, average.metric, "all") or row.dataset not in average.members:
            continue
        if row.dataset in found:
            raise DataError(
                f"{average.name}: there are two results on {row.dataset} for model {row.model!r}, seed {row.seed}. "
                "Give each run a name or seed of its own, or leave the older results out."
            )
        found[row.dataset] = row
    return {name: found[name] for name in average.members if name in found}


def _row(average: Average, members: Mapping[str, Result], evidence: Sequence[Evidence]) -> Result:
    missing = [name for name in average.members if name not in members]
    rounded = [round(100 * row.value, 2) for row in members.values()]
    doubtful = [name for name, row in members.items() if why_not_comparable(row.protocol)]
    parts = [f"mean of {len(members)} {_OVER}{', '.join(members)}"]
    if missing:
        parts.append(f"without {', '.join(missing)}")
    if missing or doubtful:
        reasons = [f"{len(members)} of {len(average.members)} members"] if missing else []
        reasons += [f"{', '.join(doubtful)} differ from what was published"] if doubtful else []
        parts.append(NOT_COMPARABLE + ", ".join(reasons))
    first = next(iter(members.values()))
    timed = [row.seconds for row in members.values() if row.seconds is not None]
    low, high = _interval(list(members.values()), evidence) or (None, None)
    parts += [f"95 % bootstrap, {SAMPLES} samples of each"] if low is not None else []
    return Result(
        task=first.task,
        dataset=f"{average.name}-{len(members)} of {len(average.members)}" if missing else average.name,
        split=first.split,
        subset="all",
        metric=average.metric,
        value=sum(rounded) / len(rounded) / 100,
        n=sum(row.n for row in members.values()),
        protocol="; ".join(parts),
        model=first.model,
        low=low,
        high=high,
        seed=first.seed,
        seconds=sum(timed) if len(timed) == len(members) else None,
    )


def _interval(members: Sequence[Result], evidence: Sequence[Evidence]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of the members, if all have evidence, and enough of it together."""
    found = {(one.task, one.dataset, one.metric, one.model, one.seed): one for one in evidence}
    behind = [found.get((row.task, row.dataset, row.metric, row.model, row.seed)) for row in members]
    drawn = [
        resampled_figures([one.values], one.labels, one.statistic, samples=SAMPLES, seed=number)
        for number, one in enumerate(behind)
        if one is not None
    ]
    if len(drawn) < len(members):
        return None
    with suppress(DataError):  # a resample counts on which all are defined: of small sets, that may be few
        return interval_of_runs(mean_of_sets(drawn))
    return None
