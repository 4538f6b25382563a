"""The page of one training run: whether it helped, and what is behind that; laid out as the page of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from samesense.errors import MissingExtraError
from samesense.reports.details import SHADES, Case, against_each_other, against_gold, shown_cases
from samesense.reports.figures.distribution import NARROW as NARROW_PANEL
from samesense.reports.figures.distribution import distribution
from samesense.reports.figures.overview import NARROW, WIDE, Place, rows_by_set
from samesense.reports.figures.plot import Plot, Style
from samesense.reports.figures.run import END, START, cones, dev_curve, extrapolated, loss_curve
from samesense.reports.markup import Html, by_screen, element, figure, folded, joined, table
from samesense.reports.page import document
from samesense.reports.run_verdict import Finding, Verdict
from samesense.reports.store import Run
from samesense.types import Evidence, Floats, Marked, Pair

TESTED = (
    "Paired bootstrap over the same examples; better or worse where the interval leaves out 0. Each set is tested by "
    "itself."
)

APART = (
    "Start and trained model on each set, with 95 % intervals, and beside the name of the set the difference with its "
    "own. Both models score the same examples, so a difference can be clear where the intervals of the two overlap."
)

STYLES: Mapping[str, Style] = {"start": START, "trained": END}

PLACED = (
    "Percentile: share of pairs that are less similar, in per cent. Shown are the pairs whose percentiles differ most."
)


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """What the page of a run shows."""

    name: str  # of the run
    verdict: Verdict
    history: Run  # dev scores and losses along the steps
    # scores of the start and of the trained model, set by set, that of the verdict first; empty for no start
    before: Sequence[Evidence] = ()  # of a model called start
    after: Sequence[Evidence] = ()  # of one called trained
    cones: tuple[Floats | None, Floats | None] = (None, None)  # cosines of random pairs before and after
    marked: Mapping[Pair, tuple[Marked, Marked]] = field(default_factory=dict)  # shares of words in the trained scores
    record: Mapping[str, Any]  # manifest of the run
    selecting: str = "on dev"  # the pairs whose scores along the steps the history has


def run_page(page: RunPage) -> str:
    """Lay out the page of a run as one self-contained HTML page, the same for the same content."""
    sections = [
        ("training", "Training", _training(page)),
        ("scores", "Scores by label", _scores(page)),
        ("errors", "Worst errors", _errors(page)),
        ("cones", "Cones before and after", _cones(page)),
        ("more-data", "More data", _more_data(page)),
        ("run", "The run", _run(page)),
    ]
    sections = [one for one in sections if one[2]]
    links = [element("a", heading, href=f"#{name}") for name, heading, _ in sections]
    shown = (element("section", element("h2", heading), inside, id=name) for name, heading, inside in sections)
    return document(
        page.name, joined([element("h1", page.name), _opening(page), element("nav", joined(links)), *shown])
    )


def _opening(page: RunPage) -> Html:
    """Return the verdict first, then its figure, then what follows from it, then the sets it rests on."""
    verdict = page.verdict
    answer = verdict.task.line() if verdict.task else f"No verdict: {verdict.reason}"
    parts = [_sentence(answer, "answer")]
    harmed = [one.dataset for one in verdict.guards if one.word == "worse"]
    if harmed:
        parts.append(_sentence(f"Worse on what must not suffer: {', '.join(harmed)}", "answer"))
    dev = page.history.curve
    if verdict.findings:
        sizes = (("opening", WIDE), ("opening-narrow", NARROW))
        parts.append(_drawn(*(partial(_apart, verdict.findings, name, size) for name, size in sizes), one=True))
    elif dev is not None:
        parts.append(_drawn(lambda: dev_curve(dev, page.selecting)))
    more = [*verdict.problems, *(one.line() for one in (verdict.merge, verdict.curve) if one)]
    parts += [_sentence(line) for line in [*more, *([verdict.kept] if verdict.kept else [])]]
    if verdict.advice:
        parts += [element("h3", "What to do"), element("ul", *(element("li", one) for one in verdict.advice))]
    if verdict.findings:
        header, rows = verdict.table()
        shown = map(_row, verdict.findings, rows)
        parts.append(table([*header[:-1], "examples", ""], shown, class_="numbers"))
        parts.append(element("p", TESTED, class_="note"))
    return element("section", joined(parts), id="answer")


def _sentence(line: str, class_: str = "lead") -> Html:
    return element("p", f"{line[:1].upper()}{line[1:].removesuffix('.')}.", class_=class_)


def _row(one: Finding, cells: Sequence[str]) -> list[object]:
    """Return a row of the verdict's table with its examples; the interval of a figure shows when it is pointed at."""
    name, start, end, *difference, word = cells
    figures: list[object] = []
    for shown, (_, _, low, high) in zip((start, end), one.sides, strict=True):
        ends = [one.measure.text(end) for end in (low, high) if end is not None]
        figures.append(element("td", shown, title=f"95 % interval {' to '.join(ends)}" if ends else ""))
    return [
        name, *figures, *difference, f"{one.n:,}", element("td", word, class_="undefined" if word == "worse" else "")
    ]  # fmt: skip


def _apart(findings: Sequence[Finding], name: str, size: tuple[float, float]) -> Plot:
    """Draw the start and the trained model on each set; names of sets, differences and words are the titles."""
    sets = {}
    for one in findings:
        interval = one.interval.replace(" ", "\N{NO-BREAK SPACE}")  # stays on one line
        sets[f"{one.name}:\n{one.word}, {one.lead} ({interval})"] = _places(one)
    score = " and ".join(dict.fromkeys(one.measure.heading for one in findings))
    return rows_by_set(sets, styles=STYLES, score=score, name=name, caption=APART, size=size)


def _places(one: Finding) -> list[Place]:
    """Return the two models with their intervals as they are shown; where there is no interval, it is the score."""
    places = []
    for model, score, low, high in one.sides:
        low_end, high_end = (one.measure.factor * (score if end is None else end) for end in (low, high))
        places.append(Place(model, one.measure.factor * score, low_end, high_end))
    return places


def _drawn(*draw: Callable[[], Plot], one: bool = False) -> Html:
    """Return figures side by side, or ``one`` in its sizes by screen; without matplotlib, what draws them."""
    try:
        plots = [own() for own in draw]
        return by_screen(plots) if one else element("div", *map(figure, plots), class_="abreast")
    except MissingExtraError as error:
        return element("p", f"No figure: {error}", class_="note")


def _training(page: RunPage) -> Html | None:
    dev, losses = page.history.curve, page.history.losses
    if not page.verdict.findings:
        dev = None  # the page opens with it
    if dev is None and losses is None:
        return None
    shown = [lambda: dev_curve(dev, page.selecting)] if dev is not None else []
    shown += [lambda: loss_curve(losses)] if losses is not None else []
    return _drawn(*shown)


def _scores(page: RunPage) -> Html | None:
    shown = [one for one in (*page.before[:1], *page.after[:1]) if one.has_scores]
    if not shown or page.verdict.task is None:
        return None
    return _drawn(lambda: distribution(shown, styles=STYLES, name="scores", panel=NARROW_PANEL))


def cases_of(before: Sequence[Evidence], after: Sequence[Evidence]) -> dict[str, list[Case]]:
    """Return by their titles the pairs that the trained model places worst, and those that training moved most."""
    found = {}
    for own in after:
        if not own.has_scores:
            continue
        found[f"{own.dataset}: trained against the labels"] = against_gold(own)
        start = next((one for one in before if one.dataset == own.dataset), None)
        if start is not None:
            found[f"{own.dataset}: moved most by training"] = against_each_other(start, own)
    return {title: cases for title, cases in found.items() if cases}


def _errors(page: RunPage) -> Html | None:
    parts: list[Html] = []
    for title, cases in cases_of(page.before, page.after).items():
        shown = shown_cases(cases, page.marked)
        parts.append(folded(title, shown) if parts else joined([element("h3", title), shown]))
    note = f"{PLACED} {SHADES.format('the trained')}" if page.marked else PLACED
    return joined([element("p", note, class_="note"), *parts]) if parts else None


def _cones(page: RunPage) -> Html | None:
    before, after = page.cones
    if after is None:
        return None
    means = " and ".join(
        f"{one.mean():.3f} {when}" for one, when in ((before, "before"), (after, "after")) if one is not None
    )
    said = f"The mean cosine of two random texts is {means}. The nearer to 1, the narrower the cone in which all lie."
    return joined([element("p", said), _drawn(lambda: cones(before, after))])


def _more_data(page: RunPage) -> Html | None:
    curve = page.verdict.curve
    if curve is None:
        return None
    return joined([_sentence(curve.line()), _drawn(lambda: extrapolated(curve.points, curve.band))])


def _run(page: RunPage) -> Html:
    """Return the data and the settings, folded."""
    record = page.record
    data = [[part, one["source"], f"{one['rows']:,}"] for part, one in record["data"].items()]
    settings = [[name, str(value)] for name, value in record["settings"].items() if value not in (None, (), [], {}, "")]
    notes = [element("li", line) for line in record.get("summary", [])]
    return joined(
        [
            table(["data", "source", "rows"], data, class_="numbers"),
            element("ul", *notes) if notes else "",
            folded("Settings", table(["setting", ""], settings)),
            folded("Versions", table(["package", ""], list(record.get("versions", {}).items()))),
        ]
    )
