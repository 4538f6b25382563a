"""How data differs from what was published under its name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from samesense.data.benchmarks.catalogue import Benchmark, part_name
from samesense.data.benchmarks.sentences import Loaded
from samesense.data.pairs.data import PairData

NOT_COMPARABLE = "not comparable with published figures: "
"""What comes before the reasons in a protocol."""

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_GLUED = re.compile(r"[^\W\d_][,.?!]( |$)")
_APART = re.compile(r"(^| )[,.?!]( |$)")


def why_not_comparable(protocol: str) -> str:
    """Return the reasons a protocol gives for not comparing its figure with published ones; empty if there is none."""
    return protocol.partition(NOT_COMPARABLE)[2].partition(";")[0]


def remarks(benchmark: Benchmark, split: str, data: Loaded) -> tuple[str, list[str]]:
    """Return facts about data in words, and every way in which figures on it cannot be compared with published ones.

    Facts are the text variant, the row count and what was left out.
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


def is_chinese(texts: Sequence[str]) -> bool:
    """Tell whether most of the texts hold a Chinese character."""
    return 2 * sum(bool(_HAN.search(text)) for text in texts) > len(texts)


def text_variant(texts: Sequence[str]) -> str:
    """Name the form of a text by what is seen in it, as in ``"raw text"`` or ``"tokenised, lower-cased text"``.

    It is tokenised if punctuation stands apart from the word before it in most texts that show either, and lower-cased
    if at most one text in twenty has an upper-case letter (published copies hold a few). Chinese text is always called
    raw. A model whose vocabulary tells cases apart gives other figures on another form.
    """
    if is_chinese(texts):
        return "raw text"
    apart = sum(bool(_APART.search(text)) for text in texts)
    glued = sum(bool(_GLUED.search(text)) for text in texts)
    lowered = 20 * sum(text != text.lower() for text in texts) <= len(texts)
    found = [name for name, seen in (("tokenised", apart > glued), ("lower-cased", lowered)) if seen]
    return f"{', '.join(found) or 'raw'} text"
