"""A report as one self-contained HTML file: no network, no script, figures inline, light or dark by preference."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Iterable, Sequence
from importlib.resources import files

from samesense.evaluation.run import EvaluatedModel
from samesense.reports.content import Content
from samesense.reports.details import cases_table, comparison_table, dataset_details
from samesense.reports.figures.plot import variables
from samesense.reports.grid import Cell, Column, Grid
from samesense.reports.markup import Html, by_screen, element, figure, folded, items, joined, table
from samesense.reports.recommendation import COST_NOTE, RULE
from samesense.reports.tables import TitledTable, ranking_cells
from samesense.reports.verdict import direction, span, verdict_notes

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Content Security Policy of a page: it may load nothing, and runs no script but its own."""


def html_page(content: Content) -> str:
    """Lay out a report as one self-contained HTML page, the same for the same content."""
    grids = content.grids()
    environment = table(["environment", "value"], [[name, value] for name, value in content.environment.items()])
    nav, sections = chapters(
        [
            ("data", "The data", joined(map(_table, content.data))),
            *((suite, suite, _suite(content, grids, suite)) for suite in dict.fromkeys(grid.suite for grid in grids)),
            ("figures", "Figures", joined(map(figure, content.general))),
            ("runs", "Runs", joined(map(_table, content.tables))),
            ("datasets", "Data set by data set", _datasets(content)),
            ("models", "Models", _models(content)),
            ("warnings", "Warnings about the data", items(content.warnings)),
            ("left-out", "Not run", _left_out(content)),
            ("time", "Time and environment", joined([_times(content), environment])),
        ]
    )
    incomplete = element("p", content.incomplete, class_="lead") if content.incomplete else ""
    legend = element("p", content.legend(), class_="note")
    heading = element("h1", content.title)
    return document(content.title, joined([heading, incomplete, _opening(content), nav, legend, *sections]))


def chapters(sections: Iterable[tuple[str, str, Html | None]], halves: Collection[str] = ()) -> tuple[Html, list[Html]]:
    """Return links to the sections that are not empty, and these; each comes with its identifier and heading.

    Those named in ``halves`` stand side by side on a wide screen.
    """
    filled = [(name, heading, inside) for name, heading, inside in sections if inside]
    links = [element("a", heading, href=f"#{name}") for name, heading, _ in filled]
    blocks = [
        element("section", element("h2", heading), inside, id=name, class_="half" if name in halves else "")
        for name, heading, inside in filled
    ]
    return element("nav", joined(links)), blocks


def document(title: str, body: Html, *, style: str = "", script: str = "") -> str:
    """Return a whole HTML page in the common style, to which ``style`` is added, with its only ``script``, if any."""
    policy = POLICY
    if script:
        # A browser runs what has this hash, and nothing that a text may have smuggled in.
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = f"{POLICY}; script-src 'sha256-{digest}'"
        body = joined([body, Html(f"<script>{script}</script>")])
    head = joined(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            element("title", title),
            element("style", Html(_style() + style)),
        ]
    )
    whole = f"<head>\n{head}\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>"
    return f'<!doctype html>\n<html lang="en">\n{whole}\n</html>\n'


def html_tables(content: Content) -> str:
    """Return the main tables and their legend as HTML for a notebook."""
    tables = [joined([element("h3", grid.title), _grid(grid)]) for grid in content.grids()]
    answer = element("p", " ".join(content.verdict())) if content.verdict() else ""
    return joined([answer, *tables, element("p", content.legend())])


def _style() -> str:
    colours = variables()
    light = " ".join(f"{name}: {on_light};" for name, (_, on_light, _) in colours.items())
    dark = " ".join(f"{name}: {on_dark};" for name, (_, _, on_dark) in colours.items())
    rules = files("samesense.reports").joinpath("page.css").read_text(encoding="utf-8")
    return (
        f"\n:root {{ {light} --link: #0b5cad; }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} --link: #8cc4ff; }} }}\n{rules}"
    )


def _opening(content: Content) -> Html:
    """Return the answer, its figure for wide and for narrow screens, and a table with a row per model."""
    if content.ranking is None:
        return Html("")
    lines = content.verdict()
    # A recommendation says in its second sentence what the model costs, which belongs to the answer.
    answers = 1 if content.recommendation is None else 2
    blocks = [element("p", " ".join(lines[:answers]), class_="answer")]
    blocks += [element("p", line, class_="lead") for line in lines[answers:]]
    notes = [*content.warnings, *verdict_notes(content.ranking)]
    blocks += [element("p", note, class_="note") for note in notes]
    if content.opening:
        blocks.append(by_screen(content.opening))
    header, rows = ranking_cells(content.ranking)
    blocks.append(table(header, rows, class_="numbers"))
    if content.recommendation is not None:
        blocks.append(element("p", RULE, class_="note"))
        if content.recommendation.measured:
            blocks.append(element("p", COST_NOTE, class_="note"))
    return element("section", joined(blocks), id="answer")


def _table(titled: TitledTable) -> Html:
    """Return a table under its title."""
    all_numeric = set(titled.numeric) >= set(titled.header[1:])
    cells = table(titled.header, titled.rows, class_="numbers" if all_numeric else "")
    return joined([element("h3", titled.title), cells])


def _models(content: Content) -> Html:
    rows = []
    for model in content.models:
        seed = "" if model.seed is None else str(model.seed)
        rows.append([model.name, model.spec, seed, content.fingerprints.get(model.spec, ""), model.protocol])
    return table(["model", "given as", "seed", "SHA-256 of its files", "protocol"], rows)


def _suite(content: Content, grids: Sequence[Grid], suite: str) -> Html:
    """Return the main tables of a suite, and how its models compare."""
    suite_tables = [joined([element("h3", grid.title), _grid(grid)]) for grid in grids if grid.suite == suite]
    return joined([*suite_tables, comparison_table(content, suite)])


def _grid(grid: Grid) -> Html:
    """Return a main table, with its intervals folded below it."""
    header = ["model", *(column.label for column in grid.columns)]
    rows = [
        [model, *(_cell(cell, column) for cell, column in zip(cells, grid.columns, strict=True))]
        for model, cells in grid.rows.items()
    ]
    main_table = table(header, rows, class_="numbers")
    if not any(cell.interval for cells in grid.rows.values() for cell in cells):
        return main_table
    intervals = [
        [model, *(cell.interval_text(column.measure) for cell, column in zip(cells, grid.columns, strict=True))]
        for model, cells in grid.rows.items()
    ]
    return joined([main_table, folded("95 % intervals", table(header, intervals, class_="numbers"))])


def _cell(cell: Cell, column: Column) -> Html:
    """Return a cell of a main table; its tooltip has the interval and the test."""
    measure = column.measure
    hints = []
    if cell.interval:
        hints.append(f"95 % interval {cell.interval_text(measure)}")
    comparison = cell.comparison
    if comparison is not None:
        hints.append(
            f"{direction(comparison.difference, measure)} {comparison.reference}, 95 % interval "
            f"{span(comparison.low, comparison.high, measure)}, adjusted p = {comparison.adjusted:.3g}"
        )
    if cell.undefined:
        hints.append(cell.undefined)
    kinds = {"best": cell.best, "average": column.average, "undefined": bool(cell.undefined)}
    mark = element("sup", "≈") if cell.as_good else ""
    classes = " ".join(name for name, holds in kinds.items() if holds)
    return element("td", cell.text(measure), mark, class_=classes, title="; ".join(hints))


def _datasets(content: Content) -> Html:
    keys = list(dict.fromkeys((row.task, row.dataset) for row in content.results))
    blocks = []
    for suite, dataset in keys:
        plots = content.by_dataset.get((suite, dataset), [])
        rows = folded("Every figure", dataset_details(content, suite, dataset))
        blocks += [
            element("h3", f"{suite}: {dataset}"),
            *map(figure, plots),
            rows,
            cases_table(content, suite, dataset),
        ]
    return joined(blocks)


def _left_out(content: Content) -> Html:
    lines = [
        f"{failure.task}, {failure.dataset}, {failure.model}: undefined. {failure.reason}"
        for failure in content.failures
        if failure.trained  # the notes have the trainings that failed
    ]
    return items([*lines, *content.notes]) or element("p", "Everything was run, and everything is defined.")


def _times(content: Content) -> Html:
    suites = list(dict.fromkeys(suite for model in content.models for suite in model.seconds))
    encoded = any(model.texts for model in content.models)
    header = ["model"]
    if encoded:
        header += ["texts encoded", "encoding, s"]
    header += [*(f"{suite}, s" for suite in suites), "together, s"]
    rows = []
    for model in content.models:
        row = [model.name if model.seed is None else f"{model.name} (seed {model.seed})"]
        if encoded:
            row += _encoding(model)
        row += [f"{model.seconds[suite]:.1f}" if suite in model.seconds else "" for suite in suites]
        row.append(f"{model.encoding + sum(model.seconds.values()):.1f}")
        rows.append(row)
    times_table = table(header, rows, class_="numbers")
    return joined([times_table, element("p", content.times, class_="note")])


def _encoding(model: EvaluatedModel) -> tuple[str, str]:
    """Return how many texts a model encoded, and the seconds it took; cached texts are not measured."""
    if not model.texts:
        return "", ""
    if not model.remembered:
        return f"{model.texts}", f"{model.encoding:.1f}"
    encoded = model.texts - model.remembered
    count = f"{encoded} of {model.texts}"
    return count, f"{model.encoding:.1f} for {encoded}" if encoded else "not measured"
