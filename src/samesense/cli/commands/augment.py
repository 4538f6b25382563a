"""``samesense augment``: shows the effect of an augmentation before training with it."""

from __future__ import annotations

from samesense.cli.command import reads_tables
from samesense.cli.output import Json, Several, logger, put, put_json
from samesense.data.tuples.augmentations import PARAPHRASER, AugmentName


@reads_tables
def augment(
    data: Several,
    /,
    *,
    augment: AugmentName = "deletion",
    share: float | None = None,
    paraphraser: str = PARAPHRASER,
    show: int = 5,
    seed: int = 42,
    columns: str | None = None,
    label_order: str | None = None,
    json: Json = False,
) -> None:
    """Show what an augmentation makes of the positives of your data, before training with it.

    samesense augment nli.tsv --augment deletion

    Args:
        data: NLI pairs, or anchors with lists of positives and negatives.
        augment: deletion, synonym or paraphrase.
        share: share of the words, or for paraphrase of the texts; by default 0.1, 0.2 and 0.5.
        paraphraser: folder or hub name of a sequence-to-sequence model.
        show: number of positives to show.
        seed: seed of the choice; use that of the training.
        columns: anchor,positive or anchor,positive,negative or premise,hypothesis,label by name.
        label_order: names of the labels 0, 1, 2 of NLI data, as in entailment,neutral,contradiction.
        json: print one JSON object per example.
    """
    from samesense.data.tuples.augment import examples
    from samesense.data.tuples.augmentations import augment_named
    from samesense.data.tuples.read import read_tuples

    read = read_tuples(data, columns=columns, label_order=label_order, drop_bad_rows=None)
    change = augment_named(augment, fraction=share, seed=seed, paraphraser=paraphraser)
    if change is None:
        logger.info("none: places for positives take copies of the anchor, and no text is changed")
        return
    pairs = examples(read, change, show)
    if json:
        put_json({"text": text, "augmented": new} for text, new in pairs)
        return
    for text, new in pairs:
        if new is None:
            new = "(not changed)"
        put(f"from: {text}\nto:   {new}")
