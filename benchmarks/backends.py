"""Speed, size and drift of every backend of a model, against ``SentenceTransformer.encode`` with its defaults.

Beside them, the same ONNX graph run by onnxruntime with its defaults, and by fastembed where it is installed. All ways
run in one process, in turns.

python benchmarks/backends.py --model default --data stsb.test.tsv.gz
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from alternate import alternate, arguments, report
from onnx_peers import fastembed, plain_onnxruntime


def main() -> None:
    args = arguments(__doc__)
    import samesense
    from samesense.data import read_pairs, sample_path
    from samesense.encoder.assembly.build import build
    from samesense.inference.onnx.export import export
    from samesense.inference.onnx.format import GRAPHS
    from samesense.metrics import spearman

    data = read_pairs(args.data or sample_path("train"))
    texts = [*data.sentences1, *data.sentences2]
    embeddings: dict[str, np.ndarray] = {}

    def keep(name: str, vectors: np.ndarray) -> None:
        embeddings[name] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "exported"
        description = export(args.model, folder, int8=True, pairs=data)
        plain = build(args.model, device="cpu")
        encoders = {
            "torch, float32": samesense.load(str(folder), backend="torch", precision="float32", device="cpu"),
            "torch, bfloat16": samesense.load(str(folder), backend="torch", precision="bfloat16", device="cpu"),
            "onnx": samesense.load(str(folder), backend="onnx"),
            "onnx-int8": samesense.load(str(folder), backend="onnx-int8"),
            "torch, float32, deterministic": samesense.load(
                str(folder), backend="torch", precision="float32", device="cpu", deterministic=True
            ),
            "onnx, deterministic": samesense.load(str(folder), backend="onnx", deterministic=True),
            "onnx-int8, deterministic": samesense.load(str(folder), backend="onnx-int8", deterministic=True),
        }
        baseline = "sentence-transformers encode()"
        ways = {baseline: lambda: keep(baseline, plain.encode(texts))}
        peers = {}
        for way, graph in (("", "onnx"), (", int8", "onnx-int8")):
            peers[f"plain onnxruntime{way}"] = plain_onnxruntime(folder, GRAPHS[graph], plain.max_seq_length)
            peers[f"fastembed{way}"] = fastembed(folder, GRAPHS[graph], description.dim)
        ways |= {
            name: lambda name=name, peer=peer: keep(name, peer(texts))
            for name, peer in peers.items()
            if peer is not None
        }
        ways |= {
            name: lambda name=name, model=model: keep(name, model.encode(texts)) for name, model in encoders.items()
        }
        seconds = alternate(ways, args.rounds)
        weights = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    n = len(data)
    quality = {key: 100 * spearman((v[:n] * v[n:]).sum(axis=1), data.labels) for key, v in embeddings.items()}
    megabytes = {name: round(graph.bytes / 1e6, 1) for name, graph in description.graphs.items()}
    megabytes["torch"] = round(weights / 1e6, 1)
    facts = {
        "model": args.model,
        "data": data.name,
        "texts": len(texts),
        "distinct": len(set(texts)),
        "spearman": quality,
        "megabytes": megabytes,
    }
    report("backends", seconds, len(texts), "sentences", baseline, **facts)
    print("MB:", megabytes)
    print("Spearman x100, drift:", {key: f"{v:.2f} ({v - quality[baseline]:+.2f})" for key, v in quality.items()})


if __name__ == "__main__":
    main()
