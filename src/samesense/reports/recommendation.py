"""Which of several models to take, by how much, how sure that is, and at what cost.

The rule: the highest figure, unless a cheaper model is neither shown to be worse nor more than :data:`MARGIN` below it;
then the cheapest of those. Cheapest is the fastest where the ranges of the speeds do not overlap, then the smallest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from statistics import NormalDist
from typing import Any

from samesense.evaluation.run import Failure
from samesense.execution.speed import ROUNDS
from samesense.reports.significance import LEVEL, Comparison, p_text
from samesense.reports.standing import Ranking, Standing
from samesense.reports.verdict import bare_span, count_text, direction, figure_text, losses, span
from samesense.results.measures import Measure

MARGIN = 0.01
"""A cheaper model is recommended up to this far below the highest figure: 1 point of 100.

Few examples show no model to be worse. Without the margin they would recommend a weak model because it is cheap.
"""

ROUNDING = 1e-9
"""Tolerance of the margin: the shares 193 and 196 of 300 differ by it exactly, up to the last digit of a float."""

MARGIN_TEXT = f"{100 * MARGIN:g} point"
"""The margin as reports show it."""

POWER = 0.8
"""Power of the test for which the number of needed examples is computed."""

MOST_TIMES = 100
"""Differences that need more than this many times the examples are reported as unshowable."""

NAMED = 3
"""Most models named in a sentence; the table lists all."""

RULE = (
    "How it is chosen: the highest figure, unless a cheaper model is neither shown to be worse nor more than "
    f"{MARGIN_TEXT} (of 100) below it. Cheapest is the fastest where ranges of speed do not overlap, then the smallest "
    "on disk. Differences are paired over the same examples (bootstrap); p adjusted by Holm over all pairs of models, "
    "in the table over those with the reference alone. All suites weigh equally."
)
"""Explains on the page how a model is recommended."""

COST_NOTE = (
    "Time: milliseconds a text in batches, of up to 256 of the evaluated texts, after a warm-up and with nothing "
    f"remembered, models in turns, {ROUNDS} rounds, median and range; a cross-encoder reads two texts a pair. Memory: "
    "the peak resident memory of a process of its own that opens the model and reads 64 of these texts, Python and "
    "libraries included, which for a small model are most of it. Disk: the weights."
)
"""Explains on the page how costs are measured."""


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The recommended model and its alternatives."""

    ranking: Ranking
    model: str
    equals: tuple[str, ...]  # the highest model, then those not significantly different from it
    near: tuple[str, ...]  # those of ``equals`` within the margin of the highest, itself included
    measured: bool  # whether costs were measured
    failures: tuple[Failure, ...] = ()  # of models without a figure

    @property
    def standing(self) -> Standing:
        """The standing of the recommended model."""
        return next(standing for standing in self.ranking.standings if standing.model == self.model)

    @property
    def close(self) -> list[Comparison]:
        """How the highest compares with its equals."""
        return [comparison for comparison in self.ranking.best_others if comparison.reference in self.equals]

    def lines(self) -> list[str]:
        """Return the recommendation in two sentences, then what limits it."""
        return [
            _choice(self),
            _cost(self),
            *losses(self.ranking, self.model),
            *_power(self),
            *_without_figure(self),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the recommendation as plain JSON types: model, figure, cost and alternatives."""
        standing = self.standing
        milliseconds = None if standing.speed is None else 1000 / standing.speed.median
        return {
            "model": self.model,
            "metric": self.ranking.metric,
            "value": standing.score,
            "low": standing.low,
            "high": standing.high,
            "suites": list(self.ranking.counted),
            "n": self.ranking.n,
            "highest": self.equals[0],
            "not_shown_worse": list(self.equals),
            "within_margin": list(self.near),
            "margin": MARGIN,
            "milliseconds": milliseconds,
            "memory_megabytes": standing.memory,
            "disk_megabytes": standing.megabytes,
            "text": self.lines(),
        }


def recommend(ranking: Ranking, failures: Sequence[Failure] = ()) -> Recommendation:
    """Choose one of the ranked models; see :mod:`samesense.reports.recommendation`."""
    best, *rivals = ranking.standings
    worse = {comparison.reference for comparison in ranking.best_others if comparison.significant}
    equals = [best, *(standing for standing in rivals if standing.model not in worse)]
    near = [standing for standing in equals if best.score - standing.score <= MARGIN + ROUNDING]
    # Costs matter only where any were measured; otherwise the highest figure wins.
    measured = any(standing.speed is not None or standing.megabytes is not None for standing in ranking.standings)
    chosen = _cheapest(near) if measured else best
    return Recommendation(
        ranking=ranking,
        model=chosen.model,
        equals=tuple(standing.model for standing in equals),
        near=tuple(standing.model for standing in near),
        measured=measured,
        failures=tuple(failure for failure in failures if failure.model in ranking.unranked),
    )


def _cheapest(standings: Sequence[Standing]) -> Standing:
    """Return the smallest of the models whose speeds overlap with the fastest; the first of equally small ones.

    A model can be cheaper than the first only where both were measured.
    """
    timed = [standing for standing in standings if standing.speed is not None]
    if timed and standings[0].speed is None:
        return standings[0]
    if timed:
        fastest = max(timed, key=lambda standing: standing.speed.median if standing.speed else 0.0)
        standings = [
            standing
            for standing in timed
            if standing.speed and fastest.speed and standing.speed.overlaps(fastest.speed)
        ]
    if standings[0].megabytes is None:
        return standings[0]
    return min(standings, key=lambda standing: standing.megabytes or float("inf"))


def _choice(recommendation: Recommendation) -> str:
    """Return the sentence that names the model, its lead and how sure that lead is."""
    ranking = recommendation.ranking
    model = recommendation.model
    highest_model = recommendation.equals[0]
    figure = figure_text(recommendation.standing, ranking.measure)
    measured = f"{figure} on {ranking.on}, {ranking.n:,} examples"
    if len(ranking.standings) == 1:
        return f"Take {model}, the only model with a figure: {measured}."
    if len(recommendation.equals) == 1:
        return f"Take {model}: {measured}, {_lead(ranking)}."
    if model == highest_model:
        return f"Take {model}: {measured}, the highest, and {_not_apart(recommendation)}."
    against_highest = next(comparison for comparison in ranking.best_others if comparison.reference == model)
    if _is_same(against_highest):
        return f"Take {model}: {measured}, equal to {highest_model} on every example{_cheaper(recommendation)}."
    return (
        f"Take {model}: it is within {MARGIN_TEXT} of {highest_model}, the highest, and not shown to be worse "
        f"({_difference(against_highest.turned(), ranking.measure)}){_cheaper(recommendation)}; {measured}."
    )


def _lead(ranking: Ranking) -> str:
    """Return how far the best is above the next model, and that it is above the remaining ones."""
    following = ranking.standings[1].model
    second = next(comparison for comparison in ranking.best_others if comparison.reference == following)
    lead = direction(second.difference, ranking.measure, 1)
    ends = bare_span(second.low, second.high, ranking.measure)
    remaining = len(ranking.standings) - 2
    lead_over_remaining = ""
    if remaining == 1:
        lead_over_remaining = " and further above the other"
    elif remaining:
        lead_over_remaining = f" and further above the {remaining} others"
    return f"{lead} {following}, the next (95 % interval {ends}, {p_text(second.adjusted)}){lead_over_remaining}"


def _not_apart(recommendation: Recommendation) -> str:
    """Return which models the recommended highest one is not shown to beat, and why it is still preferred to them."""
    close = recommendation.close
    if all(map(_is_same, close)):
        return f"equal to {' and '.join(comparison.reference for comparison in close)} on every example"
    close = sorted(close, key=lambda comparison: comparison.difference)
    descriptions = [
        f"{comparison.reference} ({_difference(comparison, recommendation.ranking.measure)})"
        for comparison in close[:NAMED]
    ]
    if len(close) > NAMED:
        descriptions.append(f"{len(close) - NAMED} more")
    unsure = f"not shown to be better than {' or '.join(descriptions)}"
    if not recommendation.measured:
        return unsure
    equals = [standing for standing in recommendation.ranking.standings if standing.model in recommendation.equals]
    if _cheapest(equals).model == recommendation.model:
        return f"{unsure}; none of these is known to be cheaper"
    if len(recommendation.near) > 1:
        return f"{unsure}; of the models within {MARGIN_TEXT} of it none is known to be cheaper"
    return f"{unsure}; no other model is within {MARGIN_TEXT} of it"


def _cheaper(recommendation: Recommendation) -> str:
    """Return by how much the recommended model is cheaper than the highest."""
    recommended = recommendation.standing
    highest = recommendation.ranking.standings[0]
    if recommended.speed is not None and highest.speed is not None and not recommended.speed.overlaps(highest.speed):
        return f", at {_ratio_text(highest.speed.median / recommended.speed.median)} of the time"
    if recommended.megabytes and highest.megabytes and recommended.megabytes < highest.megabytes:
        return f", at {_ratio_text(recommended.megabytes / highest.megabytes)} of the size on disk"
    return ""


def _ratio_text(ratio: float) -> str:
    """Return a ratio below 1 in words: ``about a quarter``, ``62 %``, ``0.4 %``."""
    for denominator, word in ((2, "half"), (3, "a third"), (4, "a quarter"), (5, "a fifth"), (10, "a tenth")):
        if abs(ratio * denominator - 1) < 0.05:
            return f"about {word}"
    if ratio >= 0.01:
        return f"{100 * ratio:.0f} %"
    return f"{100 * ratio:.1g} %"


def _is_same(comparison: Comparison) -> bool:
    return comparison.difference == comparison.low == comparison.high == 0


def _difference(comparison: Comparison, measure: Measure) -> str:
    """Return the difference of two models with its interval and p-value."""
    if _is_same(comparison):
        return "equal on every example"
    ends = span(comparison.low, comparison.high, measure, 1)
    return f"{direction(comparison.difference, measure, 1)}, 95 % interval {ends}, {p_text(comparison.adjusted)}"


def _cost(recommendation: Recommendation) -> str:
    """Return the sentence about time, memory and size of the recommended model and of the best other one."""
    if not recommendation.measured:
        return "What the models cost was not measured."
    rivals = [standing for standing in recommendation.ranking.standings if standing.model != recommendation.model]
    compared = [recommendation.standing, *rivals[:1]]
    first, *second = [f"{standing.model} takes {cost_text(standing)}" for standing in compared]
    where = ""
    if recommendation.standing.computed:
        where = f" (measured here {recommendation.standing.computed})"
    return f"{'; '.join([first + where, *second])}."


def cost_text(standing: Standing) -> str:
    """Return what a model costs: ``3.2 ms a text (3.1 to 3.4), 610 MB of memory and 90.9 MB on disk``."""
    costs = []
    if standing.speed is not None:
        costs.append(f"{milliseconds_text(standing)} ms a text")
    if standing.memory is not None:
        costs.append(f"{count_text(standing.memory)} MB of memory")
    if standing.megabytes is not None:
        costs.append(f"{standing.megabytes:.1f} MB on disk")
    if not costs:
        return "an unknown cost"
    *first_costs, last_cost = costs
    if not first_costs:
        return last_cost
    return f"{', '.join(first_costs)} and {last_cost}"


def milliseconds_text(standing: Standing) -> str:
    """Return the milliseconds a text, median and range: ``3.2 (3.1 to 3.4)``."""
    if standing.speed is None:
        return ""
    middle, low, high = (
        _digits(1000 / speed) for speed in (standing.speed.median, standing.speed.high, standing.speed.low)
    )
    return f"{middle} ({low} to {high})"


def _digits(value: float) -> str:
    """Return a positive number with two significant digits, or as a whole number if it has more."""
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.{1 - floor(log10(value))}f}"


def needed_examples(comparison: Comparison, pairs: int) -> int | None:
    """Return how many examples would show a difference of this size with a power of 80 %; ``None`` if none would.

    The standard error is taken from the 95 % interval and falls with the root of the number of examples; the level is
    divided by the number of ``pairs`` of models (Bonferroni).

    Source: Cohen (1988), "Statistical Power Analysis for the Behavioral Sciences", with the normal approximation.
    """
    normal = NormalDist()
    error = (comparison.high - comparison.low) / (2 * normal.inv_cdf(0.975))
    if not comparison.difference or not error:
        return None
    reach = normal.inv_cdf(1 - LEVEL / (2 * max(1, pairs))) + normal.inv_cdf(POWER)
    needed = comparison.n * (reach * error / comparison.difference) ** 2
    # Two leading digits, rounded up: more would claim a precision that the estimate lacks.
    unit: int = 10 ** max(0, floor(log10(needed)) - 1)
    return ceil(needed / unit) * unit


def _power(recommendation: Recommendation) -> list[str]:
    """Return how many examples would separate the recommended model from the highest, or the highest from the next."""
    close = recommendation.close
    of_recommended = [comparison for comparison in close if comparison.reference == recommendation.model]
    different = [comparison for comparison in close if not _is_same(comparison)]
    candidates = of_recommended or different
    if not candidates or _is_same(candidates[0]):
        return []
    comparison = candidates[0]
    models = f"{comparison.model} and {comparison.reference}"
    needed = needed_examples(comparison, recommendation.ranking.pairs)
    if needed is None or needed > MOST_TIMES * comparison.n:
        return [f"No data of this size would show a difference as small as that of {models}."]
    if needed <= comparison.n:
        return []
    return [
        f"To show a difference as large as that of {models}, about {needed:,} examples of this kind would be needed; "
        f"these are {comparison.n:,}."
    ]


def _without_figure(recommendation: Recommendation) -> list[str]:
    """Return which models the recommendation leaves out, and why."""
    # Reversed, so that the first failure of a model wins.
    first_failures = {failed.model: failed for failed in reversed(recommendation.failures)}
    lines = []
    for model in recommendation.ranking.unranked:
        failure = first_failures.get(model)
        why = "it lacks a figure on one of the sets"
        if failure:
            why = f"undefined on {failure.dataset}: {failure.reason}"
        lines.append(f"{model} has no part in this: {why}")
    left_out = [suite for suite in recommendation.ranking.suites if suite not in recommendation.ranking.counted]
    if left_out:
        lines.append(f"Not counted, for not every model can do it: {', '.join(left_out)}.")
    return lines
