"""How data differs from what was published under its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from samesense.data.benchmarks.catalogue import Benchmark, part_name
from samesense.data.benchmarks.original import Loaded
from samesense.data.benchmarks.text_variant import text_variant
from samesense.data.pairs.data import PairData

NOT_COMPARABLE = "not comparable with published figures: "
"""What comes before the reasons in a protocol."""


def why_not_comparable(protocol: str) -> str:
    """Return the reasons a protocol gives for not comparing its figure with published ones; empty if there is none."""
    return protocol.partition(NOT_COMPARABLE)[2].partition(";")[0]


def remarks(benchmark: Benchmark, split: str, data: Loaded) -> tuple[str, list[str]]:
    """Compare data with what was published of it.

    Args:
        benchmark: its row of the catalogue.
        split: the split, as in the catalogue.
        data: what was read.

    Returns:
        The text variant, row count and what was left out, in words; and every way in which figures on this data
        cannot be compared with published ones.
    """
    texts = [*data.sentences1, *data.sentences2] if isinstance(data, PairData) else data.texts
    name, published = part_name(benchmark.name, split), benchmark.rows[split]
    facts = [f"{name}: {text_variant(texts)}, {len(data)} rows"]
    unlabelled = data.dropped_unlabelled if isinstance(data, PairData) else 0
    empty = sum(not text.strip() for text in texts)
    facts += [f"{unlabelled} pairs without a score left out"] if unlabelled else []
    facts += [f"{data.dropped} malformed rows left out"] if data.dropped else []
    facts += [f"{empty} empty sentences kept"] if empty else []
    differing = [] if len(data) == published else [f"{name} has {len(data)} rows instead of {published}"]
    if isinstance(data, PairData) and data.subsets is not None and benchmark.subsets:
        differing += _differing_subsets(benchmark, Counter(data.subsets), name)
    return ", ".join(facts), differing


def _differing_subsets(benchmark: Benchmark, found: Counter[str], name: str) -> Iterator[str]:
    for subset in dict.fromkeys([*benchmark.subsets, *found]):
        count, published = found[subset], benchmark.subsets.get(subset, 0)
        if count != published:
            yield f"subset {subset!r} of {name} has {count} rows instead of {published}"
