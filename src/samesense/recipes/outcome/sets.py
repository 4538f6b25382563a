"""On which pairs the trained model is compared with its start, and which select."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from samesense.data import PairData
from samesense.data.examples import Examples, drawn_from
from samesense.data.held_out import HeldOutSections
from samesense.errors import ConfigError, DataError
from samesense.evaluation.sts import StsTask
from samesense.recipes.outcome.section_set import SectionSet
from samesense.reports.run_verdict import Role
from samesense.training.settings import TrainerSettings
from samesense.types import Pair

FEWEST = 100
"""Pairs that the part of dev for the verdict has at least, and the part that selects: with fewer, the 95 % interval of
a gain is wider than most gains. On STS-B it reaches 2 points to each side with 100 pairs after a run that changed
little, 10 after one that changed much; with 50 pairs 4 and 15, with 400 pairs 1 and 5."""

MOST = 1000
"""Pairs that it has at most, and of those that are left, pairs that select at most."""

SHARE = 0.4
"""Pairs that select, as a part of the examples trained between two evaluations: these then take about a tenth of the
time of training. A pair took 8.8 ms in training and 2.0 ms in evaluation, both in bfloat16 (two cores, six layers)."""

SEED = 0
"""Of the cut, whatever the seed of the run: seeds of one method are compared on the same pairs. Where dev is held
out of the training data, the seed decides that."""


@dataclass(frozen=True, eq=False)
class ComparedSet:
    """Pairs on which start and end are compared."""

    role: Role
    data: PairData
    name: str  # of the set, in results
    how: str = ""  # how it was cut, in words

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
        return next((one for one in self.compared if one.role != "guard"), None)

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


def sets_of(
    dev: PairData | None,
    test: PairData | None,
    guards: Sequence[PairData] = (),
    *,
    cut: bool = True,
    most: int = MOST,
) -> Sets:
    """Return the set of the verdict and the guards, and the pairs that are left to select.

    The verdict is on test, or else on half of dev, at most 1000 pairs, which then selects nothing: no sentence stands
    in both parts, or, where nearly all pairs hang together by their sentences, no pair. Of what is left, ``most`` pairs
    drawn at random select. Without ``cut`` all of dev selects.

    Raises:
        ConfigError: if two sets have one name.
        DataError: if no score could correlate with the labels of a set.
    """
    names = [one.name for one in (test, *guards) if one is not None]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"Test and guards stand in one table, and two of them are called {twice}. Rename a file.")
    selecting, reason = dev, ""
    first: tuple[ComparedSet, ...] = ()
    if test is not None:
        first = (ComparedSet("test", test, test.name),)
    elif cut:
        selecting, first, reason = _cut(dev)
    if cut and selecting is not None and len(selecting) > most:
        selecting = selecting.take(drawn_from(len(selecting), most, SEED))
    compared = (*first, *(ComparedSet("guard", one, one.name) for one in guards))
    for one in compared:
        _ = one.task
    return Sets(selecting, compared, reason)


def _cut(dev: PairData | None) -> tuple[PairData | None, tuple[ComparedSet, ...], str]:
    """Return the part of dev that selects, the one for the verdict, and why there is none."""
    if dev is None:
        return None, (), "there are neither test nor dev pairs. Give `test` FILE"
    if len(dev) < 2 * FEWEST:
        why = (
            f"the {len(dev)} dev pairs choose the checkpoint, so they cannot also test it. Give `test` FILE with pairs "
            f"that are not trained on (from {2 * FEWEST} dev pairs on, half of them are the test)"
        )
        return dev, (), why
    share = min(0.5, MOST / len(dev))
    for apart in ("sentences", "pairs"):
        with suppress(DataError):
            selecting, kept = dev.split(share, SEED, apart=apart)
            if len(kept) >= FEWEST and min(len(set(selecting.labels)), len(set(kept.labels))) > 1:
                how = f"of dev that selected nothing and share no {apart.removesuffix('s')} with those that did"
                return selecting, (ComparedSet("dev", kept, f"{dev.name} (apart)", how),), ""
    return dev, (), "dev cannot be cut in two, as its pairs repeat or one part would have one label. Give `test` FILE"
