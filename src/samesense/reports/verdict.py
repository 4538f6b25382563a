"""The answer in plain sentences: which model is best, by how much, how sure that is, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from samesense.execution.speed import Speed
from samesense.reports.significance import LEVEL, MIN_SEEDS, Comparison, p_text
from samesense.reports.standing import Elsewhere, Ranking, Standing
from samesense.results import Measure, measure_of

NAMED = 2
"""Most models named among those from which the best cannot be told apart."""


def verdict(ranking: Ranking) -> list[str]:
    """Return two or three sentences: the best model, its lead over the reference and the second, speed and size."""
    comparisons = compared_best(ranking)
    lead = [_lead(comparisons, ranking.measure)] if comparisons else []
    best = ranking.standings[0].model
    sure = all(comparison.significant for comparison in comparisons) and not any(
        map(is_worse, ranking.elsewhere.get(best, ()))
    )
    return [_first(ranking, sure=sure), *lead, *losses(ranking, best), *_costs(ranking)]


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
        ends = span(-comparison.high, -comparison.low, measure, 1).removesuffix(
            " above" if comparison.high <= 0 else ""
        )
        uncertainty = "" if is_worse(higher) else ", not told apart"
        clauses.append(
            f"on {higher.suite} ({higher.on}) {comparison.reference} is {lead} {model} (95 % interval {ends}, "
            f"{p_text(comparison.p_value)}{uncertainty})"
        )
    return [f"But {'; '.join(clauses)}."] if clauses else []


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
    named = {ranking.reference, *(standing.model for standing in ranking.standings[1:2])}
    return [
        comparison for comparison in ranking.best_others if comparison.reference in named or not comparison.significant
    ]


def _first(ranking: Ranking, *, sure: bool) -> str:
    """Return the sentence about the best model alone: its score, interval and data."""
    best = ranking.standings[0]
    measure = ranking.measure
    score = f"{measure.label} {short(best.score, measure)}"
    runs = f", mean of {best.seeds} seeds" if best.seeds > 1 else ""
    interval = f"95 % interval {short(best.low, measure)} to {short(best.high, measure)}"
    one_of_several = len(ranking.counted) == 1 < len(ranking.suites)
    of_suite = f" ({ranking.suite})" if one_of_several and ranking.suite not in ranking.on else ""
    on = f"on {ranking.on}{of_suite}, {ranking.n:,} examples"
    if len(ranking.standings) == 1:
        return f"{best.model} has {score} ({interval}{runs}) {on}."
    claim = "is the best" if sure else "has the highest score"
    return f"{best.model} {claim} of {len(ranking.standings)} models: {score} ({interval}{runs}) {on}."


def _lead(comparisons: Sequence[Comparison], measure: Measure) -> str:
    """Return how far the best is above the models that it is compared with."""
    sure = [f"{_above(comparison, measure)}" for comparison in comparisons if comparison.significant]
    close = sorted(
        (comparison for comparison in comparisons if not comparison.significant),
        key=lambda comparison: comparison.difference,
    )
    unsure = [f"{comparison.reference} ({_above(comparison, measure, short=True)})" for comparison in close[:NAMED]]
    unsure += [f"{len(close) - NAMED} more"] if len(close) > NAMED else []
    clauses = [f"is {' and '.join(sure)}"] if sure else []
    clauses += [f"cannot be told apart from {' or '.join(unsure)}"] if unsure else []
    return f"It {' and '.join(clauses)}."


def _above(comparison: Comparison, measure: Measure, *, short: bool = False) -> str:
    lead = direction(comparison.difference, measure, 1)
    ends = span(comparison.low, comparison.high, measure, 1).removesuffix(" above" if comparison.low >= 0 else "")
    sure = f"95 % interval {ends}, {p_text(comparison.adjusted)}"
    return f"{lead}, {sure}" if short else f"{lead} {comparison.reference} ({sure})"


def _costs(ranking: Ranking) -> list[str]:
    """Return a sentence about the speed and size of the best model and of the reference, or else of the second."""
    best, *rivals = ranking.standings
    rival = next(
        (standing for standing in rivals if standing.model == ranking.reference), rivals[0] if rivals else None
    )
    costs = [(standing, _cost(standing)) for standing in (best, rival) if standing is not None and _cost(standing)]
    if not costs:
        return []
    arithmetics = {standing.computed for standing, _ in costs if standing.speed is not None}
    # An arithmetic that all share is named once, in front.
    shared = len(arithmetics) == 1
    opening = f"Measured here {arithmetics.pop()}: " if shared else ""
    clauses = [
        f"{standing.model} {cost}{'' if shared or standing.speed is None else f' {standing.computed}'}"
        for standing, cost in costs
    ]
    return [f"{opening}{'; '.join(clauses)}{_neither_faster([standing for standing, _ in costs])}."]


def _neither_faster(standings: Sequence[Standing]) -> str:
    """Return a clause saying that two speeds cannot be told apart, if their ranges overlap; else nothing."""
    speeds = [standing.speed for standing in standings if standing.speed is not None]
    if len(speeds) < 2 or not speeds[0].overlaps(speeds[1]):
        return ""
    return "; the ranges overlap, so neither is known to be faster"


def _cost(standing: Standing) -> str:
    speed = "" if standing.speed is None else f"reads {speed_text(standing.speed)} sentences a second"
    size = ", ".join(filter(None, [parameters_text(standing.parameters), megabytes_text(standing.megabytes)]))
    return f"{speed} ({size})" if speed and size else speed or size


def speed_text(speed: Speed) -> str:
    """Return a speed with its range: ``1,040 (1,010 to 1,060)``."""
    return f"{count_text(speed.median)} ({count_text(speed.low)} to {count_text(speed.high)})"


def short(value: float, measure: Measure) -> str:
    """Return a share or correlation times 100 with one decimal, and any other figure as its measure shows it."""
    return f"{measure.factor * value:z.1f}" if measure.factor == 100 else measure.text(value)


def direction(difference: float, measure: Measure, digits: int | None = None) -> str:
    """Return a difference in words: ``17.9 above``, ``less than 0.1 below``, ``equal to``."""
    if not difference:
        return "equal to"
    decimals = measure.digits if digits is None else digits
    amount = f"{measure.factor * abs(difference):.{decimals}f}"
    amount = amount if float(amount) else f"less than {10**-decimals:.{decimals}f}"
    return f"{amount} {'above' if difference > 0 else 'below'}"


def span(low: float, high: float, measure: Measure, digits: int | None = None) -> str:
    """Return an interval of differences without signs: ``15.3 to 20.6 above``, ``0.4 below to 1.0 above``."""
    decimals = measure.digits if digits is None else digits
    ends = [f"{measure.factor * abs(end):.{decimals}f}" for end in (low, high)]
    if low >= 0:
        return f"{ends[0]} to {ends[1]} above"
    if high <= 0:
        return f"{ends[1]} to {ends[0]} below"
    return f"{ends[0]} below to {ends[1]} above"


def count_text(number: float) -> str:
    """Return a count or a speed with about three significant digits: ``1,040``, ``23``, ``1.7``."""
    if number < 10:
        return f"{number:.1f}"
    scale = 10 ** max(0, len(str(int(number))) - 3)
    return f"{round(number / scale) * scale:,}"


def parameters_text(parameters: int | None) -> str:
    """Return the number of parameters of a model; empty if unknown."""
    return "" if parameters is None else f"{parameters / 1e6:.1f} million parameters"


def megabytes_text(megabytes: float | None) -> str:
    """Return the size of a model on disk; empty if unknown."""
    return "" if megabytes is None else f"{megabytes:.1f} MB on disk"
