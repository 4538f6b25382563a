"""The answer in plain sentences: which model is best, by how much, how sure that is, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from samesense.execution.speed import Speed
from samesense.reports.significance import LEVEL, MIN_SEEDS, Comparison, p_text
from samesense.reports.standing import Elsewhere, Ranking, Standing
from samesense.results import Measure, measure_of

NAMED = 2
"""Most models that are named of those from which the best cannot be told apart."""


def verdict(ranking: Ranking) -> list[str]:
    """Return two or three sentences: the best model, its lead over the reference and the second, speed and size."""
    made = compared_best(ranking)
    lead = [_lead(made, ranking.measure)] if made else []
    best = ranking.places[0].model
    sure = all(one.significant for one in made) and not any(map(is_worse, ranking.elsewhere.get(best, ())))
    return [_first(ranking, sure=sure), *lead, *losses(ranking, best), *_costs(ranking)]


def is_worse(one: Elsewhere) -> bool:
    """Return whether a model is worse in a suite: by that comparison alone, to claim less."""
    return one.comparison.p_value < LEVEL


def losses(ranking: Ranking, model: str) -> list[str]:
    """Return a sentence about the suites in which another model has a higher figure than this one."""
    clauses = []
    for one in ranking.elsewhere.get(model, ()):
        measure, comparison = measure_of(one.metric), one.comparison
        lead = direction(-comparison.difference, measure, 1)
        ends = span(-comparison.high, -comparison.low, measure, 1).removesuffix(
            " above" if comparison.high <= 0 else ""
        )
        told = "" if is_worse(one) else ", not told apart"
        clauses.append(
            f"on {one.suite} ({one.on}) {comparison.reference} is {lead} {model} (95 % interval {ends}, "
            f"{p_text(comparison.p_value)}{told})"
        )
    return [f"But {'; '.join(clauses)}."] if clauses else []


def verdict_notes(ranking: Ranking) -> list[str]:
    """Return what limits the verdict."""
    notes = []
    if ranking.unranked:
        notes.append(f"Not ranked, for want of a figure on every set: {', '.join(ranking.unranked)}.")
    if any(one.scope == "runs" for one in compared_best(ranking)):
        notes.append(
            f"A trained model stands for its own runs: with fewer than {MIN_SEEDS} seeds nothing is said of methods."
        )
    disturbed = next((place.disturbed for place in ranking.places if place.disturbed), "")
    if disturbed:
        notes.append(
            f"The machine was not quiet while speeds were measured ({disturbed}): compare ranges, or measure again."
        )
    return notes


def compared_best(ranking: Ranking) -> list[Comparison]:
    """Return the comparisons of the best that a reader is told of, seen from the best.

    They are those with the reference and with the second, and with every other from which it cannot be told apart.
    """
    told = {ranking.reference, *(place.model for place in ranking.places[1:2])}
    return [one for one in ranking.best_others if one.reference in told or not one.significant]


def _first(ranking: Ranking, *, sure: bool) -> str:
    best, measure = ranking.places[0], ranking.measure
    score = f"{measure.label} {short(best.score, measure)}"
    runs = f", mean of {best.seeds} seeds" if best.seeds > 1 else ""
    interval = f"95 % interval {short(best.low, measure)} to {short(best.high, measure)}"
    one_of_several = len(ranking.counted) == 1 < len(ranking.suites)
    of_suite = f" ({ranking.suite})" if one_of_several and ranking.suite not in ranking.on else ""
    on = f"on {ranking.on}{of_suite}, {ranking.n:,} examples"
    if len(ranking.places) == 1:
        return f"{best.model} has {score} ({interval}{runs}) {on}."
    claim = "is the best" if sure else "has the highest score"
    return f"{best.model} {claim} of {len(ranking.places)} models: {score} ({interval}{runs}) {on}."


def _lead(made: Sequence[Comparison], measure: Measure) -> str:
    """Return how far the best is above the models that it is compared with."""
    sure = [f"{_above(one, measure)}" for one in made if one.significant]
    close = sorted((one for one in made if not one.significant), key=lambda one: one.difference)
    unsure = [f"{one.reference} ({_above(one, measure, short=True)})" for one in close[:NAMED]]
    unsure += [f"{len(close) - NAMED} more"] if len(close) > NAMED else []
    clauses = [f"is {' and '.join(sure)}"] if sure else []
    clauses += [f"cannot be told apart from {' or '.join(unsure)}"] if unsure else []
    return f"It {' and '.join(clauses)}."


def _above(one: Comparison, measure: Measure, *, short: bool = False) -> str:
    lead = direction(one.difference, measure, 1)
    ends = span(one.low, one.high, measure, 1).removesuffix(" above" if one.low >= 0 else "")
    sure = f"95 % interval {ends}, {p_text(one.adjusted)}"
    return f"{lead}, {sure}" if short else f"{lead} {one.reference} ({sure})"


def _costs(ranking: Ranking) -> list[str]:
    """Return a sentence about speed and size of the best model, and of the one it is compared with."""
    best, *others = ranking.places
    other = next((one for one in others if one.model == ranking.reference), others[0] if others else None)
    told = [(one, _cost(one)) for one in (best, other) if one is not None and _cost(one)]
    if not told:
        return []
    how = {one.computed for one, _ in told if one.speed is not None}
    alike = f"Measured here {how.pop()}: " if len(how) == 1 else ""
    shown = [f"{one.model} {cost}{'' if alike or one.speed is None else f' {one.computed}'}" for one, cost in told]
    return [f"{alike}{'; '.join(shown)}{_neither_faster([one for one, _ in told])}."]


def _neither_faster(places: Sequence[Standing]) -> str:
    """Return that two speeds cannot be told apart, where their ranges overlap."""
    speeds = [one.speed for one in places if one.speed is not None]
    if len(speeds) < 2 or not speeds[0].overlaps(speeds[1]):
        return ""
    return "; the ranges overlap, so neither is known to be faster"


def _cost(one: Standing) -> str:
    speed = "" if one.speed is None else f"reads {speed_text(one.speed)} sentences a second"
    size = ", ".join(filter(None, [parameters_text(one.parameters), megabytes_text(one.megabytes)]))
    return f"{speed} ({size})" if speed and size else speed or size


def speed_text(speed: Speed) -> str:
    """Return a speed with its range: ``1,040 (1,010 to 1,060)``."""
    return f"{count_text(speed.median)} ({count_text(speed.low)} to {count_text(speed.high)})"


def short(value: float, measure: Measure) -> str:
    """Return a figure with one decimal where it is a share or a correlation, times 100, else as it is always shown."""
    return f"{measure.factor * value:z.1f}" if measure.factor == 100 else measure.text(value)


def direction(difference: float, measure: Measure, digits: int | None = None) -> str:
    """Return a difference as people read it: ``17.9 above``, ``less than 0.1 below``, ``equal to``."""
    if not difference:
        return "equal to"
    places = measure.digits if digits is None else digits
    shown = f"{measure.factor * abs(difference):.{places}f}"
    shown = shown if float(shown) else f"less than {10**-places:.{places}f}"
    return f"{shown} {'above' if difference > 0 else 'below'}"


def span(low: float, high: float, measure: Measure, digits: int | None = None) -> str:
    """Return an interval of differences without signs: ``15.3 to 20.6 above``, ``0.4 below to 1.0 above``."""
    places = measure.digits if digits is None else digits
    ends = [f"{measure.factor * abs(end):.{places}f}" for end in (low, high)]
    if low >= 0:
        return f"{ends[0]} to {ends[1]} above"
    if high <= 0:
        return f"{ends[1]} to {ends[0]} below"
    return f"{ends[0]} below to {ends[1]} above"


def count_text(number: float) -> str:
    """Return a count or a speed with about three figures: ``1,040``, ``23``, ``1.7``."""
    if number < 10:
        return f"{number:.1f}"
    scale = 10 ** max(0, len(str(int(number))) - 3)
    return f"{round(number / scale) * scale:,}"


def parameters_text(parameters: int | None) -> str:
    """Return the size of a model in numbers, or nothing."""
    return "" if parameters is None else f"{parameters / 1e6:.1f} million parameters"


def megabytes_text(megabytes: float | None) -> str:
    """Return the size of a model on disk, or nothing."""
    return "" if megabytes is None else f"{megabytes:.1f} MB on disk"
