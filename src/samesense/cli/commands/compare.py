"""``samesense compare``: several models, one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.api import evaluation
from samesense.cli.command import command_of
from samesense.cli.output import Json, Output, Several, logger, put, put_json, shown_if_unwritten
from samesense.failures import abridged
from samesense.results.results import Results

if TYPE_CHECKING:
    from samesense.reports.report import Report


@command_of(evaluation.compare)
def compare(
    models: Several,
    /,
    *,
    data: Several = (),  # type: ignore[assignment]  # a list where it is given
    output: Output,
    markdown: Path | None = None,
    latex: Path | None = None,
    figures: Path | None = None,
    json: Json = False,
    **options: Any,
) -> None:
    """samesense compare default runs/first --data benchmarks --suite sts,transfer --output report.html

    Args:
        markdown: file for the tables in Markdown.
        latex: file for the tables in LaTeX.
        figures: folder for the figures as SVG, PNG and PDF.
        json: print one JSON object per result, and the recommendation as the last.
    """
    from samesense.files import is_special
    from samesense.places import check_distinct, check_place, check_suffix, holding
    from samesense.recipes.compare.models import places_of

    inputs = [*places_of(models), *data, *(options["texts"] or ())]
    if options["sentences"]:
        inputs.append(options["sentences"])
    # Before the models run, which may take hours, and before a folder is made.
    outputs = [path for path in (output, markdown, latex, figures) if path is not None]
    check_distinct([path for path in outputs if not is_special(path)])
    for path in filter(None, [markdown, latex, None if figures is None else figures / "plane.svg"]):
        check_place(path, inputs)
    if markdown is not None:
        check_suffix(markdown, "A file of Markdown", [".md", ".markdown"])
    if latex is not None:
        check_suffix(latex, "A file of LaTeX", [".tex"])

    def show(report: Report | Results) -> None:
        # Of a comparison that could not go on there are the results of the finished models alone.
        if isinstance(report, Results):
            _show_results(report, json=json)
        else:
            _show_report(report, json=json)

    with holding(markdown, latex, figures):
        with shown_if_unwritten(show):
            report = evaluation.compare(models, data, output=output, **options)
        # Before the other files, for which the disk may have no room.
        show(report)
        written = [output, *(report.save(path, kind) for kind, path in (("md", markdown), ("tex", latex)) if path)]
        if figures is not None:
            written += report.save_figures(figures)
    for failed in report.failures:
        logger.info(f"undefined: {failed.model} on {failed.task} {failed.dataset}: {failed.reason}")
    logger.info(f"written: {abridged(written, 4)}")


def _show_results(results: Results, *, json: bool) -> None:
    if json:
        put_json(results.to_dicts())
    else:
        put(str(results))


def _show_report(report: Report, *, json: bool) -> None:
    if not json:
        put(str(report))
        return
    put_json(result.to_dict() for result in [*report.results, *report.averages])
    if report.recommendation is not None:
        put_json([{"recommendation": report.recommendation.to_dict()}])
