"""Chooses the pairs on which the trained model is compared with its start, and those that select the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from samesense.data import PairData
from samesense.data.columns.labels import has_one_label
from samesense.data.examples import Examples
from samesense.data.held_out import HeldOutSections
from samesense.data.pairs.folds import FOLDS, fold_numbers
from samesense.data.pairs.keys import Groups
from samesense.data.sampling import draw_positions
from samesense.data.tuples.data import HeldOutAnchors, HeldOutTexts, TupleData
from samesense.errors import ConfigError, DataError
from samesense.evaluation.sts import StsTask
from samesense.recipes.held_out.cross_validation import CrossValidation
from samesense.recipes.held_out.unlabelled_sets import AnchorSet, ClassSet, SectionSet
from samesense.recipes.settings import EncoderSettings
from samesense.reports.run_verdict import CROSS_FITTED, OUT_OF_FOLD, Role
from samesense.training.settings import TrainerSettings
from samesense.types import Pair

FEWEST = 100
"""Half of the fewest pairs that select, where there are enough. On STS-B the 95 % interval of a gain reaches 2 points
to each side with 100 pairs after a run that changed little, 10 after one that changed much; with 50 pairs 4 and 15,
with 400 pairs 1 and 5."""

LEAST = 20
"""Fewest pairs of a verdict: resamples of fewer are too alike for a valid interval."""

MOST = 1000
"""Most pairs of a verdict, and most of the remaining pairs that select."""

SHARE = 0.4
"""Pairs that select, as a share of the examples trained between two evaluations: evaluation then takes about a tenth of
the training time. A pair took 8.8 ms in training and 2.0 ms in evaluation, both in bfloat16 (two cores, six layers)."""

SEED = 0
"""Seed of the split of dev, independent of the run's seed, so that seeds of one method are compared on the same pairs.
The run's seed only decides which training pairs are held out as dev."""


NOTHING_TO_COMPARE_ON = "there are neither test nor dev pairs. Give `test` FILE"
"""Why a run without labelled pairs besides the training pairs has no verdict."""


@dataclass(frozen=True, eq=False)
class ComparedSet:
    """Pairs on which start and end are compared."""

    role: Role
    data: PairData
    name: str  # of the set, in results
    description: str = ""  # how it was split off, or its scores were made, in words

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


VerdictSet = ComparedSet | SectionSet | AnchorSet | ClassSet
"""What start and end are compared on."""


@dataclass(frozen=True)
class Sets:
    """The pairs that select, and the sets to compare on."""

    selecting: PairData | None
    compared: tuple[VerdictSet, ...]  # the set of the verdict first, if there is one; then guards
    reason: str = ""  # why there is no verdict

    @property
    def verdict(self) -> VerdictSet | None:
        """The set of the verdict."""
        return next((compared_set for compared_set in self.compared if compared_set.role != "guard"), None)

    def on_held_out_of(self, train: Examples) -> Sets:
        """Return the sets with what is held out of the training data, if there is no other set for a verdict."""
        held_out: HeldOutSections | HeldOutAnchors | HeldOutTexts | None = getattr(train, "held_out", None)
        if held_out is None or self.verdict is not None:
            return self
        if held_out.reason:
            return replace(self, reason=held_out.reason)
        if isinstance(held_out, HeldOutSections):
            verdict_set: VerdictSet = SectionSet(held_out)
        else:
            verdict_set = _set_of_tuples(held_out, cast(TupleData, train))
        return _checked(replace(self, compared=(verdict_set, *self.compared), reason=""))


def _set_of_tuples(held_out: HeldOutAnchors | HeldOutTexts, train: TupleData) -> AnchorSet | ClassSet:
    """Return the set of anchors, or of texts with classes: the user's test, or what was held out."""
    data = held_out.data
    if data is None:
        raise ValueError("what is held out has data or a reason")
    tuple_set: AnchorSet | ClassSet
    if isinstance(held_out, HeldOutTexts):
        tuple_set = ClassSet(train, data)
    else:
        tuple_set = AnchorSet(data, held_out.candidates, held_out.description)
    return replace(tuple_set, role="test", name=data.name) if held_out.is_test else tuple_set


def most_selecting(settings: TrainerSettings, examples: int) -> int:
    """Return the largest number of selecting pairs in a run over ``examples`` training examples."""
    between = settings.steps_between_evaluations(examples) * settings.batch_size
    return min(MOST, max(2 * FEWEST, round(SHARE * between)))


def sets_of_run(
    settings: EncoderSettings,
    train: Examples,
    *,
    dev: PairData | None,
    test: PairData | None,
    guards: Sequence[PairData],
    split_dev: bool,
    cross_validation: CrossValidation | None = None,
) -> Sets:
    """Return the selecting pairs of a run, and the sets to compare start and end on; raises as ``sets_of``."""
    if cross_validation is not None:
        return out_of_fold_sets(train, cross_validation, guards)
    # merging and the learning curve choose on dev too, so the verdict needs pairs that chose nothing
    cross_fit = not (settings.merge or settings.learning_curve)
    most = most_selecting(settings, len(train))
    # Where the test is of anchors or classes, dev need not give the verdict.
    split_dev = split_dev and getattr(train, "test", None) is None
    return sets_of(dev, test, guards, split_dev=split_dev, most=most, cross_fit=cross_fit).on_held_out_of(train)


def sets_of(
    dev: PairData | None,
    test: PairData | None,
    guards: Sequence[PairData] = (),
    *,
    split_dev: bool = True,
    most: int = MOST,
    cross_fit: bool = True,
) -> Sets:
    """Return the set of the verdict and the guards, and the remaining pairs that select.

    The verdict is on test, or else on dev. If dev has at most ``most`` pairs, all of them select, and each is scored
    for the verdict at the step that pairs of other folds choose. A larger dev is split: half of it, at most 1000 pairs,
    is for the verdict and selects nothing. The halves share no sentence; or only no pair, where nearly all pairs are
    connected by shared sentences. Of the other half, ``most`` random pairs select. Without ``cross_fit`` dev is split
    regardless of its size. Without ``split_dev`` all of dev selects, and there is no verdict on it.

    Raises:
        ConfigError: if two sets have one name.
        DataError: if no score could correlate with the labels of a set.
    """
    use = _DevUse(dev)
    if test is not None:
        use = _DevUse(dev, ComparedSet("test", test, test.name))
    elif split_dev:
        use = _verdict_on_dev(dev, most, cross_fit=cross_fit)
    selecting = use.selecting
    if split_dev and selecting is not None and len(selecting) > most:
        selecting = selecting.take(draw_positions(len(selecting), most, SEED))
    first = [] if use.verdict is None else [use.verdict]
    return _checked(Sets(selecting, (*first, *_guarded(guards)), use.reason))


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
            f"The sets that the model is compared on must have different names; two are called {twice}. Rename a file."
        )
    for compared in sets.compared:
        # Made only to raise now what would otherwise be raised after the training.
        _ = compared.task
    return sets


class _DevUse(NamedTuple):
    """The pairs that select, the set of the verdict, and the reason if there is none."""

    selecting: PairData | None
    verdict: ComparedSet | None = None
    reason: str = ""


def _verdict_on_dev(dev: PairData | None, most: int, *, cross_fit: bool) -> _DevUse:
    if dev is None:
        return _DevUse(None, reason=NOTHING_TO_COMPARE_ON)
    if len(dev) < LEAST:
        reason = (
            f"it takes {LEAST} labelled pairs that were not trained on, and dev has {len(dev)}. Give `test` FILE, or "
            'hold out a part of the training pairs, as in `test` "hold 0.2"'
        )
        return _DevUse(dev, reason=reason)
    if cross_fit and len(dev) <= most and not has_one_label(dev.labels):
        apart = folds_of_dev(dev)[1]
        description = f"of dev, each scored at the step that others chose, which share no {apart} with it"
        return _DevUse(dev, ComparedSet(CROSS_FITTED, dev, dev.name, description))
    return _split_dev(dev)


def _split_dev(dev: PairData) -> _DevUse:
    """Return the half of dev that selects, and the half for the verdict."""
    fraction = min(0.5, MOST / len(dev))
    # Connected pairs stay together, so that a half may miss its size by a twentieth of dev.
    fewest = min(FEWEST, len(dev) // 2 - len(dev) // 20)
    for apart in ("sentences", "pairs"):
        with suppress(DataError):
            selecting, verdict_pairs = dev.split(fraction, SEED, apart=apart)
            have_labels = not (has_one_label(selecting.labels) or has_one_label(verdict_pairs.labels))
            if len(verdict_pairs) >= fewest and have_labels:
                description = f"of dev that selected nothing and share no {apart.removesuffix('s')} with those that did"
                return _DevUse(selecting, ComparedSet("dev", verdict_pairs, f"{dev.name} (apart)", description))
    reason = "dev cannot be cut in two, as its pairs repeat or one part would have one label. Give `test` FILE"
    return _DevUse(dev, reason=reason)
