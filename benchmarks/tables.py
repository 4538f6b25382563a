"""Write the result tables of the README and of ``docs/results.md`` from the files in ``benchmarks/results``.

python benchmarks/tables.py            # rewrite them
python benchmarks/tables.py --check    # exit 1 if that would change one
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from textwrap import fill

import growth
from backends import speed as engine_speed
from backends import tables as engine_tables
from without_a_flag import Line, above_documented, read_record
from without_a_flag import table as flagless_table

from samesense.reports.tables import markdown

HERE = Path(__file__).parent
ROOT = HERE.parent
START = "<!-- results: written by benchmarks/tables.py -->"
END = "<!-- end of results -->"
NAMES = {
    "start": "untouched start point",
    "mse": "MSE on cosine (CosineSimilarityLoss)",
    "cosent": "CoSENT",
    "simcse": "SimCSE",
    "supmpn": "SupMPN",
    "info-nce": "MNRL with one hard negative (MultipleNegativesRankingLoss)",
    "supcon": "SupCon",
    "batch-hard": "BatchHard",
}


FLAGLESS = {
    "final": "Final tasks",
    "fresh": "Fresh tasks",
    "development": "Development tasks",
    "triplets": "Triplets",
    "curves": "By the number of labels",
    "race": "What a race adds",
}
"""Headings by the part of the tasks."""

COLUMNS = {"sts-avg-6 of 7": "mean of 6 (STS16 not run)"}


def lines_of(name: str) -> list[dict]:
    path = HERE / "results" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def seeds_table(rows: dict[str, list[float]]) -> str:
    """Return mean and standard deviation over seeds (of a sample: absent for one seed), multiplied by 100."""
    cells = []
    for name, values in rows.items():
        figure = f"{100 * mean(values):.2f}" + (f" ± {100 * stdev(values):.2f}" if len(values) > 1 else "")
        cells.append([name, figure, str(len(values))])
    header = ["name", "mean ± sd (x100)", "seeds"]
    return markdown(header, cells, numeric=header[1:])


def quality() -> str:
    lines = lines_of("stsb_quality")
    if not lines:
        return "Not run yet."
    first = lines[0]
    rows = {title: [x["spearman"] for x in lines if x["variant"] == loss] for loss, title in NAMES.items()}
    head = (
        "**CoSENT and MSE on STS-B.** Spearman x100 of the cosine on STS-B test, mean ± sd over seeds "
        f"{', '.join(str(s) for s in sorted({x['seed'] for x in lines if x['seed'] is not None}))}. "
        f"Training starts from the first {first['layers']} layers of the raw language model SmolLM2-135M-Instruct with "
        "mean pooling, never tuned on STS-B or for sentences. "
        f"{first['settings']['epochs']:g} epochs, the paper's settings, best checkpoint by STS-B dev. "
        "[Command](benchmarks/README.md)."
    )
    return f"{head}\n\n{seeds_table({name: values for name, values in rows.items() if values})}"


def swept(paper: str, sweep: str, first: str, text: str) -> str:
    """Return the table of a scaled sweep of a paper's experiment with a line of text, nothing if it was not run.

    Args:
        paper: folder in ``reproduce``.
        sweep: the file of its results.
        first: header of the column of variants.
        text: caption with placeholders for steps and seeds.
    """
    path = HERE.parent / "reproduce" / paper / "results" / f"{sweep}.jsonl"
    if not path.exists():
        return ""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    sizes = {row["test"]: row["n"] for row in rows}
    seeds = sorted({row["seed"] for row in rows if row["seed"] is not None})
    steps = max(row["outcome"]["steps"] for row in rows if row["seed"] is not None)
    together = len({row["dataset"] for row in rows}) == 1 and len(sizes) > 1  # only then a mean is meaningful
    columns = {test: f"{test.rpartition('/')[2]} ({pairs})" for test, pairs in sizes.items()}
    columns |= {"mean": "mean"} if together else {}
    lines = [f"| {first} | {' | '.join(columns.values())} |", "|---|" + "---:|" * len(columns)]
    for variant in dict.fromkeys(row["variant"] for row in rows):
        by_seed: dict[int | None, dict[str, float]] = {}
        for row in rows:
            if row["variant"] == variant:
                by_seed.setdefault(row["seed"], {})[row["test"]] = 100 * row["spearman"]
        for values in by_seed.values():
            values["mean"] = mean(values.values())
        cells = [_spread([values[name] for values in by_seed.values() if name in values]) for name in columns]
        lines.append(f"| {NAMES.get(variant, variant)} | {' | '.join(cells)} |")
    head = text.format(steps=steps, seeds=", ".join(map(str, seeds)))
    return f"{head}\n\n" + "\n".join(lines)


def _spread(values: list[float]) -> str:
    if not values:
        return "-"
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


SWEPT = (
    (
        "cosent",
        "losses",
        "loss",
        "**Losses for labelled pairs.** Each loss is trained on each set that it takes, {steps} steps from the same "
        "start point. Spearman x100 on the set's test pairs (their number in brackets), mean ± sd over seeds {seeds}. "
        "Significance, convergence and where CoSENT falls behind: [reproduce/cosent](reproduce/cosent/README.md).",
    ),
    (
        "rankcse",
        "sts",
        "ranking loss, teachers",
        "**Unlabelled sentences and teachers.** {steps} steps on sentences of Wikipedia from the first 2 layers of the "
        "same language model: with no teacher (SimCSE), one, or both of bge-small-en-v1.5 and multilingual-e5-small, "
        "which were tuned on labelled pairs elsewhere. Spearman x100, mean ± sd over seeds {seeds}. Significance and "
        "ablations: [reproduce/rankcse](reproduce/rankcse/README.md).",
    ),
    (
        "supmpn",
        "losses",
        "loss",
        "**Several positives and negatives.** {steps} steps on premises of LingNLI, each of about as many sentences "
        "for every loss, from the first 3 layers of a passage re-ranker. Spearman x100, mean ± sd over seeds {seeds}. "
        "Significance, numbers of positives and negatives: [reproduce/supmpn](reproduce/supmpn/README.md).",
    ),
)
"""Paper, sweep, header and text of each table of a scaled sweep."""


def judged(name: str, task: str, metric: str, title: str) -> str:
    """Return a table with a row per model and a column per data set, from the results of ``samesense compare``."""
    rows = [line for line in lines_of(name) if line["task"] == task and line["metric"] == metric]
    cells = {(x["model"], x["dataset"]): x["value"] for x in rows if x["subset"] == "all" or "-avg" in x["dataset"]}
    if not cells:
        return ""
    models, sets = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    columns = " | ".join(COLUMNS.get(each, each.removesuffix(".test")) for each in sets)
    lines = [f"| {title} | {columns} |", "|---|" + "---:|" * len(sets)]
    for model in models:
        values = [cells.get((model, each)) for each in sets]
        lines.append(f"| {model} | {' | '.join('-' if v is None else f'{100 * v:.2f}' for v in values)} |")
    return "\n".join(lines)


def judge() -> str:
    """Return the tables that compare four kinds of models on the suites."""
    tables = [
        judged("judge_en", "sts", "spearman", "STS, Spearman x100"),
        judged("judge_zh", "sts", "spearman", "Chinese STS, Spearman x100"),
        judged("judge_en", "ranking", "ndcg", "ranking, NDCG x100"),
        judged("judge_transfer", "transfer", "accuracy", "transfer, accuracy"),
    ]
    return "\n\n".join(table for table in tables if table) or "Not run yet."


def newest() -> dict[tuple[str, str], dict]:
    """Return the last figures of each benchmark and model."""
    return {(line["benchmark"], line.get("model", "")): line for line in lines_of("speed")}


def speed() -> str:
    tables = []
    for (name, model), line in newest().items():
        if name == "encoding" or name.startswith(VERDICT):  # have tables of their own
            continue
        unit = next(key for key in line["rows"][0] if key.endswith("_a_second"))
        title = f"{name}{f' of {model}' if model else ''}"
        table = [
            f"| {title} | {unit.replace('_', ' ')} | ratio (median of {line['rounds']} rounds) |",
            "|---|---:|---:|",
        ]
        table += [f"| {row['way']} | {row[unit]:.1f} | {row['ratio']:.2f} |" for row in line["rows"]]
        tables.append("\n".join(table))
    return "\n\n".join(tables)


def engines() -> str:
    """Return tables of texts a second of every way of encoding, one for each processor and model."""
    lines = lines_of("backends")
    if not lines:
        return ""
    note = (
        "Texts a second of every way of encoding, each in a process of its own, at its best batch size, in turns: "
        "median, lowest and highest. Spearman x100 is on the first fifth of STS-B test. Figures of two processors "
        "cannot be compared. sentence-transformers' OpenVINO takes bfloat16 by itself where the processor has it. "
        "model2vec is of another quality, and llama.cpp is its server in the process, run on one processor. On the AMD "
        "processor, and in the columns of 250 tokens with two threads, our graphs of onnxruntime are of before two "
        "slow fusions were left out. The processor with AMX was shared, and its figures are coarse: three rounds "
        "differ by up to a half. There, 13 tokens together on two threads (2,048 texts) were measured again after "
        "OpenVINO ran batches side by side, for the fastest ways alone. "
        "`benchmarks/backends.py --size 0.2`"
    )
    return "\n\n".join([note, engine_tables(lines)])


def training() -> str:
    """Return a table of our training speed relative to the peer with its defaults and with its fastest settings."""
    table = ["| training | times its defaults | times its fastest | rounds |", "|---|---:|---:|---:|"]
    for (name, model), line in newest().items():
        if model == "default" and name.startswith("training"):
            defaults, fastest = training_ratios(line)
            table.append(f"| {name} | {defaults:.1f} | {fastest:.1f} | {line['rounds']} |")
    note = (
        "Speed of training all-MiniLM-L6-v2, as a multiple of sentence-transformers' with its defaults and with its "
        "fastest settings (fused AdamW, with or without `bf16`): median ratio over the rounds. `bfloat16 no faster` "
        "stands for a processor with AVX512-BF16 on which both compute faster in float32; the one with AMX was shared."
    )
    return "\n\n".join([note, "\n".join(table), *end_to_end()])


def training_ratios(line: dict) -> tuple[float, float]:
    """Return our speed of training as a multiple of the peer's with its defaults and with its fastest settings."""
    fastest = max(row["ratio"] for row in line["rows"] if row["way"].startswith("sentence-transformers"))
    ours = line["rows"][-1]["ratio"]
    return ours, ours / fastest


VERDICT = "from command to verdict"
"""Start of the name of what ``end_to_end.py`` measures."""


def command_lines() -> list[dict]:
    """Return the newest lines of ``end_to_end.py``, one for each kind of processor."""
    return [line for (name, model), line in newest().items() if model == "default" and name.startswith(VERDICT)]


def end_to_end() -> list[str]:
    """Return text and table of ``samesense train`` beside a script: on equal terms, and with the whole dev set."""
    blocks = []
    for line in command_lines():
        table = ["| script | seconds | our command is ... times as fast | dev pairs scored |", "|---|---:|---:|---|"]
        pairs = line["pairs"]
        least = f"{line['evaluations']} x {pairs['selecting']:,}"
        equal = f"{line['evaluations'] + 1} x {pairs['selecting']:,}, 2 x {pairs['verdict']:,}"
        whole = f"{line['evaluations']} x {pairs['dev']:,}"
        *peers, ours, awake = line["rows"]
        for row, scored in zip(peers, (whole, equal, least), strict=True):
            times = ours["ratio"] / row["ratio"]
            table.append(f"| {row['way']} | {line['steps'] / row['steps_a_second']:.0f} | {times:.1f} | {scored} |")
        for row in (ours, awake):
            times = ours["ratio"] / row["ratio"]
            table.append(f"| {row['way']} | {line['steps'] / row['steps_a_second']:.0f} | {times:.1f} | {equal} |")
        rounds = line["rounds"]
        arithmetic = line["benchmark"].removeprefix(VERDICT)
        note = (
            f"From command to verdict{arithmetic}: {line['steps']} steps of 16 pairs, {line['evaluations']} "
            f"evaluations and checkpoints, whole processes, median of {rounds} rounds; the peer is "
            f"{line['peer_settings']}. The second script scores the pairs that our command scores: the equal terms. "
            "The third does the least, without a verdict. The first scores the whole dev set, as the docs of "
            "sentence-transformers do: between the first and the second lies what fewer dev pairs save. "
            "Threads of our command sleep when they wait, those of the scripts "
            "stay awake; the last row has ours do so too (`GOMP_SPINCOUNT` 20000). `benchmarks/end_to_end.py`"
        )
        blocks += [note, "\n".join(table)]
    return blocks


def load() -> str:
    """Return the table of the server under many clients, beside a plain server."""
    lines = lines_of("load")
    if not lines:
        return ""
    last = lines[-1]
    table = ["| server | requests a second | texts a second | p50 ms | p99 ms |", "|---|---:|---:|---:|---:|"]
    for row in last["rows"]:
        figures = (row["requests_a_second"], row["texts_a_second"], row["p50_ms"], row["p99_ms"])
        table.append(f"| {row['way']} | {' | '.join(f'{figure:.1f}' for figure in figures)} |")
    ours = last["rows"][0]
    wrong = sum(count for what, count in ours["outcomes"].items() if "WRONG" in what)
    note = (
        f"**The server under load.** {last['clients']} clients for {last['minutes']:g} minutes a server, with one to "
        f"sixteen texts a request, some of them nonsense, and one restart in between; {last['model']}. Every vector "
        f"was compared with offline encoding: {wrong or 'no'} samesense answers were wrong or missing, lowest cosine "
        f"{ours['lowest_cosine']:.6f}. `benchmarks/load.py`"
    )
    return "\n\n".join([note, "\n".join(table)])


SPEED = "all-MiniLM-L6-v2 on two cores; encoding with AVX512-BF16. Yours: `sh scripts/bench`."

GROWTH = (
    "Seconds of the processor and largest resident memory of commands on 10,000 / 100,000 / 1,000,000 synthetic rows, "
    "each on one thread, with the start of the program (`benchmarks/growth.py`). The exponent is that between the "
    "two largest: 1 is proportional to the rows. Other work shared the machine, which lengthens seconds of the "
    "processor a little. Texts are embedded by word vectors, so that the code is measured and not a model; the "
    "training starts from the default model. The resamples of `evaluate` no longer fit into the cache with a "
    "million rows. From 200,000 texts on `index build` makes a [graph](search.md#exact-or-approximate) too, so its "
    "exponent is not that of one algorithm."
)

MODELS = (
    "Models as they are, by the [suites](evaluation.md#compare-models), on raw text. `minilm-l6`, `bge-small`, "
    "`paraphrase-l3` and `me5-small` are in the table of [base models](models.md#which-base-model), `wordllama` is the "
    "static vectors of that package, `glove-sif` GloVe averaged with SIF weights. `smollm2-raw` is the raw language "
    "model's first 8 layers with mean pooling, `smollm2-whitened` the same whitened to 256 dimensions on the training "
    "sentences of STS-B and SICK. Papers average seven STS sets. What was "
    "and was not run, intervals, significance and figures: [benchmarks](../benchmarks/README.md)."
)


CLAIMS = (
    "The papers' claims were tried at a small size: five seeds, learning rates chosen on dev. Differences are in "
    "points (95 % intervals). [All claims, with the least difference that could be shown](reproduce/README.md)."
)


def claims() -> str:
    """Return the number of claims by outcome, and a table of those that ``claims.toml`` has in plain words."""
    page = (ROOT / "reproduce/README.md").read_text(encoding="utf-8")
    counts = next(line for line in page.splitlines() if line.startswith("Of ") and "claims with" in line)
    cells_by_text = {}
    for line in page.splitlines():
        if line.startswith("| ["):
            text, *cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            cells_by_text[text.strip("| ").removeprefix("[").partition("](")[0]] = cells
    rows = []
    for claim in tomllib.loads((ROOT / "reproduce/claims.toml").read_text(encoding="utf-8"))["claim"]:
        if "plain" in claim:
            paper, here, *_, outcome = cells_by_text[claim["text"]]
            rows.append([f"[{claim['plain']}](reproduce/{claim['page']})", paper.partition(" (")[0], here, outcome])
    return f"{counts}\n\n{markdown(['claim', 'the paper', 'here', ''], rows, numeric=('here',), marked=True)}"


PEERS = {
    "sentence-transformers": "sentence-transformers' OpenVINO or ONNX",
    "onnxruntime": "plain onnxruntime on our graph",
    "openvino": "plain OpenVINO on our graph",
    "ctranslate2": "CTranslate2",
    "fastembed": "fastembed on our graph",
    "llama.cpp": "llama.cpp",
}

OTHER_QUALITY = ("model2vec",)
"""Ways whose vectors are not those of the model."""


def encoding_lines() -> list[list[dict]]:
    """Return, for each processor, how fast every way of the model's own quality encodes short texts on two threads."""
    by_processor: dict[str, list[dict]] = {}
    for line in lines_of("backends"):
        measured = (line["model"], line["threads"], line["length"], line["batch"])
        if measured == ("minilm-l6", 2, "13", "many") and line["system"] not in OTHER_QUALITY:
            by_processor.setdefault(json.dumps(line["processor"]), []).append(line)
    return list(by_processor.values())


def fastest() -> str:
    """Return our speed beside sentence-transformers and beside the fastest peer of each row."""
    table = ["| | times sentence-transformers | times the fastest peer | |", "|---|---:|---:|---|"]
    processors = encoding_lines()
    for precision in ("float32", "bfloat16", "int8"):
        ratios, peers = zip(*(encoding_ratios(lines, precision) for lines in processors), strict=True)
        label = f"encoding, {precision}, on {len(processors)} processors"
        names = " or ".join(dict.fromkeys(PEERS[peer.split()[0]] for peer in peers))
        table.append(f"| {' | '.join([label, *map(range_of, zip(*ratios, strict=True)), names])} |")
    trainings = [
        training_ratios(line)
        for (name, model), line in newest().items()
        if model == "default" and name.startswith("training, 16")
    ]
    label = f"training, 16 pairs a step, on {len(trainings)} processors"
    ranges = map(range_of, zip(*trainings, strict=True))
    table.append(f"| {label} | {' | '.join(ranges)} | its fastest settings |")
    for line in command_lines():
        whole_dev, equal, *_, ours, _ = (row["ratio"] for row in line["rows"])
        cells = [f"{ours / whole_dev:.1f}", f"{ours / equal:.1f}"]
        table.append(f"| from command to verdict | {' | '.join(cells)} | a script that scores the same pairs |")
    return "\n".join(table)


def encoding_ratios(lines: list[dict], precision: str) -> tuple[tuple[float, float], str]:
    """Return our speed by sentence-transformers' and by the fastest peer's of a precision, and that peer's name."""
    speeds = {line["system"]: engine_speed(line) for line in lines}
    ways = [line["system"] for line in lines if precision_of(line) == precision]
    ours = max(speeds[way] for way in ways if way.startswith("samesense"))
    peer = max((way for way in ways if not way.startswith("samesense")), key=lambda way: speeds[way])
    return (ours / speeds["sentence-transformers torch"], ours / speeds[peer]), peer


def range_of(ratios: Sequence[float]) -> str:
    """Return the lowest and the highest of some ratios as text."""
    low, high = f"{min(ratios):.1f}", f"{max(ratios):.1f}"
    return low if low == high else f"{low} to {high}"


def precision_of(line: dict) -> str:
    """Return the precision in which a way of encoding computes."""
    system = line["system"]
    # OpenVINO takes bfloat16 by itself on a processor that has it.
    if system == "sentence-transformers openvino" and "avx512_bf16" in line["processor"]["instructions"]:
        return "bfloat16"
    return next((precision for precision in ("bfloat16", "int8") if system.endswith(precision)), "float32")


def short() -> str:
    """Return the section of the README: the command without a flag, the claims, and our speed."""
    sections = {"The papers' claims": f"{CLAIMS}\n\n{claims()}", "Speed": f"{SPEED}\n\n{fastest()}"}
    final = [line for line in read_record() if line.part == "final"]
    if final:
        sections = {"Without a flag": without_a_flag_sentence(final)} | sections
    return page(sections)


def without_a_flag_sentence(lines: list[Line]) -> str:
    """Return how ``samesense train`` without a flag stands beside the best recipe of each task, in a sentence."""
    ahead = sum(line.low > 0 for line in lines)
    behind = sum(line.high < 0 for line in lines)
    average = mean(line.difference for line in lines)
    # The recipes for NLI do not learn the order of its labels, which its test asks for.
    others = [line for line in lines if "NLI" not in line.task]
    of_others = mean(line.difference for line in others)
    counts = sorted({line.seeds for line in lines})
    seeds = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return (
        f"On {len(lines)} tasks, `samesense train DATA --output RUN` is on average {above_documented(lines)[0]:+.1f} "
        f"points from the recipe documented for the kind of data ({above_documented(others)[0]:+.1f} without NLI), and "
        f"{average:+.1f} from the best of all recipes ({of_others:+.1f}): clearly ahead of that on {ahead}, clearly "
        f"behind on {behind} ({seeds} seeds; four tasks showed faults that were then mended: "
        "[table and figure](docs/without-a-flag.md))."
    )


def whole() -> str:
    """Return the section of the page of results: every table."""
    quality_tables = (quality(), *(swept(*arguments) for arguments in SWEPT))
    sections = {
        "Quality": "\n\n".join(block for block in quality_tables if block)
        .replace("](reproduce/", "](../reproduce/")
        .replace("](benchmarks/", "](../benchmarks/"),
        "Models": f"{MODELS}\n\n{judge()}",
        "Speed": "\n\n".join(block for block in (SPEED, engines(), training(), load(), speed()) if block),
        "Growth": f"{GROWTH}\n\n{growth.table(growth.read_lines())}",
    }
    return page(sections)


def flagless() -> str:
    """Return the tables of the page on the command without a flag."""
    lines = read_record()
    return page(
        {
            title: flagless_table([line for line in lines if line.part == part])
            for part, title in FLAGLESS.items()
            if any(line.part == part for line in lines)
        }
    )


def page(sections: dict[str, str]) -> str:
    blocks = (f"### {title}\n\n{_wrapped(body)}\n" for title, body in sections.items())
    return "\n".join([START, *blocks]).rstrip() + f"\n{END}"


def _wrapped(body: str) -> str:
    blocks = body.split("\n\n")
    return "\n\n".join(block if block.startswith("|") else fill(block, 120, break_on_hyphens=False) for block in blocks)


def main() -> None:
    pages = (("README.md", short()), ("docs/results.md", whole()), ("docs/without-a-flag.md", flagless()))
    for name, tables in pages:
        text = (ROOT / name).read_text(encoding="utf-8")
        before, remainder = text.split(START)
        updated = before + tables + remainder.split(END)[1]
        if "--check" in sys.argv and updated != text:
            sys.exit(f"{name} is not what benchmarks/tables.py writes; run it without --check.")
        (ROOT / name).write_text(updated, encoding="utf-8")


if __name__ == "__main__":
    main()
