"""Short names that distinguish sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from samesense.places import JOINT


def distinct_names(short_names: Sequence[str], sources: Sequence[str]) -> list[str]:
    """Return the short name of each source, or, if several sources share it, the shortest unique end of its path.

    That is the file name with as many parent folders as are needed to distinguish it. Joined sources, and a source that
    occurs twice, keep their names.

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
    # From two parts on, because the file name alone is shared.
    for length in range(2, len(pieces)):
        if all(PurePath(rival).parts[-length:] != pieces[-length:] for rival in rivals):
            return "/".join(pieces[-length:])
    return source
