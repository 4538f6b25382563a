"""Short names of sources by which they cannot be confused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from samesense.places import JOINT


def distinct_names(short_names: Sequence[str], sources: Sequence[str]) -> list[str]:
    """Return the short name of each source, or, where several sources share it, the shortest end of its path alone.

    That is the name of the file with as many folders before it as tell it from the others. Sources that are joined of
    several, and one that occurs twice, keep their names as they stand.

    Example:
        >>> distinct_names(["train.tsv", "train.tsv", "test.tsv"], ["old/train.tsv", "new/train.tsv", "new/test.tsv"])
        ['old/train.tsv', 'new/train.tsv', 'test.tsv']
    """
    names = []
    for short_name, source in zip(short_names, sources, strict=True):
        namesakes = zip(short_names, sources, strict=True)
        rivals = {rival for name, rival in namesakes if name == short_name and rival != source}
        names.append(_shortest_end(source, rivals) if rivals else short_name)
    return names


def _shortest_end(source: str, rivals: set[str]) -> str:
    if JOINT in source:
        return source
    pieces = PurePath(source).parts
    for length in range(2, len(pieces)):
        if all(PurePath(rival).parts[-length:] != pieces[-length:] for rival in rivals):
            return "/".join(pieces[-length:])
    return source
