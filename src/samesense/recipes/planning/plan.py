"""Plans a training by any method, with the same defaults from Python and from the command line.

The dev set and the settings that ``"auto"`` stands for are chosen here, without torch.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.data.rows.sources import Source, as_sources, rereadable
from samesense.data.tuples.convert import tuples_of_pairs
from samesense.data.tuples.data import TupleData
from samesense.data.tuples.held_out import hold_out_tuples
from samesense.errors import ConfigError
from samesense.execution.ranks import world_size
from samesense.recipes.held_out.cross_validation import CrossValidation, deal_pairs
from samesense.recipes.methods import DATA_TYPES, Method
from samesense.recipes.planning.dev_split import parse_share
from samesense.recipes.planning.evaluation_sets import DevSplit, read_evaluation_pairs, select_dev, select_test
from samesense.recipes.planning.few_examples import are_few_pairs, fit_settings_to_size
from samesense.recipes.planning.fitting import Fitting, fitting_method
from samesense.recipes.planning.held_out_documents import are_documents, read_with_held_out
from samesense.recipes.planning.mixture import read_mixture
from samesense.recipes.planning.pair_loss import choose_mse, choose_nli_loss, has_few_scores
from samesense.recipes.planning.training_plan import TrainingPlan, labelled_training_pairs
from samesense.recipes.reading import Reading, named_apart
from samesense.recipes.settings import EncoderSettings

logger = logging.getLogger(__name__)

REFIT_PAIRS = 5000
"""Labelled pairs below which a model is trained again on those that were held out: of more, they teach little more."""


def plan(  # noqa: PLR0913 - the arguments of a training
    data: Source,
    *,
    method: str = "auto",
    dev: Source | None = "auto",
    test: Source | None = None,
    guard: Source | None = None,
    config: str = "auto",
    folds: str = "none",
    settings: Mapping[str, Any] | None = None,
    reading: Reading = Reading(),  # noqa: B008 - frozen
    for_race: bool = False,
) -> TrainingPlan:
    """Read the data and choose the settings of a training.

    ``method`` is a name in :data:`~samesense.recipes.methods.METHODS`, or ``"auto"`` for what suits the data. ``dev``
    are labelled pairs that choose the best checkpoint by Spearman, or their source; ``"auto"`` holds out labelled
    pairs, or a hundredth of a harvest; ``"none"`` or ``None`` keeps the last state. ``test`` are pairs on which the
    model is evaluated before and after; of either, ``"hold 0.2"`` holds out that share of labelled training pairs, and
    as test also of anchors or of texts with classes.
    ``guard`` is one source of pairs or several on which the model must not get worse; ``None`` takes those of the
    settings. ``folds`` are those of :func:`~samesense.recipes.held_out.cross_validation.deal_pairs`; ``"auto"``
    cross-validates few labelled pairs where neither dev nor test is given, and ``"none"`` never does. ``config`` is the
    name of a shipped file of settings, the path of the user's own, or ``"auto"`` for the paper's; ``settings`` win over
    it. ``for_race`` takes triplets as labelled pairs, on which entrants are compared, and leaves steps and learning
    rate to the entrants. ConfigError for an unknown method or setting, or a value out of range; DataError if a source
    cannot be used.
    """
    sources = _as_sources(data)
    options = dict(settings or {})
    fitting = fitting_method(sources, config, options, reading, method=method, ranks_triplets=for_race)
    configured, reading = _read_examples(sources, fitting, config, options, reading, with_held_out=test is None)
    bound, examples = configured.settings, configured.examples
    if config == "auto" and not for_race:
        bound = choose_nli_loss(bound, examples, options)
    # Test comes first: dev and folds are parts of what it leaves.
    examples, test_data = select_test(test, examples, bound.seed, reading)
    alone = test is None and isinstance(dev, str) and dev == "auto"
    examples = _without_held_out_tuples(examples, bound.seed, alone=alone)
    guard_sources = bound.guard if guard is None else as_sources(guard)
    guards = [
        guard_data
        for guard_source in guard_sources
        if (guard_data := read_evaluation_pairs(guard_source, reading, "guard")) is not None
    ]
    cross_validation = _deal_folds(folds, examples, fitting.method, bound, alone=alone, dev=dev, test=test)
    few_scored = cross_validation is not None and config == "auto" and has_few_scores(examples, bound, options)
    if few_scored:
        bound = choose_mse(bound)
    split = DevSplit(examples)
    if cross_validation is None:
        sparing = folds == "none" or not alone  # the verdict is on other pairs, or a tenth is asked for
        split = select_dev(dev, examples, bound.seed, reading, sparing=sparing)
    other_names = [data.name for data in (examples, split.dev, test_data) if data is not None]
    guards = named_apart(guards, other_names)
    refit = alone and _can_refit(split, bound)
    rate = None
    if not for_race:
        bound, rate = fit_settings_to_size(bound, split.train, fitting.method, config, options, few_scored=few_scored)
    if cross_validation is not None and few_scored:
        # Few pairs cannot choose a part of the training: what they choose from differs by less than their noise.
        of_untuned_start = rate.of_untuned_start if rate else None
        cross_validation = replace(cross_validation, selects=False, untuned_start_rate=of_untuned_start)
    elif cross_validation is not None and bound.teaches_beyond_labels(split.train):
        cross_validation = replace(cross_validation, selects=False)
    return TrainingPlan(
        method=fitting.method,
        config=configured.config,
        settings=bound,
        overrides=options,
        train=split.train,
        dev=split.dev,
        test=test_data,
        guards=tuple(guards),
        held_out=split.held_out,
        test_held_out=parse_share(test, "test") is not None,
        cross_validation=cross_validation,
        refit=refit,
        messages=fitting.messages,
    )


class _ConfiguredExamples(NamedTuple):
    """Settings of a run, by name and as they are, and its training data.

    Attributes:
        config: name of the file of settings.
        settings: those of the file with the user's.
        examples: what is trained on, before anything is held out.
    """

    config: str
    settings: EncoderSettings
    examples: Examples


def _read_examples(
    sources: list[Source] | Examples,
    fitting: Fitting,
    config: str,
    options: Mapping[str, Any],
    reading: Reading,
    *,
    with_held_out: bool,
) -> tuple[_ConfiguredExamples, Reading]:
    """Read the training data, and return them with their settings, and how dev, test and guards are read."""
    settings, train_reading = fitting.method.own_settings(options, replace(reading, columns=fitting.columns))
    # Sentences without a text are always left out and counted; for these methods the option is about dev and test.
    if not fitting.method.drops_bad_rows:
        train_reading = replace(train_reading, drop_bad_rows=False)
    if train_reading.columns != fitting.columns:
        reading = replace(reading, columns=None)  # of one text, or an anchor, they are none of pairs
    if fitting.sources:
        return _ConfiguredExamples(*read_mixture(fitting.sources, config, options, reading)), reading
    return _choose_settings(fitting, sources, config, settings, train_reading, with_held_out=with_held_out), reading


def _without_held_out_tuples(examples: Examples, seed: int, *, alone: bool) -> Examples:
    """Hold anchors or texts with classes out for the verdict, where nothing else could give one."""
    if not alone or not isinstance(examples, TupleData):
        return examples
    return hold_out_tuples(examples, seed)


def _can_refit(split: DevSplit, settings: EncoderSettings) -> bool:
    """Return whether few pairs or anchors were held out, and nothing else that is learnt depends on them."""
    train = split.train
    dev = split.dev if split.held_out else None
    held_out: PairData | TupleData | None = None
    if isinstance(train, PairData):
        held_out = dev
    elif isinstance(train, TupleData) and train.held_out is not None:
        held_out = train.held_out.data
    if held_out is None or not getattr(settings, "refit", False):
        return False
    chooses_more = settings.merge or settings.learning_curve or (bool(settings.matryoshka) and dev is not None)
    return len(train) + len(held_out) < REFIT_PAIRS and not chooses_more and world_size() == 1


def _deal_folds(
    folds: str,
    train: Examples,
    method: Method,
    settings: EncoderSettings,
    *,
    alone: bool,
    dev: Source | None,
    test: Source | None,
) -> CrossValidation | None:
    """Return the folds of a run, checked; ``None`` where it is not cross-validated.

    ``alone`` says that neither dev nor test was given.
    """
    if folds == "none":
        return None
    reason_against = _reason_against_folds(settings)
    if folds == "auto":
        if not alone or method.has_stages or not are_few_pairs(train):
            return None
        if reason_against:
            logger.info(f"cross-validation: none, as {reason_against}; pairs are held out for the verdict")
            return None
    else:
        selects_nothing = dev is None or (isinstance(dev, str) and dev == "none")
        if test is not None or not (alone or selects_nothing):
            reason_against = reason_against or "the folds test and select by themselves, and dev or test is given"
        if reason_against:
            raise ConfigError(f"`folds` {folds} cannot be: {reason_against}. Leave one of the two out.")
    pairs = labelled_training_pairs(train, method)
    # With `dev` none, nothing selects, and the last state counts.
    cross_validation = deal_pairs(pairs, folds, selects=alone)
    # The training part of a fold may lack a label that the whole data have.
    for teaching, _ in cross_validation.folds:
        method.check(pairs.take(teaching), settings)
    return cross_validation


def _reason_against_folds(settings: EncoderSettings) -> str:
    """Return why a run cannot be cross-validated, if there is a reason."""
    if world_size() > 1:
        return f"{world_size()} processes train together, and folds are trained in one"
    on_dev = {
        "merge": settings.merge,
        "learning_curve": settings.learning_curve,
        "matryoshka": bool(settings.matryoshka),
        "early_stopping_patience": settings.early_stopping_patience is not None,
    }
    name = next((name for name, needs_dev in on_dev.items() if needs_dev), "")
    if not name:
        return ""
    return f"`{name}` needs dev pairs"


def _as_sources(data: Source) -> list[Source] | Examples:
    if isinstance(data, DATA_TYPES):
        return cast(Examples, data)
    return [rereadable(source) for source in as_sources(data)]


def _choose_settings(
    fitting: Fitting,
    data: list[Source] | Examples,
    config: str,
    overrides: Mapping[str, Any],
    reading: Reading,
    *,
    with_held_out: bool,
) -> _ConfiguredExamples:
    """Return the settings of the run and its training data.

    Of some methods the settings decide what is read, of others the data decide the settings. Of documents some are held
    out where that is asked for.
    """
    method = fitting.method
    # What was read for the choice of settings is not read again.
    early_data: list[Examples] = []

    def read(settings: EncoderSettings) -> Examples:
        if isinstance(data, list):
            held_out = with_held_out and reading == Reading() and are_documents(data, method.name)
            if held_out:
                return read_with_held_out(data, settings)
            return method.read(data, settings, reading)
        if isinstance(data, PairData) and TupleData in method.data:
            return tuples_of_pairs(data)
        if not isinstance(data, method.data):
            raise ConfigError(f"Method {method.name} trains on {method.takes}; received {type(data).__name__}.")
        return data

    def read_early() -> Examples:
        early_data.append(read(method.settings()))
        return early_data[0]

    name, settings = method.choose(config, overrides, read_early, fitting.form)
    return _ConfiguredExamples(name, settings, early_data[0] if early_data else read(settings))
