"""Reports how a copy of a benchmark differs from the published one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from samesense.data.benchmarks.catalogue import Benchmark, split_name
from samesense.data.benchmarks.sentences import Loaded
from samesense.data.pairs.data import PairData

NOT_COMPARABLE = "not comparable with published figures: "
"""Marker in a protocol, followed by the reasons."""

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_GLUED = re.compile(r"[^\W\d_][,.?!]( |$)")
_APART = re.compile(r"(^| )[,.?!]( |$)")


def why_not_comparable(protocol: str) -> str:
    """Return the reasons in a protocol why its figure is not comparable with published ones; empty without any."""
    return protocol.partition(NOT_COMPARABLE)[2].partition(";")[0]


class Comparability(NamedTuple):
    """How a copy of a split compares with the published one.

    Attributes:
        facts: the text variant, the number of rows, and how many rows were left out, in words.
        differences: the reasons why figures on the copy are not comparable with published ones; empty without any.
    """

    facts: str
    differences: list[str]


def compare_with_published(benchmark: Benchmark, split: str, data: Loaded) -> Comparability:
    """Return how data that were read as a split of a benchmark compare with the published split."""
    texts: Sequence[str]
    texts = [*data.sentences1, *data.sentences2] if isinstance(data, PairData) else data.texts
    name = split_name(benchmark.name, split)
    published = benchmark.rows[split]
    facts = [f"{name}: {text_variant(texts)}, {len(data)} rows"]
    unlabelled = data.dropped_unlabelled if isinstance(data, PairData) else 0
    empty = sum(not text.strip() for text in texts)
    if unlabelled:
        facts.append(f"{unlabelled} pairs without a score left out")
    if data.dropped:
        facts.append(f"{data.dropped} malformed rows left out")
    if empty:
        facts.append(f"{empty} empty sentences kept")
    differences = []
    if len(data) != published:
        differences = [f"{name} has {len(data)} rows instead of {published}"]
    if isinstance(data, PairData) and data.subsets is not None and benchmark.subsets:
        differences += _differing_subsets(benchmark, Counter(data.subsets), name)
    return Comparability(", ".join(facts), differences)


def _differing_subsets(benchmark: Benchmark, counts: Counter[str], name: str) -> Iterator[str]:
    # Also the subsets that only one of the two has.
    for subset in dict.fromkeys([*benchmark.subsets, *counts]):
        count = counts[subset]
        published = benchmark.subsets.get(subset, 0)
        if count != published:
            yield f"subset {subset!r} of {name} has {count} rows instead of {published}"


def is_chinese(texts: Sequence[str]) -> bool:
    """Return whether most of the texts have a Chinese character."""
    return 2 * sum(bool(_HAN.search(text)) for text in texts) > len(texts)


def text_variant(texts: Sequence[str]) -> str:
    """Return how texts were preprocessed, such as ``"raw text"`` or ``"tokenised, lower-cased text"``.

    Texts are tokenised if more of them separate punctuation from the word before it than do not, and lower-cased if at
    most one in twenty has an upper-case letter (published copies have a few). Chinese text is always raw. Cased models
    score differently on different variants.
    """
    if is_chinese(texts):
        return "raw text"
    # Tokenisers put spaces around punctuation; raw text has it next to the word.
    separated = sum(bool(_APART.search(text)) for text in texts)
    attached = sum(bool(_GLUED.search(text)) for text in texts)
    lower_cased = 20 * sum(text != text.lower() for text in texts) <= len(texts)
    changes = [name for name, applies in (("tokenised", separated > attached), ("lower-cased", lower_cased)) if applies]
    return f"{', '.join(changes) or 'raw'} text"
