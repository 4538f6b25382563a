"""The values of Arrow arrays, and the bytes that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def leaf_count(kind: pa.DataType) -> int:
    """Return how many columns of the file hold a column of this type: several for a struct."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return leaf_count(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return 1
    return sum(leaf_count(kind.field(index).type) for index in range(kind.num_fields)) if kind.num_fields else 1


def most_bytes(array: pa.Array) -> int:
    """Return the bytes that the values of an array take at most, a text of a dictionary as often as it stands there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ExtensionArray):
        return most_bytes(array.storage)
    if isinstance(array, pa.DictionaryArray):
        used = array.indices.drop_null()
        if not has_lengths(array.dictionary.type):
            # An upper bound: one value is taken to be as large as the whole dictionary.
            return len(used) * most_bytes(array.dictionary)
        return pc.sum(pc.binary_length(array.dictionary).take(used)).as_py() or 0
    if has_lengths(array.type):
        return pc.sum(pc.binary_length(array)).as_py() or 0
    if isinstance(array, pa.MapArray):
        # The children of a slice are those of the whole array, so its own part is cut out.
        start, end = (array.offsets[index].as_py() for index in (0, -1))
        return sum(most_bytes(child.slice(start, end - start)) for child in (array.keys, array.items)) + len(array)
    if isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        return most_bytes(array.flatten()) + len(array)
    if isinstance(array, pa.StructArray):
        return sum(map(most_bytes, array.flatten()))
    return int(array.nbytes)


def has_lengths(kind: pa.DataType) -> bool:
    """Return whether the values of a type are texts or bytes."""
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def values_of(array: pa.Array) -> list[object]:
    """Return the values of an array; those of a dictionary are decoded once, however often they stand there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(array, pa.DictionaryArray):
        return list(array.to_pylist())
    indices = array.indices
    distinct = pc.unique(indices).drop_null()
    dictionary = array.dictionary
    # Arrow does not take from views, which polars gives for categories.
    if pa.types.is_string_view(dictionary.type):
        dictionary = dictionary.cast(pa.large_string())
    texts = dict(zip(distinct.to_pylist(), dictionary.take(distinct).to_pylist(), strict=True))
    return [None if index is None else texts[index] for index in indices.to_pylist()]
