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
from samesense.reports.verdict import count_text, direction, losses, short, span
from samesense.results import Measure

MARGIN = 0.01
"""A cheaper model is recommended up to this far below the highest figure: 1 point of 100.

Few examples show no model to be worse. Without the margin they would recommend a weak model because it is cheap.
"""

ROUNDING = 1e-9
"""Shares such as 193 and 196 of 300 differ by the margin, but for the last digit."""

MARGIN_TEXT = f"{100 * MARGIN:g} point"
"""The margin, as figures are shown."""

POWER = 0.8
"""Chance of showing a difference that the number of needed examples is for."""

MOST_TIMES = 100
"""A difference that needs more than this many times the examples is as good as none."""

NAMED = 3
"""Most models that are named in a sentence; the table has all."""

RULE = (
    "How it is chosen: the highest figure, unless a cheaper model is neither shown to be worse nor more than "
    f"{MARGIN_TEXT} (of 100) below it. Cheapest is the fastest where ranges of speed do not overlap, then the smallest "
    "on disk. Differences are paired over the same examples (bootstrap); p adjusted by Holm over all pairs of models, "
    "in the table over those with the reference alone. All suites weigh equally."
)
"""How a model is recommended, for the page."""

COST_NOTE = (
    "Time: milliseconds a text in batches, of up to 256 of the evaluated texts, after a warm-up and with nothing "
    f"remembered, models in turns, {ROUNDS} rounds, median and range; a cross-encoder reads two texts a pair. Memory: "
    "the peak resident memory of a process of its own that opens the model and reads 64 of these texts, Python and "
    "libraries included, which for a small model are most of it. Disk: the weights."
)
"""How costs are measured, for the page."""


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The model to take, and what it was chosen among."""

    ranking: Ranking
    model: str
    equals: tuple[str, ...]  # models that cannot be told apart from the highest, itself included, the highest first
    near: tuple[str, ...]  # those of them that are at most the margin below it, itself included
    measured: bool  # whether costs were measured
    failures: tuple[Failure, ...] = ()  # of models that have no figure

    @property
    def place(self) -> Standing:
        """The place of the recommended model."""
        return next(place for place in self.ranking.places if place.model == self.model)

    def lines(self) -> list[str]:
        """Return the recommendation in two sentences, then what limits it."""
        choice = _choice(self)
        return [choice, _cost(self), *losses(self.ranking, self.model), *_power(self), *_without_figure(self)]

    def to_dict(self) -> dict[str, Any]:
        """Return the recommendation as plain JSON types: model, figure, cost, and what it was chosen among."""
        place = self.place
        milliseconds = None if place.speed is None else 1000 / place.speed.median
        return {
            "model": self.model,
            "metric": self.ranking.metric,
            "value": place.score,
            "low": place.low,
            "high": place.high,
            "suites": list(self.ranking.counted),
            "n": self.ranking.n,
            "highest": self.equals[0],
            "not_shown_worse": list(self.equals),
            "within_margin": list(self.near),
            "margin": MARGIN,
            "milliseconds": milliseconds,
            "memory_megabytes": place.memory,
            "disk_megabytes": place.megabytes,
            "text": self.lines(),
        }


def recommend(ranking: Ranking, failures: Sequence[Failure] = ()) -> Recommendation:
    """Choose one of the ranked models; see :mod:`samesense.reports.recommendation`."""
    best, *others = ranking.places
    worse = {comparison.reference for comparison in ranking.best_others if comparison.significant}
    equals = [best, *(place for place in others if place.model not in worse)]
    near = [place for place in equals if best.score - place.score <= MARGIN + ROUNDING]
    measured = any(place.speed is not None or place.megabytes is not None for place in ranking.places)
    chosen = _cheapest(near) if measured else best
    return Recommendation(
        ranking=ranking,
        model=chosen.model,
        equals=tuple(place.model for place in equals),
        near=tuple(place.model for place in near),
        measured=measured,
        failures=tuple(failure for failure in failures if failure.model in ranking.unranked),
    )


def _cheapest(places: Sequence[Standing]) -> Standing:
    """Return the fastest; of those whose speeds overlap with its own the smallest; of equally small ones the first.

    A model is only cheaper than the first where both were measured.
    """
    timed = [place for place in places if place.speed is not None]
    if timed and places[0].speed is None:
        return places[0]
    if timed:
        fastest = max(timed, key=lambda place: place.speed.median if place.speed else 0.0)
        places = [place for place in timed if place.speed and fastest.speed and place.speed.overlaps(fastest.speed)]
    if places[0].megabytes is None:
        return places[0]
    return min(places, key=lambda place: place.megabytes or float("inf"))


def _choice(made: Recommendation) -> str:
    """Return the sentence that says which, by how much, and how sure."""
    ranking, place = made.ranking, made.place
    figure = f"{ranking.measure.label} {short(place.score, ranking.measure)}"
    interval = f"95 % interval {short(place.low, ranking.measure)} to {short(place.high, ranking.measure)}"
    runs = f", mean of {place.seeds} seeds" if place.seeds > 1 else ""
    measured = f"{figure} ({interval}{runs}) on {ranking.on}, {ranking.n:,} examples"
    if len(ranking.places) == 1:
        return f"Take {made.model}, the only model with a figure: {measured}."
    if len(made.equals) == 1:
        return f"Take {made.model}: {measured}, {_lead(ranking)}."
    if made.model == made.equals[0]:
        return f"Take {made.model}: {measured}, the highest, and {_not_apart(made)}."
    highest = next(one for one in ranking.best_others if one.reference == made.model)
    if _is_same(highest):
        return f"Take {made.model}: {measured}, equal to {made.equals[0]} on every example{_cheaper(made)}."
    return (
        f"Take {made.model}: it is within {MARGIN_TEXT} of {made.equals[0]}, the highest, and not shown to be worse "
        f"({_difference(highest.turned(), ranking.measure)}){_cheaper(made)}; {measured}."
    )


def _lead(ranking: Ranking) -> str:
    """Return how far the best is above the next, and that it is above every other."""
    following = ranking.places[1].model
    second = next(one for one in ranking.best_others if one.reference == following)
    lead = direction(second.difference, ranking.measure, 1)
    ends = span(second.low, second.high, ranking.measure, 1).removesuffix(" above" if second.low >= 0 else "")
    more = len(ranking.places) - 2
    others = f" and further above the {'other' if more == 1 else f'{more} others'}" if more else ""
    return f"{lead} {following}, the next (95 % interval {ends}, {p_text(second.adjusted)}){others}"


def _not_apart(made: Recommendation) -> str:
    """Return from which models the highest, which is recommended, cannot be told apart, and why none of them is."""
    close = [comparison for comparison in made.ranking.best_others if comparison.reference in made.equals]
    if all(map(_is_same, close)):
        return f"equal to {' and '.join(comparison.reference for comparison in close)} on every example"
    close = sorted(close, key=lambda comparison: comparison.difference)
    shown = [
        f"{comparison.reference} ({_difference(comparison, made.ranking.measure)})" for comparison in close[:NAMED]
    ]
    more = [f"{len(close) - NAMED} more"] if len(close) > NAMED else []
    unsure = f"not shown to be better than {' or '.join([*shown, *more])}"
    if not made.measured:
        return unsure
    equals = [place for place in made.ranking.places if place.model in made.equals]
    if _cheapest(equals).model == made.model:
        return f"{unsure}; none of these is known to be cheaper"
    if len(made.near) > 1:
        return f"{unsure}; of the models within {MARGIN_TEXT} of it none is known to be cheaper"
    return f"{unsure}; no other model is within {MARGIN_TEXT} of it"


def _cheaper(made: Recommendation) -> str:
    """Return by how much the recommended model is cheaper than the highest."""
    highest = next(place for place in made.ranking.places if place.model == made.equals[0])
    speeds = made.place.speed, highest.speed
    if speeds[0] is not None and speeds[1] is not None and not speeds[0].overlaps(speeds[1]):
        return f", at {_share(speeds[1].median / speeds[0].median)} of the time"
    if made.place.megabytes and highest.megabytes and made.place.megabytes < highest.megabytes:
        return f", at {_share(made.place.megabytes / highest.megabytes)} of the size on disk"
    return ""


def _share(ratio: float) -> str:
    """Return a ratio below 1 as people say it: ``a quarter``, ``62 %``, ``0.4 %``."""
    for parts, word in ((2, "half"), (3, "a third"), (4, "a quarter"), (5, "a fifth"), (10, "a tenth")):
        if abs(ratio * parts - 1) < 0.05:
            return f"about {word}"
    return f"{100 * ratio:.0f} %" if ratio >= 0.01 else f"{100 * ratio:.1g} %"


def _is_same(one: Comparison) -> bool:
    return one.difference == one.low == one.high == 0


def _difference(one: Comparison, measure: Measure) -> str:
    """Return the difference of two models with its interval and p-value."""
    if _is_same(one):
        return "equal on every example"
    ends = span(one.low, one.high, measure, 1)
    return f"{direction(one.difference, measure, 1)}, 95 % interval {ends}, {p_text(one.adjusted)}"


def _cost(made: Recommendation) -> str:
    """Return the sentence about time, memory and size of the recommended model and of the highest, or the next."""
    if not made.measured:
        return "What the models cost was not measured."
    others = [place for place in made.ranking.places if place.model != made.model]
    shown = [made.place, *others[:1]]
    costs = [(place.model, cost_text(place)) for place in shown]
    first, *second = [f"{model} takes {cost}" for model, cost in costs if cost]
    where = f" (measured here {made.place.computed})" if made.place.computed else ""
    return f"{'; '.join([first + where, *second])}."


def cost_text(place: Standing) -> str:
    """Return what a model costs: ``3.2 ms a text (3.1 to 3.4), 610 MB of memory and 90.9 MB on disk``."""
    speed = "" if place.speed is None else f"{milliseconds_text(place)} ms a text"
    memory = "" if place.memory is None else f"{count_text(place.memory)} MB of memory"
    size = "" if place.megabytes is None else f"{place.megabytes:.1f} MB on disk"
    costs = [cost for cost in (speed, memory, size) if cost]
    return " and ".join(filter(None, [", ".join(costs[:-1]), *costs[-1:]])) or "an unknown cost"


def milliseconds_text(place: Standing) -> str:
    """Return the milliseconds a text, median and range: ``3.2 (3.1 to 3.4)``."""
    if place.speed is None:
        return ""
    middle, low, high = (_digits(1000 / speed) for speed in (place.speed.median, place.speed.high, place.speed.low))
    return f"{middle} ({low} to {high})"


def _digits(value: float) -> str:
    """Return a positive number with two figures, or whole from 100 on."""
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.{1 - floor(log10(value))}f}"


def needed_examples(one: Comparison, pairs: int) -> int | None:
    """Return how many examples would show a difference as large as this with a chance of 80 %; ``None`` for none.

    The error of the difference is taken from its interval and falls with the root of the examples; the level is
    divided by the number of ``pairs`` of models.

    Source: Cohen (1988), "Statistical Power Analysis for the Behavioral Sciences", with the normal approximation.
    """
    normal = NormalDist()
    error = (one.high - one.low) / (2 * normal.inv_cdf(0.975))
    if not one.difference or not error:
        return None
    reach = normal.inv_cdf(1 - LEVEL / (2 * max(1, pairs))) + normal.inv_cdf(POWER)
    needed = one.n * (reach * error / one.difference) ** 2
    unit: int = 10 ** max(0, floor(log10(needed)) - 1)
    return ceil(needed / unit) * unit


def _power(made: Recommendation) -> list[str]:
    """Return how many examples would tell the recommended model from the highest, or that from the next."""
    close = [one for one in made.ranking.best_others if one.reference in made.equals]
    different = [comparison for comparison in close if not _is_same(comparison)]
    beside = [comparison for comparison in close if comparison.reference == made.model] or different[:1]
    if not beside or _is_same(beside[0]):
        return []
    [one] = beside
    needed = needed_examples(one, made.ranking.pairs)
    if needed is None or needed > MOST_TIMES * one.n:
        return [f"No data of this size would show a difference as small as that of {one.model} and {one.reference}."]
    if needed <= one.n:
        return []
    return [f"To show a difference as large as that of {one.model} and {one.reference}, about {needed:,} examples of "
            f"this kind would be needed; these are {one.n:,}."]  # fmt: skip


def _without_figure(made: Recommendation) -> list[str]:
    """Return which models have no part in the recommendation, and why."""
    reasons = {one.model: one for one in reversed(made.failures)}
    lines = []
    for model in made.ranking.unranked:
        failure = reasons.get(model)
        why = f"undefined on {failure.dataset}: {failure.reason}" if failure else "it lacks a figure on one of the sets"
        lines.append(f"{model} has no part in this: {why}")
    left_out = [suite for suite in made.ranking.suites if suite not in made.ranking.counted]
    if left_out:
        lines.append(f"Not counted, for not every model can do it: {', '.join(left_out)}.")
    return lines
