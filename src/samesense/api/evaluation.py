"""``samesense.evaluate``, ``compare`` and ``calibrate``."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from samesense.api.data import Scale, labelled_pairs
from samesense.api.library_function import library_function
from samesense.choices import CalibrationMap, ThresholdTarget, check_list, check_named, words_of
from samesense.data.rows.sources import Source, as_sources, names_among
from samesense.data.rows.table_options import Header, Quoting
from samesense.errors import ConfigError, DataError, ModelError, UnfinishedError, UnwrittenError
from samesense.execution.progress import stage
from samesense.types import Precision, TaskResult

if TYPE_CHECKING:
    from samesense.data import PairData
    from samesense.evaluation.task import Task
    from samesense.inference.calibration.fit import Calibrated
    from samesense.inference.models.model import Model
    from samesense.reports.report import Report
    from samesense.results.results import Results
    from samesense.types import Evidence, Result

logger = logging.getLogger(__name__)


@library_function
def evaluate(  # noqa: PLR0913 - the flags of the command
    model: Any,
    data: Source | Sequence[Source] = (),
    *,
    suites: str | Sequence[str] = "sts",
    fast: bool = False,
    texts: Source | Sequence[Source] | None = None,
    output: str | Path | None = None,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool = False,
    precision: Precision = "float32",
    intervals: bool = True,
) -> Results:
    """Evaluate a model: on labelled pairs by Spearman and Pearson correlation, with 95 % confidence intervals.

    Args:
        model: model folder, output of ``train``, hub name or ``"default"``; a cross-encoder; ``vectors:FILE``,
            ``words:FILE``, ``origin:FOLDER``, ``python:module:function``, ``python-score:module:function`` or
            ``chat:MODEL``; see :func:`samesense.load` for models in memory.
        data: labelled pairs; for ``retrieval`` anchors with positives, for ``classes`` sentences with classes; one
            source or several; folders or names of
            benchmarks; ``probes`` needs none.
        suites: one or several of ``sts``, ``transfer``, ``ranking``, ``geometry``, ``binary``, ``argument``,
            ``sections``, ``retrieval``, ``classes`` and ``probes``, as in ``"sts,transfer"``.
        fast: transfer with 5 folds instead of 10.
        texts: unlabelled texts on which ``MODEL+whiten`` and ``MODEL+whiten:256`` are fitted.
        output: ``results.jsonl`` to which the results are added.
        columns: text and label columns by name, as in ``"question1,question2,is_duplicate"``.
        label_order, label_range, drop_bad_rows: see :func:`samesense.read`.
        precision: arithmetic; ``"float32"`` keeps the figures comparable between machines.
        intervals: compute bootstrap intervals.

    Returns:
        A list of :class:`~samesense.types.Result` that prints as a table, with a row for each data set and for the
        mean of each suite. It holds the results on each subset too.

    Raises:
        UnfinishedError: if there is no figure for a data set; its ``result`` has those of the others.
    """
    from samesense.evaluation.averages import suite_averages
    from samesense.evaluation.suites import find_tasks
    from samesense.inference.models.load import load
    from samesense.inference.names import place_of
    from samesense.recipes.reading import Reading
    from samesense.reports.store import append_results, check_results
    from samesense.results.results import Results

    if output is not None:
        # Checked now: an evaluation of hours must not end with a file that cannot be written.
        check_results(output, [*names_among(data), *names_among(texts), *map(place_of, names_among(model))])
    reading = vars(Reading(columns, label_order, label_range, drop_bad_rows))
    selected = find_tasks(data, words_of(suites), fast=fast, reading=reading)
    # Said before the evaluation, which may take hours, and not after it.
    for line in selected.unfit:
        logger.info(line)
    # Suites share texts, and the cache has each encoded once.
    loaded = load(model, precision=precision, fit_texts=_fit_texts(texts), cache=True)
    results = Results()
    evidence: list[Evidence] = []
    failures: list[_Failure] = []
    with _kept_named(output, results):
        try:
            for task in selected.tasks:
                task.intervals = intervals
                outcome = _evaluated(task, loaded, failures, alone=len(selected.tasks) == 1)
                results += outcome.results
                evidence += outcome.evidence
            # An average gets its interval from the evidence of its members, of which none may lack.
            unfinished = {failure.suite for failure in failures}
            complete = [result for result in results if result.task not in unfinished]
            results += suite_averages(complete, evidence if intervals else ())
        finally:  # keep the finished sets, which may have taken hours, when one fails or is interrupted
            if output is not None and results:
                with UnwrittenError.holding(results, *(failure.message for failure in failures)):
                    append_results(Path(output), results)
    for task in selected.tasks:
        if remark := task.remark():
            logger.info(f"{task.dataset}: {remark}")
    if failures:
        raise UnfinishedError(" ".join(failure.message for failure in failures), results)
    return results


class _Failure(NamedTuple):
    """Why a data set of a suite has no figure."""

    suite: str
    message: str


def _evaluated(task: Task, model: Model, failures: list[_Failure], *, alone: bool) -> TaskResult:
    """Evaluate a model on a data set; why there is no figure is noted in ``failures``, or raised of one set alone."""
    from samesense.evaluation.sts import StsTask, warn_of_reversed_labels

    try:
        with stage(f"evaluate on {task.dataset}"):
            outcome = task.evaluate(model)
            if isinstance(task, StsTask):
                warn_of_reversed_labels(model, task.data, outcome.evidence[0].values)
            return outcome
    except (DataError, ModelError) as error:
        failure = _Failure(task.suite, f"{task.dataset}: {error}")
        failures.append(failure)
        # A model that fails would fail on the others too.
        if alone or isinstance(error, ModelError):
            error.args = (failure.message,)
            raise
        return TaskResult([])


@library_function
def compare(  # noqa: PLR0913 - the flags of the command
    models: Sequence[Any] | Mapping[str, Any],
    data: Source | Sequence[Source] = (),
    *,
    suites: str | Sequence[str] = "sts",
    output: str | Path | None = None,
    against: str | None = None,
    fast: bool = False,
    texts: Source | Sequence[Source] | None = None,
    sentences: str | Path | None = None,
    speed: bool = True,
    runs: Sequence[str] | None = None,
    sweep: str | None = None,
    cache: str | Path | None = None,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool = False,
    precision: Precision = "float32",
    results: str | Path | None = None,
) -> Report:
    """Evaluate several models on the same data, test the differences, and report them on one page.

    Args:
        models: models as :func:`samesense.evaluate` takes them, ``NAME=MODEL`` to name one; models of one name are
            seeds; see :func:`samesense.load` for models in memory, which a mapping names.
        data: folders of benchmarks, files of labelled pairs, anchors, classes or documents, or names of benchmarks;
            ``probes`` needs none; see :func:`samesense.read` for pairs in memory.
        suites: see :func:`samesense.evaluate`.
        output: file for the report, one self-contained HTML page.
        against: name of the model to compare the others with; by default the first.
        fast, texts, columns, precision: see :func:`samesense.evaluate`.
        sentences: file with sentences for the heatmap, an empty line between topics; by default evaluated pairs.
        speed: measure time per text, in five rounds of all models in turn, memory and size; some seconds a model.
        runs: run folders for learning curves; ``NAME=FOLDER`` gives a name, and runs of one name are seeds.
        sweep: setting of these runs to draw figures against, as in ``"temperature"``.
        cache: folder in which embeddings are cached for the next time.
        label_order, label_range, drop_bad_rows: see :func:`samesense.read`.
        results: ``results.jsonl`` to which the results are added.

    Returns:
        The report, which can also be saved later, by ``save``.
    """
    from samesense.places import PAGE, check_place, check_suffix, holding
    from samesense.recipes.compare.models import places_of
    from samesense.recipes.compare.recipe import compare as run
    from samesense.recipes.compare.sentences import read_topics
    from samesense.recipes.reading import Reading
    from samesense.reports.store import append_results, check_results
    from samesense.results.results import Results

    check_list("models", models)
    if runs is not None:
        check_list("runs", runs)
    reading = vars(Reading(columns, label_order, label_range, drop_bad_rows))
    inputs = [*names_among(data), *names_among(texts), *names_among(sentences), *places_of(models)]
    if output is not None:
        check_place(output, inputs)
        check_suffix(output, "A report is a page, whose name", PAGE)
    if results is not None:
        # The page counts as an input here, as results must not be appended to it.
        check_results(results, [*inputs, *names_among(output)])

    finished = Results()
    written: list[Result] = []

    def keep(rows: Sequence[Result]) -> None:
        finished.extend(rows)
        if results is not None and rows:
            with UnwrittenError.holding(finished):
                append_results(Path(results), rows)
            written.extend(rows)

    with holding(output), _kept_named(results, written):
        report = run(
            models,
            data,
            suites=words_of(suites),
            against=against,
            fast=fast,
            fit_texts=_fit_texts(texts),
            precision=precision,
            cache=None if cache is None else Path(cache),
            runs=runs or (),
            sweep=sweep,
            sentences=None if sentences is None else read_topics(Path(sentences)),
            speed=speed,
            reading=reading,
            keep=keep,
        )
        # The results of each model are kept as soon as it is done; averages exist only now.
        keep(report.averages)
        if output is not None:
            # Drawing the figures of many models takes seconds.
            with stage("writing the page"), UnwrittenError.holding(report):
                report.save(output, kind="html")
    return report


@contextmanager
def _kept_named(path: str | Path | None, results: Sequence[Result]) -> Iterator[None]:
    """On Ctrl-C say that ``results`` are in a file already, to which the same command would add them again."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if path is None or not results or stop.args:
            raise
        raise KeyboardInterrupt(
            f"{len(results)} results are in {path} already, and the same command adds them again: name another file."
        ) from None


def _fit_texts(texts: Source | Sequence[Source] | None) -> list[str] | None:
    from samesense.data.sentences import unlabelled_texts

    if texts is None:
        return None
    return [text for source in as_sources(texts) for text in unlabelled_texts(source)]


@library_function
def calibrate(  # noqa: PLR0913 - the flags of the command
    model: str | Path,
    data: Source | None = None,
    *,
    output: str | Path | None = None,
    figure: str | Path | None = None,
    map: CalibrationMap = "auto",  # noqa: A002 - the flag's name
    yes: float | None = None,
    decide: ThresholdTarget = "accuracy",
    min_precision: float | None = None,
    min_recall: float | None = None,
    folds: int = 5,
    seed: int = 0,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool = False,
    precision: Precision = "float32",
) -> Calibrated:
    """Calibrate a model's scores on labelled pairs: to a value on the labels' scale, a probability, or yes and no.

    Args:
        model: model folder, output of ``train``, hub name, ``"default"`` or ``origin:FOLDER``; also a cross-encoder.
        data: labelled pairs that the model was not trained on; by default those that its run held out, or scored out of
            fold, with the stored scores.
        output: file for the calibration; by default ``calibration.json`` in the model's folder.
        figure: file for a figure of reliability, map, scores and, for yes and no, what each threshold gives; ends in
            .png, .svg or .pdf.
        map: isotonic follows the data, logistic is a smooth curve; auto is logistic for yes/no labels, else isotonic.
        yes: lowest label of a positive pair; by default 1 for yes/no labels, and none for graded ones.
        decide: threshold for yes and no, the one of best accuracy or of best F1; both are stored.
        min_precision: instead, the threshold of highest recall at this precision on new pairs, such as 0.95; refused
            where the pairs do not show it with 95 % confidence.
        min_recall: instead, the threshold of highest precision at this recall on new pairs, such as 0.9; refused
            likewise.
        folds: folds of the cross-validation that estimates the errors.
        seed: seed of the split into folds.
        columns, precision: see :func:`samesense.evaluate`.
        label_order, label_range, drop_bad_rows: see :func:`samesense.read`.

    Returns:
        Prints as a table of errors before and after; ``calibration`` applies it.
    """
    from samesense.inference.calibration.fit import CalibrationSettings, check_labels
    from samesense.inference.calibration.fit import calibrate as run
    from samesense.inference.calibration.storage import home_of, store
    from samesense.inference.models.load import load
    from samesense.inference.names import place_of
    from samesense.places import check_place, holding
    from samesense.recipes.reading import Reading
    from samesense.reports.figures.plot import check_figure, save_plot

    model = check_named(model)
    reading = vars(Reading(columns, label_order, label_range, drop_bad_rows))
    if data is None:
        scorer, pairs = _held_out_scores(model, reading)
    else:
        scorer = None
        pairs = labelled_pairs(data, **reading)
    settings = CalibrationSettings(
        shape=map, yes=yes, decide=decide, min_precision=min_precision, min_recall=min_recall, folds=folds, seed=seed
    )
    # Labels that allow no calibration are refused before the model is loaded.
    check_labels(pairs, settings)
    home = home_of(model)
    path = home.place(None if output is None else Path(output))
    check_place(path, names_among(data))
    if figure is not None:
        check_figure(Path(figure))
        # The calibration is among the inputs, so that the figure cannot replace it.
        check_place(figure, [*names_among(data), path, place_of(model)])
    with holding(path, figure):
        # The fingerprint binds the calibration to these weights: it is refused for any others.
        calibrated = run(scorer or load(model, precision=precision), pairs, home.fingerprint(), settings)
        with UnwrittenError.holding(calibrated):
            store(calibrated.calibration, path)
            if figure is not None:
                save_plot(_calibration_plot(calibrated, Path(figure).stem), Path(figure))
    written = [path] if figure is None else [path, figure]
    logger.info(f"written: {', '.join(str(file) for file in written)}")
    return calibrated


def _held_out_scores(model: str, reading: Mapping[str, Any]) -> tuple[Model | None, PairData]:
    """Return the pairs that a run held out from training, and their stored scores as a model.

    The model is ``None`` where the run stored no scores, and the pairs are yet to be scored.
    """
    from samesense.inference.models.model import Model
    from samesense.recipes.held_out.pairs import read_dev, read_held_out_scores

    held_out = read_held_out_scores(model)
    if held_out is None:
        return None, read_dev(model, reading)
    if any(value for value in reading.values()):
        names = ", ".join(f"`{name}`" for name, value in reading.items() if value)
        raise ConfigError(
            f"{names} says how a file is read, and the run has kept its pairs as it read them. Leave it out, or give "
            "`data` FILE."
        )
    logger.info(
        f"data: {len(held_out.data)} pairs of {held_out.data.name} with the scores that the run has kept of them "
        f"({held_out.protocol})"
    )
    # The scores are looked up, as the pairs are those of the run, in its order.
    scorer = Model(score=lambda pairs: held_out.scores, name=model, protocol=held_out.protocol)
    return scorer, held_out.data


def _calibration_plot(calibrated: Calibrated, name: str) -> Any:
    import numpy as np

    from samesense.reports.figures.calibration import Fitted, calibration

    fitted = calibrated.calibration
    scores = calibrated.scores
    # An isotonic map bends at observed scores, which an even grid would miss.
    grid = np.union1d(np.linspace(scores.min(), scores.max(), 400), scores)
    predicted = {"calibrated, cross-validated": calibrated.held_out}
    if calibrated.before is not None:
        predicted["score as it is"] = calibrated.before
    fit = Fitted(
        scores=scores,
        labels=calibrated.labels,
        predicted=predicted,
        scale=fitted.scale,
        map=(grid, fitted.apply(grid)),
        thresholds={str(target): threshold for target, threshold in fitted.thresholds.items()},
        yes=fitted.yes,
        data=fitted.data,
        used=None if fitted.yes is None else fitted.threshold(),
    )
    return calibration(fit, name=name)
