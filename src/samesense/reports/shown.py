"""Find the figure of each column that is significantly better than every other, by the report's tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from samesense.errors import DataError
from samesense.reports.headline import Key, Seeds, headlines, is_headline
from samesense.reports.significance import SAMPLES, Comparison, compare_runs, runs_behind
from samesense.reports.standing import Ranking
from samesense.results.measures import Measure, measure_of
from samesense.results.results import mean_name
from samesense.types import Evidence, Result


def shown_best(
    evidence: Sequence[Evidence],
    results: Sequence[Result],
    comparisons: Sequence[Comparison],
    ranking: Ranking | None = None,
    *,
    incomplete: Collection[str] = (),
) -> dict[Key, str]:
    """Return for each suite, data set and metric the model that is significantly better than every other.

    Differences from the reference are those of ``comparisons``, adjusted by Holm. Between two other models the p-value
    is multiplied by the number of pairs of models, because the best is chosen by its figure. A difference over fewer
    than five seeds is one of these runs and shows nothing about the methods. A data set in ``incomplete`` has no best,
    because rivals lack seeds there. Means over data sets come from ``ranking``, under the name that tables give them.

    Source: Holm (1979) for the adjustment; Bonferroni for the best.
    """
    winners: dict[Key, str] = {}
    for key, runs in headlines(results).items():
        measure = measure_of(key[2])
        if key[1] in incomplete or not is_headline(key[0], key[2]) or not measure.better:
            continue
        best = _highest(runs, measure)
        if best is not None and _beats_rivals(best, key, runs, evidence, comparisons):
            winners[key] = best
    leader = None if ranking is None else _leader(ranking)
    if ranking is not None and leader is not None:
        winners[ranking.suite, mean_name(len(ranking.datasets)), ranking.metric] = leader
    return winners


def _highest(runs: Seeds, measure: Measure) -> str | None:
    """Return the model with the best mean over its seeds; ``None`` for a tie, or without a rival."""
    values: dict[str, list[float]] = {}
    for (model, _), row in runs.items():
        values.setdefault(model, []).append(row.value)
    means = {model: float(np.mean(figures)) for model, figures in values.items()}
    top = measure.best(means.values())
    leaders = [model for model, mean in means.items() if mean == top]
    if len(leaders) == 1 and len(means) > 1:
        return leaders[0]
    return None


def _beats_rivals(
    best: str, key: Key, runs: Seeds, evidence: Sequence[Evidence], comparisons: Sequence[Comparison]
) -> bool:
    """Return whether the best differs significantly from the reference and from every other rival."""
    tested = {test.model: test for test in comparisons if (test.task, test.dataset, test.metric) == key}
    references = {test.reference for test in tested.values()}
    behind = runs_behind(key, runs, evidence)
    models = list(dict.fromkeys(model for model, _ in runs))
    if not behind.keys() >= set(models):
        return False
    significant = {model for model, test in tested.items() if test.finding == "yes"}
    if best in references:
        return len(significant) == len(tested) == len(models) - 1
    if references and best not in significant:
        return False
    rivals = [model for model in models if model != best and model not in references]
    # The best was chosen by its figure: its tests are adjusted for all pairs of models, by Bonferroni.
    pairs = len(models) * (len(models) - 1) // 2
    return all(_differs(behind[best], behind[rival], pairs) for rival in rivals)


def _differs(best: Sequence[Evidence], rival: Sequence[Evidence], tests: int) -> bool:
    """Return whether runs differ significantly, the p-value adjusted for a number of tests."""
    try:
        test = compare_runs(best, rival, max(SAMPLES, 50 * tests))
    except DataError:  # evaluated on different examples, so the difference cannot be tested
        return False
    return replace(test, adjusted=min(1.0, tests * test.p_value)).finding == "yes"


def _leader(ranking: Ranking) -> str | None:
    """Return the model that is significantly above all others in the mean over data sets; ``None`` if there is none."""
    best = ranking.standings[0].model
    against = ranking.against_reference
    if best == ranking.reference:
        tested = list(against.values())
    elif best in against:
        tested = [against[best], *ranking.best_others]
    else:
        return None
    if ranking.unranked or not tested or len(tested) < len(ranking.standings) - 1:
        return None
    if all(test.finding == "yes" for test in tested):
        return best
    return None
