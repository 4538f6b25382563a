"""Seconds of the whole English STS suite, against sentence-transformers' own evaluator set by set, alternating.

python benchmarks/sts_suite.py --model MODEL --data FOLDER

FOLDER holds NAME.test.tsv or NAME.test.tsv.gz of each set. All ways load the model again each time; reading data is
not timed. samesense encodes each text of all sets once; so does the second way, a script with sentence-transformers'
encoder, so that what this saves is told from the rest.
"""

from __future__ import annotations

from pathlib import Path

from alternate import alternate, arguments, report

SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")


def main() -> None:
    args = arguments(__doc__, rounds=3)
    from scipy.stats import spearmanr
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    from samesense.data import read_pairs
    from samesense.encoder.names import resolve
    from samesense.evaluation import evaluate_pairs
    from samesense.inference.models.load import load

    if args.data is None:
        raise SystemExit("Name the folder of the benchmark with --data.")
    paths = {name: sorted(Path(args.data).glob(f"{name}.test.tsv*")) for name in SETS}
    sets = {name: read_pairs(files[0]) for name, files in paths.items() if files}
    texts = [text for data in sets.values() for text in (*data.sentences1, *data.sentences2)]
    results: dict[str, dict[str, float]] = {}

    def theirs() -> None:
        model = SentenceTransformer(resolve(args.model))
        figures = {}
        for name, data in sets.items():
            figures[name] = EmbeddingSimilarityEvaluator(data.sentences1, data.sentences2, data.labels)(model)
        results["theirs"] = {name: float(figure["spearman_cosine"]) for name, figure in figures.items()}

    def theirs_once() -> None:
        model = SentenceTransformer(resolve(args.model))
        distinct = list(dict.fromkeys(texts))
        row_of = {text: row for row, text in enumerate(distinct)}
        vectors = model.encode(distinct, normalize_embeddings=True)
        for data in sets.values():
            first, second = (vectors[[row_of[text] for text in side]] for side in (data.sentences1, data.sentences2))
            spearmanr((first * second).sum(axis=1), data.labels)

    def ours(intervals: bool) -> None:
        candidate = load(args.model, precision="float32", cache=True)
        candidate.fill(texts)
        results["ours"] = {}
        for name, data in sets.items():
            rows = evaluate_pairs(candidate, data, intervals=intervals)
            results["ours"][name] = next(row.value for row in rows if (row.metric, row.subset) == ("spearman", "all"))

    ways = {
        "EmbeddingSimilarityEvaluator": theirs,
        "SentenceTransformer.encode(), each text once": theirs_once,
        "samesense": lambda: ours(False),
        "samesense, with intervals": lambda: ours(True),
    }
    seconds = alternate(ways, args.rounds)
    apart = max(abs(results["ours"][name] - results["theirs"][name]) for name in sets)
    facts = {"model": args.model, "sets": list(sets), "pairs": len(texts) // 2, "largest_difference": apart}
    facts |= {"texts": len(texts), "distinct": len(set(texts)), "spearman": results["ours"]}
    report("sts_suite", seconds, len(texts), "sentences", "EmbeddingSimilarityEvaluator", **facts)
    print("Spearman x100:", {name: round(100 * value, 2) for name, value in results["ours"].items()})
    print(f"largest difference between the two ways: {100 * apart:.4f}")


if __name__ == "__main__":
    main()
