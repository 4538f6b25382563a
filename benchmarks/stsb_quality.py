"""CoSENT against the untouched start point and against MSE on STS-B, with equal settings: a resumable sweep.

    python benchmarks/stsb_quality.py START_FOLDER --data FOLDER_WITH_stsb.*.tsv.gz --layers 4 --work DIR

Each (loss, seed) leaves one line in ``benchmarks/results/stsb_quality.jsonl``; what is there is not run again. Runs go
seed by seed, so that an unfinished sweep still compares like with like. MSE is sentence-transformers' own
CosineSimilarityLoss on labels divided by 5, in the same trainer, with the same arithmetic, batches and selection.
Write the table with --table.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "stsb_quality.jsonl"
LOSSES = ("cosent", "mse")


def cut(start: Path, layers: int, folder: Path) -> Path:
    """Keep the first layers of a transformer, without a chat template: sentences are encoded as they stand."""
    from transformers import AutoModel, AutoTokenizer

    if not (folder / "config.json").exists():
        model = AutoModel.from_pretrained(start)
        stack = model.layers if hasattr(model, "layers") else model.encoder.layer
        del stack[layers:]
        model.config.num_hidden_layers = layers
        if getattr(model.config, "layer_types", None):
            model.config.layer_types = model.config.layer_types[:layers]
        tokenizer = AutoTokenizer.from_pretrained(start)
        tokenizer.chat_template = None
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


def mse(model):
    """Return sentence-transformers' CosineSimilarityLoss, formed in float32 from the same forward as CoSENT's."""
    import torch
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    from samesense.encoder.batching import embed_columns

    class Float32(CosineSimilarityLoss):
        def forward(self, sentence_features, labels):
            embeddings = [e.float() for e in embed_columns(self.model, list(sentence_features))]
            with torch.autocast(embeddings[0].device.type, enabled=False):
                return self.compute_loss_from_embeddings(embeddings, labels)

    return Float32(model)


def run(loss: str, seed: int, args: argparse.Namespace, start: Path) -> dict:
    from samesense.data import read_pairs
    from samesense.encoder.build import build
    from samesense.evaluation.pairs import judge_pairs
    from samesense.recipes.cosent import as_dataset, dev_judge
    from samesense.recipes.settings import CosentSettings
    from samesense.training.fit import fit
    from samesense.training.objective import CoSENT

    train, dev, test = (read_pairs(args.data / f"stsb.{part}.tsv.gz") for part in ("train", "dev", "test"))
    settings = CosentSettings(seed=seed, model=str(start), precision=args.precision, epochs=args.epochs)
    model = build(str(start), max_seq_length=settings.max_seq_length, device="cpu" if args.cpu else None)
    line = {
        "loss": loss,
        "seed": seed,
        "start": args.name,
        "layers": args.layers,
        "epochs": args.epochs,
        "data": train.sha256[:12],
    }
    line["commit"] = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    if loss != "start":
        scaled = train if loss == "cosent" else replace(train, labels=[label / 5 for label in train.labels])
        objective = CoSENT(model) if loss == "cosent" else mse(model)
        folder = args.work / f"{args.name}-{args.layers}-{loss}-{seed}"
        outcome = fit(model, as_dataset(scaled), objective, settings, folder, judge=dev_judge(dev))
        line |= {"dev": outcome.best_dev_spearman, "best_step": outcome.best_step, "steps": outcome.steps}
        line |= {"seconds": round(outcome.seconds), "precision": outcome.precision}
        history = [json.loads(entry) for entry in (folder / "history.jsonl").read_text().splitlines()]
        line["dev_curve"] = [[e["step"], round(e["eval_dev_spearman"], 4)] for e in history if "eval_dev_spearman" in e]
        shutil.rmtree(folder)
    spearman, pearson = judge_pairs(model, replace(test, subsets=None), name=loss, intervals=False)
    return line | {"test_spearman": spearman.value, "test_pearson": pearson.value}


def table(args: argparse.Namespace) -> str:
    from samesense.reports import seeds_table

    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    lines = [
        line
        for line in lines
        if (line["start"], line["layers"], line["epochs"]) == (args.name, args.layers, args.epochs)
    ]
    names = {"start": "untouched start point", "mse": "MSE on cosine", "cosent": "CoSENT"}
    return seeds_table(
        {title: [x["test_spearman"] for x in lines if x["loss"] == loss] for loss, title in names.items()}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("start", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--epochs", type=float, default=4.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--losses", nargs="+", default=list(LOSSES), choices=LOSSES)
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    args.name = args.start.name
    if args.table:
        print(table(args))
        return
    start = cut(args.start, args.layers, args.work / f"{args.name}-{args.layers}")
    RESULTS.parent.mkdir(exist_ok=True)
    for loss, seed in [("start", 0), *((loss, seed) for seed in args.seeds for loss in args.losses)]:
        done = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
        key = {"loss": loss, "seed": seed, "start": args.name, "layers": args.layers, "epochs": args.epochs}
        if any(all(line.get(k) == v for k, v in key.items()) for line in done):
            continue
        line = run(loss, seed, args, start)
        with RESULTS.open("a") as out:
            out.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
