"""Sentences a second of encoding, against ``SentenceTransformer.encode`` with its defaults, alternating.

python benchmarks/encoding.py --model default --data stsb.test.tsv.gz
"""

from __future__ import annotations

import numpy as np
from alternate import alternate, arguments, report


def main() -> None:
    args = arguments(__doc__)
    from samesense.data import read_pairs, sample_path
    from samesense.encoder.assembly.build import build
    from samesense.encoder.encode import encode
    from samesense.metrics import spearman

    data = read_pairs(args.data or sample_path("train"))
    texts = [*data.sentences1, *data.sentences2]
    model = build(args.model)
    embeddings: dict[str, np.ndarray] = {}

    def keep(name: str, vectors: np.ndarray) -> None:
        embeddings[name] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    ways = {
        "sentence-transformers encode()": lambda: keep("st", model.encode(texts)),
        "samesense, float32": lambda: keep("float32", encode(model, texts, precision="float32")),
        "samesense, auto": lambda: keep("auto", encode(model, texts)),
    }
    seconds = alternate(ways, args.rounds)
    n = len(data)
    quality = {key: spearman((v[:n] * v[n:]).sum(axis=1), data.labels) for key, v in embeddings.items()}
    facts = {
        "model": args.model,
        "data": data.name,
        "texts": len(texts),
        "distinct": len(set(texts)),
        "spearman": quality,
    }
    report("encoding", seconds, len(texts), "sentences", "sentence-transformers encode()", **facts)
    print("Spearman x100:", {key: round(100 * value, 2) for key, value in quality.items()})


if __name__ == "__main__":
    main()
