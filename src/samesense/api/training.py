"""``samesense.train``, ``pretrain``, ``distil``, ``origin``, ``harvest`` and ``sweep``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from samesense.api.data import Scale, labelled_pairs
from samesense.api.library_function import library_function
from samesense.choices import check_list
from samesense.data.rows.sources import Source, as_sources, in_memory, name_of
from samesense.data.rows.table_options import Header, Quoting
from samesense.errors import ConfigError
from samesense.execution.torch_import import loading_torch
from samesense.places import check_outside

if TYPE_CHECKING:
    from samesense.recipes.distil.recipe import Distillate, DistilPlan
    from samesense.recipes.harvest.recipe import HarvestSummary
    from samesense.recipes.pretrain.recipe import Pretraining
    from samesense.recipes.run.training_run import TrainingRun
    from samesense.results.results import Results
    from samesense.results.shown import Markdown


@library_function
def train(  # noqa: PLR0913 - the flags of the command
    data: Source,
    *,
    output: str | Path,
    method: str = "auto",
    dev: Source | Literal["auto", "none"] | None = "auto",
    test: Source | None = None,
    guard: Source | None = None,
    config: str = "auto",
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool = False,
    folds: int | str = "auto",
    resume: bool = False,
    overwrite: bool = False,
    **settings: Any,
) -> TrainingRun:
    """Train a model from labelled pairs, anchors with positives and negatives, unlabelled sentences, or documents.

    Args:
        data: one or more files (TSV, CSV, JSON lines, Parquet, text; plain or compressed), saved ``datasets`` folders,
            or hub names; for ``surrogate`` a folder of :func:`samesense.harvest`; see :func:`samesense.read`.
        output: folder of the run; the model is in its folder ``"model"``.
        method: ``"cosent"``, ``"supmpn"``, ``"simcse"``, ``"rankcse"``, ``"sections"``, ``"surrogate"``, ``"context"``,
            which goes from documents to a surrogate, or ``"mixed"``; ``"auto"`` is rankcse with a teacher, mixed for
            data of several kinds, and else the method for the kind of data in the first rows.
        dev: labelled pairs that select the checkpoint; ``"auto"`` holds some out, or leaves it to ``folds``;
            ``"hold 0.1"`` holds out that share; ``"none"`` keeps the last.
        test: labelled pairs or data of the kind trained on, to evaluate before and after; or ``"hold 0.2"`` of
            the data; by default ``dev`` or ``folds``.
        guard: labelled pairs on which the model must not get worse than its start, one source or several.
        config: TOML file of settings, or a shipped one by name; ``"auto"`` takes the paper's.
        columns, label_order, label_range, drop_bad_rows: see :func:`samesense.read`.
        folds: ``"auto"`` cross-validates few labelled pairs that come without dev and test, and then trains on all;
            or the number of folds, ``"10-mixed"`` for random ones, ``"by-topic"``, or ``"none"``.
        resume: continue an interrupted run.
        overwrite: replace an earlier run in the folder.
        settings: settings of the method, such as ``model``, ``loss``, ``epochs``, ``learning_rate``, ``seed``; the page
            of each method lists them. They win over the file. ``merge``, ``learning_curve`` and ``report`` apply at
            the end.

    Returns:
        Prints as a table of the results; ``verdict`` says whether the model is better than its untouched start, and
        ``model`` is its folder.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, if the run could not finish.
    """
    from samesense.recipes.planning.plan import plan
    from samesense.recipes.reading import Reading

    reading = Reading(columns, label_order, label_range, drop_bad_rows)
    planned = plan(
        data,
        method=method,
        dev=dev,
        test=test,
        guard=guard,
        config=config,
        folds=str(folds),
        settings=settings,
        reading=reading,
    )
    return planned.run(output, resume=resume, overwrite=overwrite)


@library_function
def cross_validate(  # noqa: PLR0913 - the flags of the command
    data: Source,
    *,
    folds: int | str,
    output: str | Path,
    method: str = "auto",
    config: str = "auto",
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    **settings: Any,
) -> Results:
    """Train a model for each fold, and score every pair with the model that was not trained on it.

    No model is kept: the last state of each fold is evaluated, as in published results by folds. :func:`train` with
    ``folds`` also trains a final model, whose weights lie between start and end where the folds choose.

    Args:
        data: labelled pairs; see :func:`train`.
        folds: number of folds that share no sentence; ``"10-mixed"`` for folds of random pairs, as in publications; or
            ``"by-topic"``: each subset of the pairs is a fold.
        output: folder of the run; the models are deleted once they have scored their pairs.
        method, config, settings: see :func:`train`.
        columns, label_order, label_range, drop_bad_rows: see :func:`samesense.read`.
        resume: continue an interrupted run.
        overwrite: replace an earlier run in the folder.
    """
    from samesense.recipes.planning.plan import plan
    from samesense.recipes.reading import Reading
    from samesense.results.results import Results

    reading = Reading(columns, label_order, label_range, drop_bad_rows)
    # Nothing selects within a fold, so that no pair is held out for it.
    planned = plan(data, method=method, dev="none", config=config, settings=settings, reading=reading)
    return Results(planned.cross_validate(str(folds), output, resume=resume, overwrite=overwrite))


@library_function
def distil(  # noqa: PLR0913 - the flags of the command
    sentences: Source,
    *,
    output: str | Path,
    student: str | None = None,
    dev: Source | None = None,
    test: Source | Sequence[Source] | None = None,
    config: str = "auto",
    resume: bool = False,
    overwrite: bool = False,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    **settings: Any,
) -> Distillate:
    """Make a small, fast student of one or several teachers, from sentences alone; report its quality and speed.

    Args:
        sentences: text files, tables with text columns, documents, saved ``datasets`` folders, or hub names; see
            :func:`samesense.read` for texts in memory.
        output: folder of the run; the student is in its folder ``"model"``.
        student: ``layers:N`` of the first teacher, ``static`` or ``static:DIM``, or a small encoder; by default
            ``layers:3``.
        dev: labelled pairs that select the best checkpoint; without them, the last one is kept.
        test: labelled pairs on which student and teachers are evaluated; by default those of ``dev``.
        config: TOML file of settings, or a shipped one by name; ``"auto"`` takes that of the kind of student.
        resume: continue an interrupted run.
        overwrite: replace an earlier run in the folder.
        settings: settings of distillation, above all ``teacher``: one name or several.

    Returns:
        Prints as a table of student and teachers.
    """
    # The student is what a training calls its model.
    overrides = settings if student is None else {**settings, "model": student}
    _, plan = plan_distil(sentences, overrides, dev=dev, test=test, config=config)
    return plan.run(Path(output), resume=resume, overwrite=overwrite)


def plan_distil(
    sentences: Source, overrides: Mapping[str, Any], *, dev: Source | None, test: Source | None, config: str
) -> tuple[str, DistilPlan]:
    """Read what a student learns from and is evaluated on; return the name of its settings, and the plan of its run."""
    from samesense.recipes.distil.settings import choose_distil
    from samesense.recipes.reading import named_apart
    from samesense.recipes.unsupervised.settings import read_bare

    if isinstance(overrides.get("teacher"), str):
        # pydantic takes no string for a tuple.
        overrides = {**overrides, "teacher": (overrides["teacher"],)}
    name, chosen = choose_distil(config, overrides)
    train = read_bare(as_sources(sentences), chosen)
    dev_pairs = None if dev is None else labelled_pairs(dev)
    tests = named_apart([] if test is None else [labelled_pairs(source) for source in as_sources(test)])
    # After the data: mistakes in them show before the seconds that torch takes.
    with loading_torch():
        from samesense.recipes.distil.recipe import DistilPlan
    return name, DistilPlan(train, chosen, dev_pairs, tests)


@library_function
def pretrain(
    documents: Source,
    *,
    model: str,
    output: str | Path,
    resume: bool = False,
    overwrite: bool = False,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    **settings: Any,
) -> Pretraining:
    """Continue pretraining a language model on your documents, before it is trained for similarity.

    Args:
        documents: .txt, .md, .html, .pdf and .docx files, folders of them, JSON lines, Parquet, saved ``datasets``
            folders, or hub names.
        model: folder or hub name of a masked language model, or of a causal one, which becomes bidirectional.
        output: folder of the run; the model is in its folder ``"model"``.
        resume: continue an interrupted run.
        overwrite: replace an earlier run in the folder.
        settings: such as ``epochs``, ``learning_rate``, ``masked``, ``layers``.

    Returns:
        ``before`` and ``after`` are the perplexities of the masked tokens of held-out text.
    """
    from samesense.recipes.pretrain.settings import PretrainSettings
    from samesense.recipes.settings import bind

    # Before torch is imported, so that a wrong setting shows at once.
    chosen = bind(PretrainSettings, {**settings, "model": model})
    with loading_torch():
        from samesense.recipes.pretrain.recipe import run
    return run(as_sources(documents), chosen, Path(output), resume=resume, overwrite=overwrite)


@library_function
def origin(
    documents: Source,
    *,
    output: str | Path,
    config: str = "words",
    overwrite: bool = False,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    **settings: Any,
) -> Path:
    """Make an Origin from running documents, without labels: a model that compares sentences by their contexts.

    Its name as a model is ``origin:FOLDER``.

    Args:
        documents: .txt, .md, .html, .pdf and .docx files, folders of them, JSON lines, Parquet, saved ``datasets``
            folders, or hub names.
        output: folder of the Origin; one that was stopped is resumed.
        config: TOML file of settings, or ``"words"``, ``"scaled"`` or ``"paper"``.
        overwrite: replace stages that were made with other inputs.
        settings: single settings; they win over the file.

    Returns:
        The folder.

    Raises:
        KeyboardInterrupt: after Ctrl-C; everything finished is kept.
    """
    from samesense.recipes.origin.settings import choose_origin
    from samesense.recipes.stages import read_stages

    sources = as_sources(documents)
    if any(map(in_memory, sources)):
        raise ConfigError(
            f"An Origin reads documents from files; received {name_of(sources[0])}. Write them to a file."
        )
    chosen = choose_origin(config, settings)
    # Before torch is imported, which takes seconds.
    check_outside(sources, Path(output))
    read_stages(Path(output), "origin")
    chosen.check_language_model()
    from samesense.recipes.origin.recipe import run  # imports torch, which takes seconds

    if not run(sources, chosen, Path(output), overwrite=overwrite):
        raise KeyboardInterrupt
    return Path(output)


@library_function
def harvest(*, origin: str | Path, output: str | Path, config: str | None = None, **settings: Any) -> HarvestSummary:
    """Score sentence pairs of an Origin's own corpus, at scale and resumably, to train a fast model on.

    Args:
        origin: folder of the Origin.
        output: folder of the harvest; one that was stopped is resumed.
        config: TOML file of settings.
        settings: single settings; they win over the file.
    """
    from samesense.recipes.harvest.recipe import harvest as make
    from samesense.recipes.harvest.settings import HarvestSettings
    from samesense.recipes.settings import bind, read_settings

    chosen = bind(HarvestSettings, {} if config is None else read_settings(config), settings)
    return make(Path(origin), Path(output), chosen)


@library_function
def sweep(
    file: str | Path,
    *,
    output: str | Path,
    datasets: Sequence[str] | None = None,
    jobs: int | Literal["auto"] = "auto",
    max_runs: int | None = None,
    latex: str | Path | None = None,
    figures: str | Path | None = None,
    **placeholders: str,
) -> Markdown:
    """Train and evaluate every combination of settings, data and seeds in a file, and compare them.

    Args:
        file: TOML file of the sweep.
        output: folder of the sweep; one that was begun is resumed.
        datasets: data sets of the file to run now; all if none is named.
        jobs: runs at a time, each with its share of the processor's cores; ``"auto"`` measures whether two are
            faster than one. 1 runs them in this process.
        max_runs: most runs for now; called again, it continues with the others.
        latex: file for the tables in LaTeX.
        figures: folder for the figures as SVG, PNG and PDF.
        placeholders: values of placeholders of the file, as in ``DATA="data"``.

    Returns:
        The tables as Markdown; they and the report are in the folder.

    Raises:
        KeyboardInterrupt: after Ctrl-C; everything finished is kept.
        ConfigError: if runs failed; the same call tries them again.
    """
    from samesense.recipes.sweep.file import read_sweep
    from samesense.recipes.sweep.plan import make_plan
    from samesense.recipes.sweep.report import write_report
    from samesense.recipes.sweep.run import check_output, run
    from samesense.results.shown import Markdown

    if datasets is not None:
        check_list("datasets", datasets)
    check_output(Path(output))
    plan = make_plan(read_sweep(Path(file), placeholders))
    ended = run(plan, Path(output), jobs=jobs, datasets=datasets, max_runs=max_runs)
    if ended.interrupted:
        raise KeyboardInterrupt
    # Written even if runs failed, with the figures of the others.
    text, _ = write_report(
        Path(output),
        latex=None if latex is None else Path(latex),
        figures=None if figures is None else Path(figures),
    )
    if ended.failed:
        raise ConfigError(
            f"{ended.failed} of {ended.finished + ended.failed} runs failed; cell.json of each says why. The same "
            "call tries them again."
        )
    return Markdown(text)
