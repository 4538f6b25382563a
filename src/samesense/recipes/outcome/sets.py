"""On which pairs the trained model is compared with its start, and which select."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from samesense.data import PairData
from samesense.data.examples import Examples, drawn_from
from samesense.data.held_out import HeldOutSections
from samesense.data.pairs.data import one_label
from samesense.data.pairs.keys import Groups
from samesense.errors import ConfigError, DataError
from samesense.evaluation.sts import StsTask
from samesense.inference.calibration.fit import FOLDS, fold_numbers
from samesense.recipes.outcome.cross_validation import CrossValidation
from samesense.recipes.outcome.section_set import SectionSet
from samesense.recipes.settings import EncoderSettings
from samesense.reports.run_verdict import CROSS_FITTED, OUT_OF_FOLD, Role
from samesense.training.settings import TrainerSettings
from samesense.types import Pair

FEWEST = 100
"""Half of the pairs that select at least, where there are so many. On STS-B the 95 % interval of a gain reaches 2
points to each side with 100 pairs after a run that changed little, 10 after one that changed much; with 50 pairs 4 and
15, with 400 pairs 1 and 5."""

LEAST = 20
"""Pairs that a verdict needs: resamples of fewer are too alike for an interval that holds what it says."""

MOST = 1000
"""Pairs that it has at most, and of those that are left, pairs that select at most."""

SHARE = 0.4
"""Pairs that select, as a part of the examples trained between two evaluations: these then take about a tenth of the
time of training. A pair took 8.8 ms in training and 2.0 ms in evaluation, both in bfloat16 (two cores, six layers)."""

SEED = 0
"""Of the cut, whatever the seed of the run: seeds of one method are compared on the same pairs. Where dev is held
out of the training data, the seed decides that."""


NOTHING_TO_COMPARE_ON = "there are neither test nor dev pairs. Give `test` FILE"
"""Why a run without labelled pairs beside those it is trained on has no verdict."""


@dataclass(frozen=True, eq=False)
class ComparedSet:
    """Pairs on which start and end are compared."""

    role: Role
    data: PairData
    name: str  # of the set, in results
    how: str = ""  # how it was cut, or its scores were made, in words

    @property
    def task(self) -> StsTask:
        """The evaluation; DataError if no score could correlate with its labels."""
        return StsTask(self.data, dataset=self.name)

    def pairs(self) -> Sequence[Pair]:
        """Return the pairs that a model scores."""
        return self.data.pairs()

    def texts(self) -> Sequence[str]:
        """Return the sentences of the pairs."""
        return [*self.data.sentences1, *self.data.sentences2]


@dataclass(frozen=True)
class Sets:
    """What selects, and what is compared on."""

    selecting: PairData | None
    compared: tuple[ComparedSet | SectionSet, ...]  # the set of the verdict first, if there is one; then guards
    reason: str = ""  # why there is no verdict

    @property
    def verdict(self) -> ComparedSet | SectionSet | None:
        """The set of the verdict."""
        return next((compared_set for compared_set in self.compared if compared_set.role != "guard"), None)

    def on_sections_of(self, train: Examples) -> Sets:
        """Return the sets with the documents that were held out of the training data, where there is no other set."""
        held_out: HeldOutSections | None = getattr(train, "held_out", None)
        if held_out is None or self.verdict is not None:
            return self
        if not held_out.triplets:
            return replace(self, reason=held_out.reason)
        return replace(self, compared=(SectionSet(held_out), *self.compared), reason="")


def most_selecting(settings: TrainerSettings, examples: int) -> int:
    """Return how many pairs select at most in a run over ``examples`` training examples."""
    between = settings.steps_between_evaluations(examples) * settings.batch_size
    return min(MOST, max(2 * FEWEST, round(SHARE * between)))


def sets_of_run(
    settings: EncoderSettings,
    train: Examples,
    *,
    dev: PairData | None,
    test: PairData | None,
    guards: Sequence[PairData],
    cut: bool,
    cross_validation: CrossValidation | None = None,
) -> Sets:
    """Return what selects in a run, and on what the trained model is compared with its start; raises as ``sets_of``."""
    if cross_validation is not None:
        return out_of_fold_sets(train, cross_validation, guards)
    # what is chosen further on dev, or trained for it, needs pairs that chose nothing
    cross_fit = not (settings.merge or settings.learning_curve)
    most = most_selecting(settings, len(train))
    return sets_of(dev, test, guards, cut=cut, most=most, cross_fit=cross_fit).on_sections_of(train)


def sets_of(
    dev: PairData | None,
    test: PairData | None,
    guards: Sequence[PairData] = (),
    *,
    cut: bool = True,
    most: int = MOST,
    cross_fit: bool = True,
) -> Sets:
    """Return the set of the verdict and the guards, and the pairs that are left to select.

    The verdict is on test, or else on dev. Where no more than ``most`` pairs of dev are there, all of them select, and
    each is scored for the verdict at the step that pairs of other folds choose. Of more, half is set apart, at most
    1000 pairs, which then selects nothing: no sentence stands in both parts, or, where nearly all pairs hang together
    by their sentences, no pair. Of what is left, ``most`` pairs drawn at random select. Without ``cross_fit`` a part is
    set apart however few they are. Without ``cut`` all of dev selects, and there is no verdict on it.

    Raises:
        ConfigError: if two sets have one name.
        DataError: if no score could correlate with the labels of a set.
    """
    selecting, reason = dev, ""
    first: tuple[ComparedSet, ...] = ()
    if test is not None:
        first = (ComparedSet("test", test, test.name),)
    elif cut:
        selecting, first, reason = _verdict_on_dev(dev, most, cross_fit=cross_fit)
    if cut and selecting is not None and len(selecting) > most:
        selecting = selecting.take(drawn_from(len(selecting), most, SEED))
    return _checked(Sets(selecting, (*first, *_guarded(guards)), reason))


def out_of_fold_sets(train: Examples, dealt: CrossValidation, guards: Sequence[PairData] = ()) -> Sets:
    """Return the sets of a run whose verdict is on its training pairs, scored out of fold; raises as ``sets_of``."""
    if not isinstance(train, PairData):
        raise ConfigError("Cross-validation deals labelled pairs into folds. Give some, or take `folds` none.")
    first = ComparedSet(OUT_OF_FOLD, train, train.name, dealt.description())
    return _checked(Sets(None, (first, *_guarded(guards))))


def folds_of_dev(selecting: PairData) -> tuple[Groups, str]:
    """Return the fold of each selecting pair ``(pairs,)``, and what folds do not share: sentence or pair."""
    numbers, apart = fold_numbers(selecting, FOLDS, SEED)
    return numbers, apart.removesuffix("s")


def _guarded(guards: Sequence[PairData]) -> list[ComparedSet]:
    return [ComparedSet("guard", guard, guard.name) for guard in guards]


def _checked(sets: Sets) -> Sets:
    """Return the sets; ConfigError if two have one name, DataError if no score could correlate with the labels."""
    names = [compared.name for compared in sets.compared]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(
            f"What the model is compared on stands in one table, and two of the sets are called {twice}. Rename a file."
        )
    for compared in sets.compared:
        _ = compared.task
    return sets


def _verdict_on_dev(
    dev: PairData | None, most: int, *, cross_fit: bool
) -> tuple[PairData | None, tuple[ComparedSet, ...], str]:
    """Return the pairs of dev that select, the set of the verdict, and why there is none."""
    if dev is None:
        return None, (), NOTHING_TO_COMPARE_ON
    if len(dev) < LEAST:
        why = (
            f"it takes {LEAST} labelled pairs that were not trained on, and dev has {len(dev)}. Give `test` FILE, or "
            'hold out a part of the training pairs, as in `test` "hold 0.2"'
        )
        return dev, (), why
    if cross_fit and len(dev) <= most and not one_label(dev.labels):
        apart = folds_of_dev(dev)[1]
        description = f"of dev, each scored at the step that others chose, which share no {apart} with it"
        return dev, (ComparedSet(CROSS_FITTED, dev, dev.name, description),), ""
    return _cut(dev)


def _cut(dev: PairData) -> tuple[PairData | None, tuple[ComparedSet, ...], str]:
    """Return the part of dev that selects, the one for the verdict, and why there is none."""
    fraction = min(0.5, MOST / len(dev))
    fewest = min(FEWEST, len(dev) // 2 - len(dev) // 20)
    for apart in ("sentences", "pairs"):
        with suppress(DataError):
            selecting, verdict_pairs = dev.split(fraction, SEED, apart=apart)
            if len(verdict_pairs) >= fewest and not one_label(selecting.labels) and not one_label(verdict_pairs.labels):
                description = f"of dev that selected nothing and share no {apart.removesuffix('s')} with those that did"
                return selecting, (ComparedSet("dev", verdict_pairs, f"{dev.name} (apart)", description),), ""
    return dev, (), "dev cannot be cut in two, as its pairs repeat or one part would have one label. Give `test` FILE"
