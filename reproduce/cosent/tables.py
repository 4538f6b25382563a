"""Write what was measured here into the pages of this folder.

python reproduce/cosent/tables.py                       # rewrite the pages from results/
python reproduce/cosent/tables.py --check               # exit 1 if that would change one
python reproduce/cosent/tables.py --take losses FOLDER  # first take over the results of a sweep folder
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from samesense.metrics import best_threshold
from samesense.reports.figures.curves import Curve
from samesense.reports.significance import Comparison
from samesense.reports.sweeps import arrival_table, arrivals, difference_table
from samesense.reports.tables import markdown

HERE = Path(__file__).parent
RESULTS = HERE / "results"
BEGIN, END = "<!-- here: written by tables.py -->", "<!-- end of here -->"

Rows = list[dict]


def rows_of(sweep: str) -> Rows:
    """Return what a sweep gave; nothing if it was not run."""
    path = RESULTS / f"{sweep}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def spread(values: list[float]) -> str:
    """Return mean and sample deviation, x100."""
    numbers = 100 * np.asarray(values)
    return f"{numbers.mean():z.2f}" + (f" ± {numbers.std(ddof=1):.2f}" if len(numbers) > 1 else "")


def origin(rows: Rows) -> str:
    """Say what was trained on what, so that the figures can be compared and repeated."""
    first = rows[0]
    trained = [row for row in rows if row["seed"] is not None]
    seeds = ", ".join(map(str, sorted({row["seed"] for row in trained})))
    data = {}
    for row in trained:
        sizes = row["rows"]
        data[row["dataset"]] = f"{row['dataset']} {sizes['train']}/{sizes['dev']} ({row['data']['train'][:8]})"
    steps = max(row["outcome"]["steps"] for row in trained)
    return (
        f"Start point: {first['start']}, its first {first['layers']} layers, never tuned for sentences. At most "
        f"{steps} steps; seeds {seeds}; commit {first['commit']}. Rows of train/dev (fingerprint): "
        f"{'; '.join(data.values())}."
    )


def figures(rows: Rows, *, metric: str = "spearman") -> str:
    """Spearman x100 of each variant on each test set, mean ± deviation over seeds."""
    tests = {row["test"]: f"{row['test']} ({row['n']})" for row in rows}
    table = []
    for variant in dict.fromkeys(row["variant"] for row in rows):
        own = [row for row in rows if row["variant"] == variant]
        cells = [[row[metric] for row in own if row["test"] == test] for test in tests]
        table.append([variant, *(spread(values) if values else "not run" for values in cells)])
    return markdown(["variant", *tests.values()], table, numeric=list(tests.values()))


def differences(sweep: str) -> str:
    """Return the comparisons of a sweep by Spearman, with what they mean; nothing if there are none."""
    path = RESULTS / f"{sweep}.comparisons.jsonl"
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        content = json.loads(line)
        content.pop("significant")
        if content["metric"] == "spearman":
            found.append(Comparison(**content))
    if not found:
        return ""
    note = "Paired bootstrap over the test pairs, of the run with the median figure of its seeds; p adjusted by Holm."
    return f"\n\n{note}\n\n{difference_table(found)}"


def convergence(rows: Rows) -> str:
    """Return, for each data set, the steps of each variant to the best dev score of each other."""
    parts = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        curves: dict[str, dict[int, Curve]] = {}
        for row in rows:
            if row["dataset"] == dataset and row.get("curve"):
                steps, values = zip(*row["curve"], strict=True)
                curves.setdefault(row["variant"], {})[row["seed"]] = Curve(row["variant"], steps, values)
        found = arrivals(curves)
        if found:
            parts.append(f"**{dataset}**\n\n{arrival_table(found)}")
    return "\n\n".join(parts)


def cosines(rows: Rows) -> str:
    """Mean and deviation of the cosines of each label, seeds together."""
    table = []
    for row in rows:
        if "cosines" in row and row["seed"] in (None, 1):
            ends = [f"{mean:z.3f} ± {sd:.3f}" for mean, sd, _ in row["cosines"].values()]
            table.append([row["test"], row["variant"], *ends])
    table.sort(key=lambda cells: cells[0])
    return markdown(["data", "variant", "label 0", "label 1"], table, numeric=("label 0", "label 1"))


def verdicts(rows: Rows) -> str:
    """Equivalent or not, by the threshold fitted on the pairs held out."""
    table = []
    for row in rows:
        equal = [score >= row["threshold"] for score in row["scores"]]
        for at, (label, said) in enumerate(zip(row["labels"], equal, strict=True), 1):
            right = "right" if said == (label == 1) else "wrong"
            words = {True: "equivalent", False: "unequivalent"}
            table.append([str(at), words[label == 1], row["variant"], words[said], right])
    table.sort(key=lambda cells: cells[0])
    return markdown(["pair", "truth", "loss", "prediction", ""], table, numeric=())


def whole(sweep: str, *parts: Callable[[Rows], str], only: tuple[str, ...] = ()) -> Callable[[], str]:
    """Return what writes a page's part about a sweep: where its figures come from, then each of ``parts``."""

    def write() -> str:
        rows = [row for row in rows_of(sweep) if not only or row["test"] in only]
        if not any(row["seed"] is not None for row in rows):
            return f"Not run yet: no results of `scaled/{sweep}.toml`."
        shown = "\n\n".join(part(rows) for part in parts)
        tested = differences(sweep) if parts[0] is figures else ""
        return f"{origin(rows)}\n\n{shown}{tested}"

    return write


STS = tuple(f"nli/{name}" for name in ("sts12", "sts13", "sts14", "sts15", "stsb", "sickr"))
PAGES = {
    "table1": whole("epsilon", figures),
    "table3": whole("nli", figures, only=STS),
    "table4": whole("losses", figures),
    "table7": whole("interaction", figures),
    "table8": whole("pooling", figures),
    "table9": whole("nli", figures, only=("nli/stsb", "nli/sickr", "nli/paws", "nli/mrpc")),
    "table10": whole("cases", verdicts),
    "fig3": whole("losses", convergence),
    "fig4": whole("lambda", figures),
    "fig5": whole("losses", cosines),
}
"""The page that each function writes; Table VI shares the sweep of Table IV, and Table V has none."""


def take(sweep: str, folder: Path) -> None:
    """Copy what a sweep has left; scores only where they are few."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE)
    lines = []
    for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines():
        row = {**json.loads(line), "commit": commit.stdout.strip()}
        lines.append(json.dumps(row | (_cases(row, folder) if sweep == "cases" else {}), ensure_ascii=False) + "\n")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{sweep}.jsonl").write_text("".join(lines), encoding="utf-8")
    (RESULTS / f"{sweep}.comparisons.jsonl").write_text((folder / "comparisons.jsonl").read_text(encoding="utf-8"))


def _cases(row: dict, folder: Path) -> dict:
    """Return scores, labels and threshold of a cell whose test pairs are few."""
    plan = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    entry = next(e for e in plan["cells"] if (e["variant"], e["seed"]) == (row["variant"], row["seed"]))
    home = folder / "runs" / entry["folder"]
    identity = json.loads((home / "cell.json").read_text(encoding="utf-8"))["identity"]
    with np.load(home / "scores.npz") as kept:
        scores, dev = kept[f"sts:{row['test']}:spearman"], kept["dev"]
    labels = {
        part: [json.loads(line)[2] for line in (folder / "pairs" / f"{sha}.jsonl").read_text("utf-8").splitlines()]
        for part, sha in (("test", row["data"]["test"]), ("dev", identity["dev"]))
    }
    threshold = float(best_threshold(dev, labels["dev"], "accuracy"))
    return {"scores": scores.tolist(), "labels": labels["test"], "threshold": threshold}


def main() -> None:
    """Take results over if asked to, then write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--take", nargs=2, metavar=("SWEEP", "FOLDER"))
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.take:
        take(given.take[0], Path(given.take[1]))
    changed = False
    for name, write in PAGES.items():
        page = HERE / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        wanted = f"{before}{BEGIN}\n{write()}\n{END}{rest.split(END)[1]}"
        changed |= wanted != text
        if not given.check:
            page.write_text(wanted, encoding="utf-8")
    sys.exit(int(given.check and changed))


if __name__ == "__main__":
    main()
