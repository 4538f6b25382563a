"""Columns of training data as a data set of the trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from samesense.data.mapped import is_mapped
from samesense.failures import imported

if TYPE_CHECKING:
    from datasets import Dataset


def as_dataset(columns: Mapping[str, Sequence[Any]]) -> Dataset:
    """Return columns as a data set: text columns, then ``label`` where there is one; mapped texts stay mapped."""
    datasets = imported("datasets", "train")
    mapped = {name: values for name, values in columns.items() if is_mapped(values)}
    if not mapped:
        return datasets.Dataset.from_dict(dict(columns))
    # Columns that are mapped together stand in one table.
    (table,) = {id(texts.source): texts.source for texts in mapped.values()}.values()
    table = table.select_columns([texts.column_name for texts in mapped.values()])
    new_names = {texts.column_name: name for name, texts in mapped.items() if texts.column_name != name}
    if new_names:
        table = table.rename_columns(new_names)
    for column in columns.keys() - mapped.keys():
        values = columns[column]
        # Labels with groups are a list of lists, which add_column takes, but not as a matrix.
        table = table.add_column(column, values if isinstance(values, list) else np.asarray(values))
    return table
