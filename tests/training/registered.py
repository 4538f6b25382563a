"""Test data for every registered loss; no loss is named here, so new ones are tested too."""

import random
import typing

from samesense.losses.registry import PAIR_LOSSES
from samesense.recipes.cosent.settings import CosentSettings
from tests.conftest import WORDS
from tests.data.made import pair_data

LABELS = {"binary": [0.0, 1.0], "scored": [0.0, 1.5, 4.0, 5.0], "nli": [0.0, 1.0, 2.0], "triplet": [0.0, 1.0]}


def specs(encoder):
    return {spec.name: spec for spec in PAIR_LOSSES.specs if spec.encoder == encoder}


def trained_on(spec, rows, **options):
    """Return settings, targets, and the text columns and labels of this number of rows of the targets."""
    source = random.Random(3)
    sentences = [" ".join(source.sample(WORDS, source.randint(2, 6))) for _ in range(9)]
    kind = "binary" if "binary" in spec.kinds else spec.kinds[0]
    pairs = [(*source.sample(sentences, 2), source.choice(LABELS[kind])) for _ in range(8 * rows)]
    settings = CosentSettings(loss=spec.name, encoder=spec.encoder, **options)
    targets = settings.targets(pair_data(pairs, kind))
    columns = {name: values[:rows] for name, values in targets.trainer_columns().items()}
    return settings, targets, [values for name, values in columns.items() if name != "label"], columns.get("label")


def other_value(field):
    """Return a value of a setting that is not its default."""
    arguments = typing.get_args(field.annotation)
    # Of an optional word too, whose annotation is a union.
    arguments += tuple(choice for argument in arguments for choice in typing.get_args(argument))
    choices = [choice for choice in arguments if isinstance(choice, str)]
    if choices:
        return next(choice for choice in choices if choice != field.default)
    if int in typing.get_args(field.annotation):
        return 2
    if str in typing.get_args(field.annotation):
        return "2"
    if isinstance(field.default, bool):
        return not field.default
    if isinstance(field.default, int | str):
        return type(field.default)(2)
    return 0.375
