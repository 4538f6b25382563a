"""From command to verdict: ``samesense train`` against the same job written with sentence-transformers, in turns.

Whole processes: imports, loading, training, the same evaluations of the same dev set, and saving. The peer is the
script of its docs (CoSENTLoss, ``EmbeddingSimilarityEvaluator``), with its default arguments, and with ``bf16=True``
and fused AdamW (the latter alone where the processor does not compute in bfloat16). All have one learning rate, and the
warm-up, decay and batch size of our recipe. Each round has its own seed, and every model is evaluated on test pairs
afterwards, untimed, to show that speed does not cost quality.

    python benchmarks/end_to_end.py --data stsb.train.tsv.gz --dev stsb.dev.tsv.gz --test stsb.test.tsv.gz --rounds 3
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from alternate import fastest_flags, report

PEER = """
import json, sys
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.losses import CoSENTLoss

told = json.loads(sys.argv[1])
with open(told["rows"], encoding="utf-8") as file:
    train, dev = json.load(file)
model = SentenceTransformer(told["model"], device="cpu")
settings = SentenceTransformerTrainingArguments(
    told["output"], max_steps=told["steps"], per_device_train_batch_size=16, eval_strategy="steps", seed=told["seed"],
    learning_rate=told["learning_rate"], warmup_steps=0.1, weight_decay=0.01,
    eval_steps=told["evaluation"], save_steps=told["evaluation"], load_best_model_at_end=True,
    metric_for_best_model="eval_dev_spearman_cosine", report_to="none", disable_tqdm=True, **told["faster"],
)
trainer = SentenceTransformerTrainer(
    model=model, args=settings, train_dataset=Dataset.from_dict(train), loss=CoSENTLoss(model),
    evaluator=EmbeddingSimilarityEvaluator(dev["sentence1"], dev["sentence2"], dev["score"], name="dev"),
)
trainer.train()
model.save_pretrained(told["output"] + "/model")
"""


def main() -> None:
    """Time all ways, and report them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--learning-rate", type=float, default=1e-4, help="what `train` takes in so few steps")
    args = parser.parse_args()
    from samesense.data import read_pairs
    from samesense.encoder.names import resolve
    from samesense.evaluation.sts import evaluate_pairs
    from samesense.inference.models.load import load

    evaluation = args.steps // 5
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        splits = [read_pairs(path) for path in (args.data, args.dev)]
        test = read_pairs(args.test)
        rows = [{"sentence1": p.sentences1, "sentence2": p.sentences2, "score": p.labels} for p in splits]
        (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
        (folder / "peer.py").write_text(PEER, encoding="utf-8")

        def timed(words: list[str]) -> float:
            started = time.perf_counter()
            subprocess.run(words, check=True, capture_output=True)
            return time.perf_counter() - started

        def peer(output: Path, seed: int, **faster: object) -> float:
            job = {
                "model": resolve(args.model),
                "rows": str(folder / "rows.json"),
                "steps": args.steps,
                "seed": seed,
                "learning_rate": args.learning_rate,
                "evaluation": evaluation,
                "faster": faster,
                "output": str(output),
            }
            return timed([sys.executable, str(folder / "peer.py"), json.dumps(job)])

        def ours(output: Path, seed: int) -> float:
            words = ["train", args.data, "--dev", args.dev, "--model", args.model, "--output", str(output)]
            words += ["--max-steps", str(args.steps), "--eval-steps", str(evaluation), "--seed", str(seed)]
            words += ["--learning-rate", str(args.learning_rate)]
            return timed([sys.executable, "-m", "samesense", *words])

        best, flags = fastest_flags()
        ways = {
            "sentence-transformers": peer,
            best: partial(peer, **flags),
            "samesense train": ours,
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        scores: dict[str, list[float]] = {name: [] for name in ways}
        for attempt in range(args.rounds):
            for number, (name, way) in enumerate(ways.items()):
                output = folder / f"{number}-{attempt}"
                seconds[name].append(way(output, attempt + 1))
                results = evaluate_pairs(load(output / "model", precision="float32"), test)
                scores[name].append(next(100 * result.value for result in results if result.metric == "spearman"))
                print(f"{name}: {seconds[name][-1]:.0f} s, Spearman on test {scores[name][-1]:.2f}", flush=True)
    facts = {
        "model": args.model,
        "data": splits[0].name,
        "steps": args.steps,
        "evaluations": 5,
        "scores": scores,
        "learning_rate": args.learning_rate,
    }
    name = "end to end" if "bf16" in flags else "end to end, no bfloat16"
    report(name, seconds, args.steps, "steps", "sentence-transformers", **facts)


if __name__ == "__main__":
    main()
