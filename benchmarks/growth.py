"""How time and memory of commands grow with the rows of their input: 10 and 100 times as many.

    python benchmarks/growth.py --folder /tmp/growth
    python benchmarks/growth.py --folder /tmp/growth --most 100000 --cases "dedup"

Texts are synthetic: 12 words drawn from 10,000 by Zipf's law, one in ten a near copy of another text. They are embedded
by random word vectors, so that our code is measured and not a model. Each command runs in a process of its own, on one
thread: seconds of the processor and the largest resident memory, both with the start of the program. The exponent is
that between the two largest inputs: 1 is proportional to the rows.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from samesense.reports.tables import markdown

RESULTS = Path(__file__).parent / "results" / "growth.jsonl"
ROWS = (10_000, 100_000, 1_000_000)
WORDS, DIM, LENGTH = 10_000, 64, 12

CASES = {
    "doctor": "doctor {pairs}",
    "evaluate": "evaluate words:{vectors} --data {pairs}",
    "encode": "encode words:{vectors} {texts} --output {folder}/out.npy --overwrite",
    "dedup": "dedup {texts} --model words:{vectors} --threshold 0.98 --output {folder}/kept.txt --overwrite",
    "index build": "index build {folder}/index-{rows} {texts} --model words:{vectors} --overwrite",
    "index query": "index query {folder}/index-{rows} w7",
    "train, 2 steps": (
        "train {pairs} --model {model} --max-steps 2 --folds none --output {folder}/run-{rows} --overwrite"
    ),
}


def write_inputs(folder: Path, rows: int) -> None:
    """Write word vectors, texts, queries and labelled pairs, unless they are there."""
    random = np.random.default_rng(rows)
    vectors = folder / "words.vec"
    if not vectors.exists():
        values = np.random.default_rng(0).standard_normal((WORDS, DIM))
        lines = [f"w{number} {' '.join(f'{x:.4f}' for x in row)}" for number, row in enumerate(values)]
        vectors.write_text("\n".join([f"{WORDS} {DIM}", *lines, ""]), encoding="utf-8")
    if (folder / f"pairs-{rows}.tsv").exists():
        return
    drawn = np.minimum(random.zipf(1.2, (rows, LENGTH)) - 1, WORDS - 1)
    copies = random.random(rows) < 0.1
    drawn[copies] = drawn[random.integers(0, rows, copies.sum())]
    drawn[copies, 0] = random.integers(0, WORDS, copies.sum())
    texts = [f"{' '.join(f'w{word}' for word in row)} w{number % WORDS}" for number, row in enumerate(drawn.tolist())]
    (folder / f"texts-{rows}.txt").write_text("\n".join([*texts, ""]), encoding="utf-8")
    order = random.permutation(rows)
    labels = random.integers(0, 2, rows)
    pairs = [f"{text}\t{texts[other]}\t{label}" for text, other, label in zip(texts, order, labels, strict=True)]
    content = "\n".join(["sentence1\tsentence2\tlabel", *pairs, ""])
    (folder / f"pairs-{rows}.tsv").write_text(content, encoding="utf-8")


def measure(words: list[str]) -> dict[str, float]:
    """Run a command on one thread; return its seconds of the processor and its largest resident memory."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    process = subprocess.Popen(
        [sys.executable, "-m", "samesense", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | threads | {"HF_HUB_OFFLINE": "1"},
    )
    # Read to the end, as a full pipe would stop the process.
    errors = process.stderr.read().decode() if process.stderr else ""
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(words)}\n{errors[-2000:]}")
    return {"seconds": usage.ru_utime + usage.ru_stime, "megabytes": usage.ru_maxrss / 1024}


def table(lines: list[dict[str, Any]]) -> str:
    """Return seconds, memory and exponents of each command as Markdown."""
    cells = []
    for case in dict.fromkeys(line["case"] for line in lines):
        by_rows = {line["rows"]: line for line in lines if line["case"] == case}
        row = [case]
        for measure_name in ("seconds", "megabytes"):
            figures = [by_rows[rows][measure_name] for rows in sorted(by_rows)]
            row.append(" / ".join(f"{figure:.3g}" if figure < 100 else f"{figure:.0f}" for figure in figures))
            row.append(f"{math.log10(figures[-1] / figures[-2]):.2f}" if len(figures) > 1 else "")
        cells.append(row)
    header = ["command", "seconds", "exponent", "MB", "exponent of memory"]
    return markdown(header, cells, numeric=header[1:])


def read_lines() -> list[dict[str, Any]]:
    """Return the kept measurements."""
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()] if RESULTS.exists() else []


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--model", default="default", help="start of the training")
    parser.add_argument("--most", type=int, default=ROWS[-1], help="rows of the largest input")
    parser.add_argument("--inputs", type=int, default=0, help="only write the inputs of this many rows")
    parser.add_argument("--cases", nargs="*", default=[*CASES])
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    lines = read_lines()
    if args.inputs:
        write_inputs(args.folder, args.inputs)
        return
    for rows in [rows for rows in ROWS if rows <= args.most]:
        # In a process of its own: a child's largest memory counts that of the process which starts it.
        call = [sys.executable, __file__, "--folder", str(args.folder), "--inputs", str(rows)]
        subprocess.run(call, check=True)
        places = {name: args.folder / f"{name}-{rows}.{end}" for name, end in (("texts", "txt"), ("pairs", "tsv"))}
        places |= {"folder": args.folder, "vectors": args.folder / "words.vec"}
        for case in args.cases:
            if any((line["case"], line["rows"]) == (case, rows) for line in lines):
                continue
            words = [word.format(rows=rows, model=args.model, **places) for word in CASES[case].split()]
            lines.append({"case": case, "rows": rows, **measure(words)})
            print(json.dumps(lines[-1]), flush=True)
            lines.sort(key=lambda line: (list(CASES).index(line["case"]), line["rows"]))
            RESULTS.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    print(table(lines))


if __name__ == "__main__":
    main()
