"""The answer in plain sentences: which model is best, by how much, how sure that is, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from samesense.execution.speed import Speed
from samesense.reports.significance import LEVEL, MIN_SEEDS, Comparison, p_text
from samesense.reports.standing import Elsewhere, Ranking, Standing
from samesense.results.measures import Measure, measure_of

NAMED = 2
"""Most models named among those from which the best cannot be told apart."""


def verdict(ranking: Ranking) -> list[str]:
    """Return two or three sentences: the best model, its lead over the reference and the second, speed and size."""
    comparisons = compared_best(ranking)
    best = ranking.standings[0].model
    all_significant = all(comparison.significant for comparison in comparisons)
    worse_elsewhere = any(map(is_worse, ranking.elsewhere.get(best, ())))
    sentences = [_first(ranking, sure=all_significant and not worse_elsewhere)]
    if comparisons:
        sentences.append(_lead(comparisons, ranking.measure))
    return [*sentences, *losses(ranking, best), *_costs(ranking)]


def is_worse(elsewhere: Elsewhere) -> bool:
    """Return whether the model is worse in a suite, by the unadjusted p-value: this claims less for the best."""
    return elsewhere.comparison.p_value < LEVEL


def losses(ranking: Ranking, model: str) -> list[str]:
    """Return a sentence about the suites in which another model has a higher figure than this one."""
    clauses = []
    for higher in ranking.elsewhere.get(model, ()):
        measure = measure_of(higher.metric)
        comparison = higher.comparison
        lead = direction(-comparison.difference, measure, 1)
        ends = bare_span(-comparison.high, -comparison.low, measure)
        uncertainty = "" if is_worse(higher) else ", not told apart"
        clauses.append(
            f"on {higher.suite} ({higher.on}) {comparison.reference} is {lead} {model} (95 % interval {ends}, "
            f"{p_text(comparison.p_value)}{uncertainty})"
        )
    if not clauses:
        return []
    return [f"But {'; '.join(clauses)}."]


def verdict_notes(ranking: Ranking) -> list[str]:
    """Return what limits the verdict."""
    notes = []
    if ranking.unranked:
        notes.append(f"Not ranked, for want of a figure on every set: {', '.join(ranking.unranked)}.")
    if any(comparison.scope == "runs" for comparison in compared_best(ranking)):
        notes.append(
            f"A trained model stands for its own runs: with fewer than {MIN_SEEDS} seeds nothing is said of methods."
        )
    disturbed = next((standing.disturbed for standing in ranking.standings if standing.disturbed), "")
    if disturbed:
        notes.append(
            f"The machine was not quiet while speeds were measured ({disturbed}): compare ranges, or measure again."
        )
    return notes


def compared_best(ranking: Ranking) -> list[Comparison]:
    """Return the comparisons of the best model that the verdict reports.

    They are those with the reference and with the second, and with every other model from which the best cannot be
    told apart.
    """
    references = {ranking.reference, *(standing.model for standing in ranking.standings[1:2])}
    return [
        comparison
        for comparison in ranking.best_others
        if comparison.reference in references or not comparison.significant
    ]


def _first(ranking: Ranking, *, sure: bool) -> str:
    """Return the sentence about the best model alone: its score, interval and data."""
    best = ranking.standings[0]
    figure = figure_text(best, ranking.measure)
    data = f"on {ranking.on}"
    one_of_several = len(ranking.counted) == 1 < len(ranking.suites)
    if one_of_several and ranking.suite not in ranking.on:
        data += f" ({ranking.suite})"  # the name of a data set alone does not say which suite counts
    data += f", {ranking.n:,} examples"
    if len(ranking.standings) == 1:
        return f"{best.model} has {figure} {data}."
    claim = "is the best" if sure else "has the highest score"
    return f"{best.model} {claim} of {len(ranking.standings)} models: {figure} {data}."


def _lead(comparisons: Sequence[Comparison], measure: Measure) -> str:
    """Return how far the best is above the models that it is compared with."""
    sure = [_above(comparison, measure) for comparison in comparisons if comparison.significant]
    close = sorted(
        (comparison for comparison in comparisons if not comparison.significant),
        key=lambda comparison: comparison.difference,
    )
    unsure = [f"{comparison.reference} ({_above(comparison, measure, short=True)})" for comparison in close[:NAMED]]
    if len(close) > NAMED:
        unsure.append(f"{len(close) - NAMED} more")
    clauses = []
    if sure:
        clauses.append(f"is {' and '.join(sure)}")
    if unsure:
        clauses.append(f"cannot be told apart from {' or '.join(unsure)}")
    return f"It {' and '.join(clauses)}."


def _above(comparison: Comparison, measure: Measure, *, short: bool = False) -> str:
    """Return the lead over another model with its interval and p-value; ``short`` leaves out the model's name."""
    lead = direction(comparison.difference, measure, 1)
    ends = bare_span(comparison.low, comparison.high, measure)
    sure = f"95 % interval {ends}, {p_text(comparison.adjusted)}"
    if short:
        return f"{lead}, {sure}"
    return f"{lead} {comparison.reference} ({sure})"


def _costs(ranking: Ranking) -> list[str]:
    """Return a sentence about the speed and size of the best model and of the reference, or else of the second."""
    best, *rivals = ranking.standings
    references = [standing for standing in rivals if standing.model == ranking.reference]
    compared = [standing for standing in (best, *(references or rivals)[:1]) if _cost(standing)]
    if not compared:
        return []
    arithmetics = {standing.computed for standing in compared if standing.speed is not None}
    # An arithmetic that all share is named once, in front; others are named with each model.
    shared = len(arithmetics) == 1
    opening = f"Measured here {arithmetics.pop()}: " if shared else ""
    clauses = []
    for standing in compared:
        clause = f"{standing.model} {_cost(standing)}"
        if standing.speed is not None and not shared:
            clause += f" {standing.computed}"
        clauses.append(clause)
    return [f"{opening}{'; '.join(clauses)}{_neither_faster(compared)}."]


def _neither_faster(standings: Sequence[Standing]) -> str:
    """Return a clause saying that two speeds cannot be told apart, if their ranges overlap; else nothing."""
    speeds = [standing.speed for standing in standings if standing.speed is not None]
    if len(speeds) < 2 or not speeds[0].overlaps(speeds[1]):
        return ""
    return "; the ranges overlap, so neither is known to be faster"


def _cost(standing: Standing) -> str:
    """Return speed and size of a model as the end of a sentence; empty if neither is known."""
    speed = ""
    if standing.speed is not None:
        speed = f"reads {speed_text(standing.speed)} sentences a second"
    size = ", ".join(filter(None, [parameters_text(standing.parameters), megabytes_text(standing.megabytes)]))
    if speed and size:
        return f"{speed} ({size})"
    return speed or size


def speed_text(speed: Speed) -> str:
    """Return a speed with its range: ``1,040 (1,010 to 1,060)``."""
    return f"{count_text(speed.median)} ({count_text(speed.low)} to {count_text(speed.high)})"


def figure_text(standing: Standing, measure: Measure) -> str:
    """Return the figure of a model with its interval, and of how many seeds it is the mean."""
    runs = f", mean of {standing.seeds} seeds" if standing.seeds > 1 else ""
    low, high = (short(end, measure) for end in (standing.low, standing.high))
    return f"{measure.label} {short(standing.score, measure)} (95 % interval {low} to {high}{runs})"


def short(value: float, measure: Measure) -> str:
    """Return a share or correlation times 100 with one decimal, and any other figure as its measure shows it."""
    if measure.factor == 100:
        return f"{measure.factor * value:z.1f}"
    return measure.text(value)


def direction(difference: float, measure: Measure, digits: int | None = None) -> str:
    """Return a difference in words: ``17.9 above``, ``less than 0.1 below``, ``equal to``."""
    if not difference:
        return "equal to"
    decimals = measure.digits if digits is None else digits
    amount = f"{measure.factor * abs(difference):.{decimals}f}"
    if not float(amount):
        amount = f"less than {10**-decimals:.{decimals}f}"
    if difference > 0:
        return f"{amount} above"
    return f"{amount} below"


def span(low: float, high: float, measure: Measure, digits: int | None = None) -> str:
    """Return an interval of differences without signs: ``15.3 to 20.6 above``, ``0.4 below to 1.0 above``."""
    decimals = measure.digits if digits is None else digits
    ends = [f"{measure.factor * abs(end):.{decimals}f}" for end in (low, high)]
    if low >= 0:
        return f"{ends[0]} to {ends[1]} above"
    if high <= 0:
        return f"{ends[1]} to {ends[0]} below"
    return f"{ends[0]} below to {ends[1]} above"


def bare_span(low: float, high: float, measure: Measure) -> str:
    """Return an interval for a sentence that already says "above": with one decimal, ``15.3 to 20.6``."""
    interval = span(low, high, measure, 1)
    if low >= 0:
        return interval.removesuffix(" above")
    return interval


def count_text(number: float) -> str:
    """Return a count or a speed with about three significant digits: ``1,040``, ``23``, ``1.7``."""
    if number < 10:
        return f"{number:.1f}"
    scale = 10 ** max(0, len(str(int(number))) - 3)
    return f"{round(number / scale) * scale:,}"


def parameters_text(parameters: int | None) -> str:
    """Return the number of parameters of a model; empty if unknown."""
    if parameters is None:
        return ""
    return f"{parameters / 1e6:.1f} million parameters"


def megabytes_text(megabytes: float | None) -> str:
    """Return the size of a model on disk; empty if unknown."""
    if megabytes is None:
        return ""
    return f"{megabytes:.1f} MB on disk"
