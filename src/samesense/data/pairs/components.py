"""Pairs that hang together: each shares a sentence with another of its group, and with none of any other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from samesense.types import Pair


def components(pairs: Sequence[Pair]) -> list[list[int]]:
    """Return the connected components of pairs by their sentences: places of pairs, in order of first appearance."""
    group: dict[str, str] = {}

    def root(text: str) -> str:
        while group.setdefault(text, text) != text:
            group[text] = group[group[text]]
            text = group[text]
        return text

    for one, other in pairs:
        group[root(one)] = root(other)
    found: dict[str, list[int]] = {}
    for place, (one, _) in enumerate(pairs):
        found.setdefault(root(one), []).append(place)
    return list(found.values())


def sentences_of(pairs: Iterable[Pair]) -> set[str]:
    """Return the sentences of pairs."""
    return {text for pair in pairs for text in pair}
