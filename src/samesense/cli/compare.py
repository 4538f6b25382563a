"""``samesense compare``: several models, one page."""

from __future__ import annotations

from pathlib import Path

from samesense.cli.output import (
    DEFAULT_FORMAT,
    DEFAULT_PAIRS,
    Flag,
    Json,
    Output,
    PairFlags,
    PrecisionFlag,
    Several,
    TableFlags,
    listed,
    logger,
    put,
    put_json,
    reads_tables,
)


@reads_tables
def compare(
    models: Several,
    /,
    *,
    data: Several = (),  # type: ignore[assignment]  # a list where it is given
    output: Output,
    suite: str = "sts",
    against: str | None = None,
    fast: Flag = False,
    texts: Several | None = None,
    sentences: Path | None = None,
    speed: bool = True,
    runs: Several | None = None,
    sweep: str | None = None,
    cache: Path | None = None,
    pair_options: PairFlags = DEFAULT_PAIRS,
    reading: TableFlags = DEFAULT_FORMAT,
    precision: PrecisionFlag = "float32",
    results: Path | None = None,
    markdown: Path | None = None,
    latex: Path | None = None,
    figures: Path | None = None,
    json: Json = False,
) -> None:
    """Evaluate several models on the same data, test the differences, and write one self-contained HTML report.

    samesense compare default runs/first --data benchmarks --suite sts,transfer --output report.html

    Args:
        models: folders, hub names, words:FILE and more, NAME=MODEL to name one; models of one name are seeds.
        data: folders of benchmarks, files of labelled pairs or documents, or names of benchmarks; probes needs none.
        output: the page.
        suite: one or more of sts, transfer, ranking, geometry, binary, argument, sections, probes, as in: sts,transfer
        against: name of the model to compare the others with; by default the first.
        fast: transfer with 5 folds instead of 10.
        texts: text files or tables on whose texts MODEL+whiten and MODEL+whiten:256 are fitted.
        sentences: file with sentences for the heatmap, an empty line between topics; by default evaluated pairs.
        speed: measure time per text, in five rounds of all models in turn, memory and size; some seconds a model.
        runs: run folders of train for learning curves; NAME=FOLDER gives a name, and runs of one name are seeds.
        sweep: setting of these runs to draw figures against, as in: temperature
        cache: folder in which embeddings are cached for the next time.
        precision: arithmetic; float32 keeps the figures comparable between machines.
        results: results.jsonl to which the results are added.
        markdown: file for the tables in Markdown.
        latex: file for the tables in LaTeX.
        figures: folder for the figures as SVG, PNG and PDF.
        json: print one JSON object a result, and the recommendation as the last.
    """
    import samesense
    from samesense.places import check_place
    from samesense.recipes.compare.models import places_of

    inputs = [*places_of(models), *data, *(texts or ()), *([sentences] if sentences else ())]
    for path in filter(None, [markdown, latex, None if figures is None else figures / "plane.svg"]):
        check_place(path, inputs)
    report = samesense.compare(
        models,
        data,
        suites=listed(suite),
        output=output,
        against=against,
        fast=fast,
        texts=texts,
        sentences=sentences,
        speed=speed,
        runs=runs or (),
        sweep=sweep,
        cache=cache,
        **vars(pair_options),
        precision=precision,
        results=results,
    )
    written = [output, *(report.save(path, kind) for kind, path in (("md", markdown), ("tex", latex)) if path)]
    written += [] if figures is None else report.save_figures(figures)
    if json:
        put_json(result.to_dict() for result in [*report.results, *report.averages])
        if report.recommendation is not None:
            put_json([{"recommendation": report.recommendation.to_dict()}])
    else:
        put(str(report))
    for failed in report.failures:
        logger.info(f"undefined: {failed.model} on {failed.task} {failed.dataset}: {failed.reason}")
    logger.info(f"written: {', '.join(map(str, written[:4]))}{' and more' if len(written) > 4 else ''}")
