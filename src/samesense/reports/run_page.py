"""The page of one training run: whether training helped, with the evidence; laid out like a comparison page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from samesense.errors import MissingExtraError
from samesense.places import name_without_folder
from samesense.reports.details import PERCENTILES, SHADES, Case, against_each_other, against_gold, shown_cases
from samesense.reports.figures.distribution import NARROW as NARROW_PANEL
from samesense.reports.figures.distribution import distribution
from samesense.reports.figures.overview import NARROW, WIDE, ModelScore, rows_by_set
from samesense.reports.figures.plot import Plot, Style
from samesense.reports.figures.run import END, START, closeness, dev_curve, extrapolated, loss_curve, term_curve
from samesense.reports.markup import Html, by_screen, element, figure, folded, items, joined, table
from samesense.reports.page import chapters, document
from samesense.reports.run_verdict import Finding, Verdict, Word
from samesense.reports.store import IF_EQUAL, Run
from samesense.results.markup import as_sentence
from samesense.types import Evidence, Floats, Marked, Pair

TEST_NOTE = (
    "Paired bootstrap over the same examples; better or worse where the interval leaves out 0. Each set is tested by "
    "itself."
)

SETS_CAPTION = (
    "Start and trained model on each set, with 95 % intervals. Beside the name of a set stand the difference and its "
    "interval. Both models score the same examples, so a difference can be clear where their own intervals overlap."
)

STYLES: Mapping[str, Style] = {"start": START, "trained": END}

ERRORS_NOTE = f"{PERCENTILES} Shown are the pairs whose percentiles differ most."

ANSWERS: Mapping[Word, str] = {
    "better": "Training helped",
    "no difference": "Training made no difference that was shown",
    "worse": "Training did harm",
}
"""The result in a few words."""


HALVES = ("scores", "closeness")
"""Sections that stand side by side on a wide screen."""

VERSIONS = ("samesense", "sentence-transformers", "torch")
"""Packages whose versions stand at the top; all others are folded at the end."""


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """The content of the page of a run."""

    name: str  # of the run
    verdict: Verdict
    history: Run  # dev scores and losses along the steps
    # Scores on each set, the set of the verdict first; empty without a start.
    before: Sequence[Evidence] = ()  # of a model named "start"
    after: Sequence[Evidence] = ()  # of a model named "trained"
    cones: tuple[Floats | None, Floats | None] = (None, None)  # cosines of random pairs before and after
    marked: Mapping[Pair, tuple[Marked, Marked]] = field(default_factory=dict)  # shares of words in the trained scores
    record: Mapping[str, Any]  # manifest of the run
    selecting: str = "on dev"  # the pairs on which the history has scores, in words


def run_page(page: RunPage) -> str:
    """Lay out the page of a run as one self-contained HTML page, the same for the same content."""
    nav, sections = chapters(
        [
            ("errors", "Worst errors", _errors(page)),
            ("training", "Training", _training(page)),
            ("scores", "Scores by label", _scores(page)),
            ("closeness", "How close random texts are, before and after", _closeness(page)),
            ("more-data", "More data", _more_data(page)),
            ("run", "The run", _run(page)),
        ],
        HALVES,
    )
    title = title_of(page)
    heading = [element("h1", title), element("p", _describe_versions(page), class_="note")]
    return document(title, joined([*heading, _opening(page), nav, element("div", *sections, class_="halves")]))


def title_of(page: RunPage) -> str:
    """Return what was trained, on what, by which method."""
    record = page.record
    data = name_without_folder(record["data"].get("train", {}).get("source", ""))
    start = Path(str(record["settings"].get("model", ""))).name
    words = [page.name, f": {start}" if start else "", f" trained on {data}" if data else "", f" by {record['method']}"]
    return "".join(words)


def _describe_versions(page: RunPage) -> str:
    """Return the date and the versions that figures depend on."""
    versions = page.record.get("versions", {})
    date = str(page.record.get("started", ""))[: len("2026-01-31")]
    packages = [f"{name} {versions[name]}" for name in VERSIONS if name in versions]
    return ", ".join(filter(None, [date, *packages]))


def _opening(page: RunPage) -> Html:
    """Return the verdict, its figure, the advice, then the table of the sets behind it."""
    verdict = page.verdict
    answer = _answer(verdict.task) if verdict.task else f"No verdict: {verdict.reason}"
    blocks = [_sentence(answer, "answer")]
    harmed = [guard.dataset for guard in verdict.guards if guard.word == "worse"]
    if harmed:
        blocks.append(_sentence(f"Worse on what must not suffer: {', '.join(harmed)}", "answer"))
    dev = page.history.curve
    if verdict.findings:
        sizes = (("opening", WIDE), ("opening-narrow", NARROW))
        blocks.append(
            _drawn(
                *(partial(_scores_by_set, verdict.findings, name, size) for name, size in sizes), one_per_screen=True
            )
        )
    elif dev is not None:
        blocks.append(_drawn(lambda: dev_curve(dev, page.selecting)))
    lines = [*verdict.problems, *(follow_up.line() for follow_up in (verdict.merge, verdict.curve) if follow_up)]
    lines += filter(None, (verdict.keep_reason, verdict.refit))
    blocks += [_sentence(line) for line in lines]
    if verdict.advice:
        blocks += [element("h3", "What to do"), items(verdict.advice)]
    if verdict.findings:
        header, rows = verdict.table()
        table_rows = map(_row, verdict.findings, rows)
        blocks.append(table([*header[:-1], "examples", "verdict"], table_rows, class_="numbers"))
        blocks.append(element("p", TEST_NOTE, class_="note"))
    return element("section", joined(blocks), id="answer")


def _answer(finding: Finding) -> str:
    """Return the result in one sentence: what training did, both figures, the difference and the examples."""
    difference = f"{finding.lead} (95 % interval {finding.interval})"
    return f"{ANSWERS[finding.word]} on {finding.dataset}: {finding.figures}, {difference}, {finding.examples()}"


def _sentence(line: str, class_: str = "lead") -> Html:
    return element("p", as_sentence(line), class_=class_)


def _row(finding: Finding, cells: Sequence[str]) -> list[object]:
    """Return a row of the verdict's table with its number of examples; tooltips have the intervals of the figures."""
    name, start, end, *difference, word = cells
    figures: list[object] = []
    for text, (_, _, low, high) in zip((start, end), finding.sides, strict=True):
        ends = [finding.measure.text(end) for end in (low, high) if end is not None]
        figures.append(element("td", text, title=f"95 % interval {' to '.join(ends)}" if ends else ""))
    return [
        name,
        *figures,
        *difference,
        f"{finding.n:,}",
        element("td", word, class_="undefined" if word == "worse" else ""),
    ]


def _scores_by_set(findings: Sequence[Finding], name: str, size: tuple[float, float]) -> Plot:
    """Draw the start and the trained model on each set, titled with the set, the word and the difference."""
    sets = {}
    for finding in findings:
        interval = finding.interval.replace(" ", "\N{NO-BREAK SPACE}")  # stays on one line
        sets[f"{finding.name}:\n{finding.word}, {finding.lead} ({interval})"] = _scores_of(finding)
    score = " and ".join(dict.fromkeys(finding.measure.heading for finding in findings))
    return rows_by_set(sets, styles=STYLES, score=score, name=name, caption=SETS_CAPTION, size=size)


def _scores_of(finding: Finding) -> list[ModelScore]:
    """Return the two models with their intervals in shown units; a missing interval shrinks to the score."""
    model_scores = []
    for model, score, low, high in finding.sides:
        low_end, high_end = (finding.measure.factor * (score if end is None else end) for end in (low, high))
        model_scores.append(ModelScore(model, finding.measure.factor * score, low_end, high_end))
    return model_scores


def _drawn(*draw: Callable[[], Plot], one_per_screen: bool = False) -> Html:
    """Return figures side by side, or with ``one_per_screen`` one figure in its sizes for wide and narrow screens.

    Without matplotlib, return a note on how to install it.
    """
    try:
        plots = [draw_plot() for draw_plot in draw]
        if one_per_screen:
            return by_screen(plots)
        return element("div", *map(figure, plots), class_="abreast")
    except MissingExtraError as error:
        return element("p", f"No figure: {error}", class_="note")


def _training(page: RunPage) -> Html | None:
    dev = page.history.curve
    losses = page.history.losses
    if not page.verdict.findings:
        dev = None  # the page opens with it
    if dev is None and losses is None:
        return None
    drawings = []
    if dev is not None:
        drawings.append(partial(dev_curve, dev, page.selecting))
    if losses is not None:
        drawings.append(partial(loss_curve, losses))
    terms = page.history.terms
    for name, term in terms.items():
        if not name.endswith(IF_EQUAL):
            drawings.append(partial(term_curve, name, term, terms.get(f"{name}{IF_EQUAL}")))
    return _drawn(*drawings)


def _scores(page: RunPage) -> Html | None:
    scored = [evidence for evidence in (*page.before[:1], *page.after[:1]) if evidence.has_scores]
    if not scored or page.verdict.task is None:
        return None
    return _drawn(lambda: distribution(scored, styles=STYLES, name="scores", panel=NARROW_PANEL))


def cases_of(before: Sequence[Evidence], after: Sequence[Evidence]) -> dict[str, list[Case]]:
    """Return by title the pairs that the trained model ranks worst, and those that training moved most."""
    cases_by_title = {}
    for trained in after:
        if not trained.has_scores:
            continue
        cases_by_title[f"{trained.dataset}: trained against the labels"] = against_gold(trained)
        start = next((evidence for evidence in before if evidence.dataset == trained.dataset), None)
        if start is not None:
            cases_by_title[f"{trained.dataset}: moved most by training"] = against_each_other(start, trained)
    return {title: cases for title, cases in cases_by_title.items() if cases}


def _errors(page: RunPage) -> Html | None:
    blocks: list[Html] = []
    for title, cases in cases_of(page.before, page.after).items():
        pairs_table = shown_cases(cases, page.marked)
        blocks.append(folded(title, pairs_table) if blocks else joined([element("h3", title), pairs_table]))
    note = f"{ERRORS_NOTE} {SHADES.format('the trained')}" if page.marked else ERRORS_NOTE
    if not blocks:
        return None
    return joined([element("p", note, class_="note"), *blocks])


def _closeness(page: RunPage) -> Html | None:
    before, after = page.cones
    if after is None:
        return None
    means = " and ".join(
        f"{cosines.mean():.3f} {when}"
        for cosines, when in ((before, "before"), (after, "after"))
        if cosines is not None
    )
    sentence = f"The mean cosine of two random texts is {means}. The nearer to 1, the less a cosine tells texts apart."
    return joined([element("p", sentence), _drawn(lambda: closeness(before, after))])


def _more_data(page: RunPage) -> Html | None:
    curve = page.verdict.curve
    if curve is None:
        return None
    return joined([_sentence(curve.line()), _drawn(lambda: extrapolated(curve.points, curve.band))])


def _run(page: RunPage) -> Html:
    """Return the data and the settings, folded."""
    record = page.record
    data = [[split, described["source"], f"{described['rows']:,}"] for split, described in record["data"].items()]
    settings = [[name, str(value)] for name, value in record["settings"].items() if value not in (None, (), [], {}, "")]
    return joined(
        [
            table(["data", "source", "rows"], data, class_="numbers"),
            items(record.get("summary", [])),
            folded("Settings", table(["setting", "value"], settings)),
            folded("Versions", table(["package", "version"], list(record.get("versions", {}).items()))),
        ]
    )
