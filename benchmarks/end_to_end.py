"""From command to verdict: ``samesense train`` against the same job written with sentence-transformers, in turns.

Whole processes: imports, loading, training, evaluations, and saving. The peer is the script of its docs (CoSENTLoss,
``EmbeddingSimilarityEvaluator``), with its fastest arguments on this processor: fused AdamW, alone or with
``bf16=True``, as a few steps of each decide. All have one learning rate, the warm-up, decay and batch size of our
recipe, and as many evaluations and checkpoints.

``samesense train`` scores fewer pairs than a dev set has: some select the checkpoint, others give the verdict. So there
are two comparisons, which are reported apart:

* equal terms: the peer scores what we score, the selecting pairs at the start and at each evaluation, those of the
  verdict before and after. Beside it stands the least that a script can do: the selecting pairs at each evaluation.
* what fewer dev pairs save: the same script with all pairs of the dev set at each evaluation, as its docs have it.

Threads of our commands soon sleep when they wait, so that two commands can share a machine; the peer's wait awake, as
torch's do by default, which is faster alone. So our command is timed both ways, the second with ``GOMP_SPINCOUNT``
20000.

The peer's evaluations in and after training are in bfloat16 where its training is; our verdict is in float32. Each
round has its own seed, and every model is evaluated on test pairs afterwards, untimed, to show that speed does not cost
quality.

    python benchmarks/end_to_end.py --data stsb.train.tsv.gz --dev stsb.dev.tsv.gz --test stsb.test.tsv.gz --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from alternate import arithmetic, fastest_flags, report

if TYPE_CHECKING:
    from samesense.data import PairData

NAME = "from command to verdict"

ALL_DEV = "sentence-transformers at its best, the whole dev set"

EQUAL = "sentence-transformers at its best, the pairs that we score"

LEAST = "sentence-transformers at its best, our selecting pairs alone"

OURS = "samesense train"

AWAKE = "samesense train, threads that wait awake"

PEER = """
import json, sys
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.losses import CoSENTLoss

job = json.loads(sys.argv[1])
with open(job["rows"], encoding="utf-8") as file:
    rows = json.load(file)

def evaluator(name):
    return EmbeddingSimilarityEvaluator(*rows[name].values(), name="dev")

model = SentenceTransformer(job["model"], device="cpu")
settings = SentenceTransformerTrainingArguments(
    job["output"], max_steps=job["steps"], per_device_train_batch_size=16, eval_strategy="steps", seed=job["seed"],
    learning_rate=job["learning_rate"], warmup_steps=0.1, weight_decay=0.01, eval_on_start=job["start"],
    eval_steps=job["evaluation"], save_steps=job["evaluation"], load_best_model_at_end=True, save_total_limit=2,
    metric_for_best_model="eval_dev_spearman_cosine", report_to="none", disable_tqdm=True, **job["faster"],
)
if job["before"]:
    print(evaluator("verdict")(model))
trainer = SentenceTransformerTrainer(
    model=model, args=settings, train_dataset=Dataset.from_dict(rows["train"]), loss=CoSENTLoss(model),
    evaluator=evaluator(job["selecting"]),
)
trainer.train()
model.save_pretrained(job["output"] + "/model")
if job["after"]:
    print(evaluator("verdict")(model))
"""


def scored_pairs(args: argparse.Namespace, settings: dict[str, object]) -> tuple[PairData, PairData, bool]:
    """Return the pairs that select, those of the verdict, and whether the trained model scores the latter once more."""
    from samesense.recipes.held_out.sets import ComparedSet
    from samesense.recipes.planning.plan import plan
    from samesense.reports.run_verdict import CROSS_FITTED

    sets = plan(args.data, dev=args.dev, settings=settings).sets
    if sets.selecting is None or not isinstance(sets.verdict, ComparedSet):
        raise SystemExit(f"{args.dev} gives no pairs for a verdict: {sets.reason}. Give a larger --dev.")
    return sets.selecting, sets.verdict.data, sets.verdict.role != CROSS_FITTED


def columns(pairs: PairData) -> dict[str, list]:
    """Return the pairs as the columns of a data set."""
    return {"sentence1": list(pairs.sentences1), "sentence2": list(pairs.sentences2), "score": list(pairs.labels)}


def timed(words: list[str], **variables: str) -> float:
    """Return the seconds of a process, with some environment variables set."""
    started = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **variables})
    if done.returncode:
        raise SystemExit(f"{' '.join(words[:3])} ended with {done.returncode}\n{done.stderr[-3000:]}")
    return time.perf_counter() - started


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
    parser.add_argument("--ways", nargs="*", default=[], help="only ways whose names contain one of these")
    args = parser.parse_args()
    from samesense.data import read_pairs
    from samesense.encoder.names import resolve
    from samesense.evaluation.sts import evaluate_pairs
    from samesense.inference.models.load import load

    evaluation = args.steps // 5
    settings = {"max_steps": args.steps, "eval_steps": evaluation, "learning_rate": args.learning_rate}
    selecting, verdict, scored_after = scored_pairs(args, {"model": args.model, **settings})
    train, dev, test = (read_pairs(path) for path in (args.data, args.dev, args.test))
    rows = {"train": train, "dev": dev, "selecting": selecting, "verdict": verdict}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        contents = {name: columns(pairs) for name, pairs in rows.items()}
        (folder / "rows.json").write_text(json.dumps(contents), encoding="utf-8")
        (folder / "peer.py").write_text(PEER, encoding="utf-8")

        def peer(output: Path, seed: int, *, pairs: str = "dev", verdict: bool = False, **faster: object) -> float:
            job = {
                "model": resolve(args.model),
                "rows": str(folder / "rows.json"),
                "steps": args.steps,
                "seed": seed,
                "learning_rate": args.learning_rate,
                "evaluation": evaluation,
                "selecting": pairs,
                "start": verdict,
                "before": verdict,
                "after": verdict and scored_after,
                "faster": faster,
                "output": str(output),
            }
            return timed([sys.executable, str(folder / "peer.py"), json.dumps(job)])

        def ours(output: Path, seed: int, **variables: str) -> float:
            words = ["train", args.data, "--dev", args.dev, "--model", args.model, "--output", str(output)]
            words += ["--seed", str(seed)]
            for name, value in settings.items():
                words += [f"--{name.replace('_', '-')}", str(value)]
            return timed([sys.executable, "-m", "samesense", *words], **variables)

        best, flags = fastest_flags()
        ways = {
            ALL_DEV: partial(peer, **flags),
            EQUAL: partial(peer, pairs="selecting", verdict=True, **flags),
            LEAST: partial(peer, pairs="selecting", **flags),
            OURS: ours,
            AWAKE: partial(ours, GOMP_SPINCOUNT="20000"),
        }
        if args.ways:
            ways = {name: way for name, way in ways.items() if any(word in name for word in args.ways)}
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        scores: dict[str, list[float]] = {name: [] for name in ways}
        for attempt in range(args.rounds):
            for number, (name, way) in enumerate(ways.items()):
                output = folder / f"{number}-{attempt}"
                seconds[name].append(way(output, attempt + 1))
                results = evaluate_pairs(load(output / "model", precision="float32"), test)
                scores[name].append(next(100 * result.value for result in results if result.metric == "spearman"))
                print(f"{name}: {seconds[name][-1]:.0f} s, Spearman on test {scores[name][-1]:.2f}", flush=True)
    if args.ways:
        return  # the table takes all ways
    facts = {
        "model": args.model,
        "data": train.name,
        "steps": args.steps,
        "evaluations": 5,
        "pairs": {name: len(pairs) for name, pairs in rows.items()},
        "scores": scores,
        "learning_rate": args.learning_rate,
        "peer_settings": best,
    }
    report(
        NAME + arithmetic("bfloat16" if "bf16" in flags else "float32"), seconds, args.steps, "steps", ALL_DEV, **facts
    )


if __name__ == "__main__":
    main()
