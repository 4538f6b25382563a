"""Sentences a second of encoding, against ``SentenceTransformer.encode``, by its defaults and in bfloat16, alternating.

Each distinct text is encoded once by all ways, as samesense would not encode it twice.

python benchmarks/encoding.py --model default --data stsb.test.tsv.gz
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from alternate import alternate, arguments, report


def main() -> None:
    args = arguments(__doc__)
    from samesense.data import read_pairs, sample_path
    from samesense.encoder.assembly.build import build
    from samesense.encoder.encode import encode
    from samesense.metrics import spearman

    data = read_pairs(args.data or sample_path("train"))
    texts = list(dict.fromkeys([*data.sentences1, *data.sentences2]))
    row_of = {text: row for row, text in enumerate(texts)}
    first, second = ([row_of[text] for text in side] for side in (data.sentences1, data.sentences2))
    model = build(args.model)
    in_bfloat16 = copy.deepcopy(model).to(torch.bfloat16)
    embeddings: dict[str, np.ndarray] = {}

    def keep(name: str, vectors: np.ndarray) -> None:
        embeddings[name] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    ways = {
        "sentence-transformers encode()": lambda: keep("st", model.encode(texts)),
        "sentence-transformers encode(), bfloat16": lambda: keep("st bfloat16", in_bfloat16.encode(texts)),
        "samesense, float32": lambda: keep("float32", encode(model, texts, precision="float32")),
        "samesense, auto": lambda: keep("auto", encode(model, texts)),
    }
    seconds = alternate(ways, args.rounds)
    quality = {key: spearman((v[first] * v[second]).sum(axis=1), data.labels) for key, v in embeddings.items()}
    facts = {
        "model": args.model,
        "data": data.name,
        "texts": len(texts),
        "spearman": quality,
    }
    report("encoding", seconds, len(texts), "sentences", "sentence-transformers encode()", **facts)
    print("Spearman x100:", {key: round(100 * value, 2) for key, value in quality.items()})


if __name__ == "__main__":
    main()
