"""Sentences a second with and without length batching (Table 1 of Sun et al. 2022), against sentence-transformers.

python benchmarks/encode_speed.py --model default --data stsb.test.tsv.gz

Without length batching, sentences go through the model in their order, batch by batch; sorting within a batch changes
nothing. Each distinct sentence occurs once, so that no implementation gains by caching.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from alternate import alternate, arguments, report

BATCH = 32
"""Sentences per batch: sentence-transformers' default."""


def main() -> None:
    args = arguments(__doc__, rounds=3)
    from samesense.data import read_pairs, sample_path
    from samesense.encoder.assembly.build import build
    from samesense.encoder.encode import encode

    data = read_pairs(args.data or sample_path("train"))
    texts = list(dict.fromkeys([*data.sentences1, *data.sentences2]))
    model = build(args.model)
    embeddings: dict[str, np.ndarray] = {}

    def theirs(batch: list[str]) -> Any:
        return model.encode(batch, batch_size=BATCH)

    def ours(batch: list[str]) -> Any:
        return encode(model, batch, precision="float32")

    def way(name: str, run: Callable[[list[str]], Any], at_once: int) -> Callable[[], None]:
        def do() -> None:
            embeddings[name] = np.vstack(
                [run(texts[start : start + at_once]) for start in range(0, len(texts), at_once)]
            )

        return do

    ways = {
        name: way(name, run, size)
        for name, run, size in (
            ("sentence-transformers", theirs, BATCH),
            ("sentence-transformers, length batching", theirs, len(texts)),
            ("samesense", ours, BATCH),
            ("samesense, length batching", ours, len(texts)),
        )
    }
    seconds = alternate(ways, args.rounds)
    first = embeddings["sentence-transformers"]
    differs = {name: float(np.abs(vectors - first).max()) for name, vectors in embeddings.items()}
    words = [len(text.split()) for text in texts]
    facts = {"model": args.model, "data": data.name, "texts": len(texts), "words": float(np.median(words))}
    report(
        "encode_speed", seconds, len(texts), "sentences", "sentence-transformers", **facts, largest_difference=differs
    )


if __name__ == "__main__":
    main()
