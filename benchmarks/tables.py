"""Write the result tables of the README from the files in ``benchmarks/results``.

python benchmarks/tables.py            # rewrite README.md
python benchmarks/tables.py --check    # exit 1 if that would change it
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import mean, stdev

from samesense.reports import seeds_table

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
START, END = "<!-- results: written by benchmarks/tables.py -->", "<!-- end of results -->"
NAMES = {"start": "untouched start point", "mse": "MSE on cosine (CosineSimilarityLoss)", "cosent": "CoSENT"}


def lines_of(name: str) -> list[dict]:
    path = HERE / "results" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def quality() -> str:
    lines = lines_of("stsb_quality")
    if not lines:
        return "Not run yet."
    first = lines[0]
    rows = {title: [x["spearman"] for x in lines if x["variant"] == loss] for loss, title in NAMES.items()}
    head = (
        f"STS-B test, Spearman x100 of the cosine. Start point: the first {first['layers']} layers of the "
        "raw language model SmolLM2-135M-Instruct with mean pooling, never tuned on STS-B or for sentences. "
        f"{first['settings']['epochs']:g} epochs, the paper's settings, best state by STS-B dev; mean ± sd over seeds "
        f"{', '.join(str(s) for s in sorted({x['seed'] for x in lines if x['seed'] is not None}))}. "
        "`samesense sweep benchmarks/stsb_quality.toml`"
    )
    return f"{head}\n\n{seeds_table({name: values for name, values in rows.items() if values})}"


def losses() -> str:
    """Every loss on six sets, from the scaled sweep of the CoSENT paper's tables."""
    path = HERE.parent / "reproduce" / "cosent" / "results" / "losses.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    sizes = {row["dataset"]: row["n"] for row in rows}
    seeds = sorted({row["seed"] for row in rows if row["seed"] is not None})
    steps = max(row["outcome"]["steps"] for row in rows if row["seed"] is not None)
    shown = [f"| loss | {' | '.join(f'{name} ({sizes[name]})' for name in sets)} |", "|---|" + "---:|" * len(sets)]
    for loss in dict.fromkeys(row["variant"] for row in rows):
        cells = []
        for name in sets:
            found = [100 * row["spearman"] for row in rows if (row["variant"], row["dataset"]) == (loss, name)]
            spread = f" ± {stdev(found):.2f}" if len(found) > 1 else ""
            cells.append(f"{mean(found):.2f}{spread}" if found else "-")
        shown.append(f"| {NAMES.get(loss, loss)} | {' | '.join(cells)} |")
    head = (
        f"Every loss on its own sets, {steps} steps from the same start point; Spearman x100 on so many "
        f"test pairs, mean ± sd over seeds {', '.join(map(str, seeds))}. Significance, convergence and where CoSENT "
        "falls behind: [reproduce/cosent](reproduce/cosent/README.md)."
    )
    return f"{head}\n\n" + "\n".join(shown)


def judged(name: str, task: str, metric: str, title: str) -> str:
    """A row a model and a column a data set, from the results that ``samesense compare`` keeps."""
    rows = [line for line in lines_of(name) if line["task"] == task and line["metric"] == metric]
    cells = {(x["model"], x["dataset"]): x["value"] for x in rows if x["subset"] == "all" or "-avg" in x["dataset"]}
    if not cells:
        return ""
    models, sets = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    shown = [f"| {title} | {' | '.join(each.removesuffix('.test') for each in sets)} |", "|---|" + "---:|" * len(sets)]
    for model in models:
        values = [cells.get((model, each)) for each in sets]
        shown.append(f"| {model} | {' | '.join('-' if v is None else f'{100 * v:.2f}' for v in values)} |")
    return "\n".join(shown)


def judge() -> str:
    """What four kinds of models are, by the suites."""
    parts = [
        judged("judge_en", "sts", "spearman", "STS, Spearman x100"),
        judged("judge_zh", "sts", "spearman", "Chinese STS, Spearman x100"),
        judged("judge_en", "ranking", "ndcg", "ranking, NDCG x100"),
        judged("judge_transfer", "transfer", "accuracy", "transfer, accuracy"),
    ]
    return "\n\n".join(part for part in parts if part) or "Not run yet."


def newest() -> dict[tuple[str, str], dict]:
    """The last figures of each benchmark and model."""
    return {(line["benchmark"], line.get("model", "")): line for line in lines_of("speed")}


def speed() -> str:
    parts = []
    for (name, model), line in newest().items():
        if name == "backends":
            continue
        unit = next(key for key in line["rows"][0] if key.endswith("_a_second"))
        title = f"{name}{f' of {model}' if model else ''}"
        shown = [
            f"| {title} | {unit.replace('_', ' ')} | ratio (median of {line['rounds']} rounds) |",
            "|---|---:|---:|",
        ]
        shown += [f"| {row['way']} | {row[unit]:.1f} | {row['ratio']:.2f} |" for row in line["rows"]]
        parts.append("\n".join(shown))
    return "\n\n".join(parts)


def backends() -> str:
    """Speed, size and drift of each backend of each model."""
    parts = []
    for (name, model), line in newest().items():
        if name != "backends":
            continue
        quality, sizes = line["spearman"], line["megabytes"]
        base = quality[line["rows"][0]["way"]]
        shown = [f"| backends of {model} | sentences a second | ratio | lowest to highest | MB | drift |"]
        shown.append("|---|---:|---:|---:|---:|---:|")
        for row in line["rows"]:
            way = row["way"]
            kind = "torch" if "torch" in way or "encode" in way else "onnx-int8" if "int8" in way else "onnx"
            cells = [
                way,
                f"{row['sentences_a_second']:.0f}",
                f"{row['ratio']:.2f}",
                f"{row['low']:.2f} to {row['high']:.2f}",
            ]
            shown.append(f"| {' | '.join(cells)} | {sizes[kind]:.0f} | {quality[way] - base:+.2f} |")
        parts.append("\n".join(shown))
    if not parts:
        return ""
    note = (
        "Every backend beside sentence-transformers' `encode()`, and plain onnxruntime and fastembed on the same "
        "graph. Drift is of Spearman x100 on STS-B test. `benchmarks/backends.py`"
    )
    return "\n\n".join([note, *parts])


def load() -> str:
    """The server under many clients, beside a plain one."""
    lines = lines_of("load")
    if not lines:
        return ""
    last = lines[-1]
    shown = ["| server | requests a second | texts a second | p50 ms | p99 ms |", "|---|---:|---:|---:|---:|"]
    for row in last["rows"]:
        figures = (row["requests_a_second"], row["texts_a_second"], row["p50_ms"], row["p99_ms"])
        shown.append(f"| {row['way']} | {' | '.join(f'{figure:.1f}' for figure in figures)} |")
    ours = last["rows"][0]
    wrong = sum(count for what, count in ours["outcomes"].items() if "WRONG" in what)
    note = (
        f"{last['clients']} clients for {last['minutes']:g} minutes a server, one to sixteen texts a request, some of "
        f"them nonsense, one restart in between; {last['model']}. Every vector was compared with offline encoding: "
        f"{wrong or 'none'} of ours lost or mixed up, lowest cosine {ours['lowest_cosine']:.6f}. `benchmarks/load.py`"
    )
    return "\n\n".join([note, "\n".join(shown)])


def tables() -> str:
    note = (
        "Two cores of an x86-64 server with AVX512-BF16 and without AMX, sentence-transformers 6.2 in the same "
        "process, in turns. `sh scripts/bench`"
    )
    models = (
        "Raw text; what was and was not run, intervals, significance and figures: `benchmarks/README.md`. "
        "smollm2-raw is the raw language model's first 8 layers with mean pooling, smollm2-whitened the same whitened "
        "to 256 dimensions on the training sentences of STS-B and SICK."
    )
    sections = {
        "Quality": f"{quality()}\n\n{losses()}",
        "Models": f"{models}\n\n{judge()}",
        "Speed": "\n\n".join(part for part in (note, backends(), load(), speed()) if part),
    }
    return "\n".join([START, *(f"### {title}\n\n{body}\n" for title, body in sections.items())]).rstrip() + f"\n{END}"


def main() -> None:
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(START)
    wanted = before + tables() + rest.split(END)[1]
    if "--check" in sys.argv:
        sys.exit(int(wanted != text))
    README.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
