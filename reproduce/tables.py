"""Write the results of a paper's folder into its pages.

python reproduce/tables.py cosent                       # rewrite the pages from cosent/results/
python reproduce/tables.py cosent --check               # exit 1 if that would change one
python reproduce/tables.py cosent --take losses FOLDER  # first take over the results of a sweep folder
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from taking import take

from samesense.errors import DataError
from samesense.reports.figures.curves import Curve
from samesense.reports.figures.plot import Plot, save_plot
from samesense.reports.significance import Comparison
from samesense.reports.sweeps import (
    comparison_figure,
    difference_table,
    differences_of_means,
    steps_table,
    steps_to_scores,
)
from samesense.reports.tables import markdown
from samesense.results.results import mean_name

HOME = Path(__file__).parent
BEGIN = "<!-- here: written by tables.py -->"
END = "<!-- end of here -->"

Rows = list[dict]


def rows_of(paper: str, sweep: str) -> Rows:
    """Return the rows of a sweep; empty if it was not run."""
    path = HOME / paper / "results" / f"{sweep}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def spread(values: list[float]) -> str:
    """Return mean and sample deviation, x100."""
    numbers = 100 * np.asarray(values)
    return f"{numbers.mean():z.2f}" + (f" ± {numbers.std(ddof=1):.2f}" if len(numbers) > 1 else "")


def origin(rows: Rows) -> str:
    """Describe start point, steps, seeds and data, so that the figures can be compared and repeated."""
    trained = [row for row in rows if row["seed"] is not None]
    starts = dict.fromkeys(f"{row['start']}{_cut(row['layers'])}" for row in rows)
    seeds = ", ".join(map(str, sorted({row["seed"] for row in trained})))
    data = dict.fromkeys(
        f"{row['dataset']} {row['rows']['train']}/{row['rows']['dev']} ({row['data']['train'][:8]})" for row in trained
    )
    commits = dict.fromkeys(row["commit"] for row in rows)
    steps = max(row["outcome"]["steps"] for row in trained)
    return (
        f"Start point: {' or '.join(starts)}. At most {steps} steps; seeds {seeds}; taken over at commit "
        f"{' and '.join(commits)}. Rows of train/dev (fingerprint): {'; '.join(data)}."
    )


def _cut(layers: int | None) -> str:
    return "" if layers is None else f", its first {layers} layers, never tuned for sentence embeddings"


def figures(rows: Rows, *, metric: str = "spearman") -> str:
    """Return Spearman x100 of each variant on each test set, mean ± deviation over seeds; missing seeds are marked."""
    tests = {row["test"]: f"{row['test']} ({row['n']})" for row in rows}
    seeds = len({row["seed"] for row in rows if row["seed"] is not None})
    table = []
    for variant in dict.fromkeys(row["variant"] for row in rows):
        variant_rows = [row for row in rows if row["variant"] == variant]
        whole = 1 if all(row["seed"] is None for row in variant_rows) else seeds
        cells = [[row[metric] for row in variant_rows if row["test"] == test] for test in tests]
        table.append([variant, *(_of_seeds(values, whole) for values in cells)])
    return markdown(["variant", *tests.values()], table, numeric=list(tests.values()))


def _of_seeds(values: list[float], seeds: int) -> str:
    if not values:
        return "not run"
    return spread(values) + ("" if len(values) == seeds else f" ({len(values)} of {seeds} seeds)")


def check_same_data(rows: Rows) -> None:
    """Raise if one name of a test set stands for different pairs in different rows."""
    fingerprints: dict[str, str] = {}
    for row in rows:
        if fingerprints.setdefault(row["test"], row["data"]["test"]) != row["data"]["test"]:
            raise DataError(f"{row['test']}: {row['variant']} was judged on other pairs. Run the sweep as a whole.")


def comparisons_of(paper: str, sweep: str, *, metric: str = "spearman") -> list[Comparison]:
    """Return the comparisons of a sweep by one metric; empty if it was not run."""
    path = HOME / paper / "results" / f"{sweep}.comparisons.jsonl"
    comparisons = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        content = json.loads(line)
        content.pop("significant")
        if content["metric"] == metric:
            comparisons.append(Comparison(**content))
    return comparisons


def differences(paper: str, sweep: str, *, metric: str, examples: str) -> str:
    """Return the figure and the table of the comparisons of a sweep with their caption; empty if there are none.

    Where there is a mean over several sets, only that is compared: single sets are in ``results/``.
    """
    comparisons = comparisons_of(paper, sweep, metric=metric)
    if not comparisons:
        return ""
    shown = differences_of_means(comparisons)
    singles = ""
    if len(shown) < len(comparisons):
        singles = f" Single sets are compared in [results](results/{sweep}.comparisons.jsonl)."
    caption = (
        f"Tested over seeds and {examples} together; p adjusted by Holm over all comparisons of the sweep.{singles}"
    )
    picture = ""
    if figure_of(paper, sweep, metric) is not None:
        picture = f"![Differences with 95 % intervals; full dots are significant](images/{sweep}.svg)\n\n"
    return f"\n\n{picture}{caption}\n\n{difference_table(shown)}"


def figure_of(paper: str, sweep: str, metric: str) -> Plot | None:
    """Return the figure of a sweep's differences; ``None`` if it compares untrained starts alone."""
    untrained = {row["variant"] for row in rows_of(paper, sweep) if row["seed"] is None}
    comparisons = comparisons_of(paper, sweep, metric=metric)
    if all(comparison.model in untrained for comparison in comparisons):
        return None
    return comparison_figure(comparisons, name=sweep, untrained=untrained)


def draw(paper: str, sweep: str, metric: str) -> None:
    """Draw the differences of a sweep into ``images/``."""
    figure = figure_of(paper, sweep, metric)
    if figure is not None:
        (HOME / paper / "images").mkdir(exist_ok=True)
        save_plot(figure, HOME / paper / "images" / f"{sweep}.svg")


def convergence(rows: Rows) -> str:
    """Return, for each data set, the steps that each variant needs to reach the best dev score of each other one.

    A variant that ends no better on test than the untouched start point sets no level: all variants have reached it at
    step 0, which the curves do not show.
    """
    blocks = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        curves: dict[str, dict[int, Curve]] = {}
        for row in rows:
            if row["dataset"] == dataset and row.get("curve"):
                steps, values = zip(*row["curve"], strict=True)
                curves.setdefault(row["variant"], {})[row["seed"]] = Curve(row["variant"], steps, values)
        idle = [variant for variant in curves if not _gained(rows, dataset, variant)]
        levels = [level for level in steps_to_scores(curves) if level.baseline not in idle]
        note = f"No better on test than the start point, so no level: {', '.join(idle)}." if idle else ""
        if curves:
            table = steps_table(levels, dataset).markdown() if levels else ""
            blocks.append("\n\n".join(filter(None, [f"**{dataset}**", table, note])))
    return "\n\n".join(blocks)


def _gained(rows: Rows, dataset: str, variant: str) -> bool:
    """Return whether a variant is better on test than the start point; True if the start point was not evaluated."""
    tuned, start = (
        [row["spearman"] for row in rows if row["dataset"] == dataset and row["variant"] == name]
        for name in (variant, "start")
    )
    return not start or float(np.mean(tuned)) > float(np.mean(start))


def cosines(rows: Rows) -> str:
    """Return mean and deviation of the cosines of each label, and the distance of the labels; all are means over seeds.

    The distance is that of the two means, divided by the root mean square of both deviations.
    """
    with_cosines = [row for row in rows if len(row.get("cosines", ())) == 2]
    labels = sorted({label for row in with_cosines for label in row["cosines"]}, key=float)
    table = []
    for test in dict.fromkeys(row["test"] for row in with_cosines):
        for variant in dict.fromkeys(row["variant"] for row in with_cosines if row["test"] == test):
            runs = [row["cosines"] for row in with_cosines if (row["test"], row["variant"]) == (test, variant)]
            ends = np.asarray([[run[label][:2] for label in labels] for run in runs])  # seed, label, mean/deviation
            means = ends[..., 0]
            deviations = ends[..., 1]
            apart = (means[:, 1] - means[:, 0]) / np.sqrt((deviations**2).mean(axis=1))
            cells = [f"{m:z.3f} ± {d:.3f}" for m, d in zip(means.mean(axis=0), deviations.mean(axis=0), strict=True)]
            over = f" ± {apart.std(ddof=1):.2f}" if len(apart) > 1 else ""
            table.append([test, variant, *cells, f"{apart.mean():.2f}{over}"])
    header = [*(f"label {label}" for label in labels), "distance / deviation"]
    caption = "Mean and deviation of the cosines over the pairs of each label, means over seeds:"
    return f"{caption}\n\n{markdown(['data', 'variant', *header], table, numeric=header)}"


def ratings(rows: Rows) -> str:
    """Return mean and deviation of the cosines of five groups of ratings, means over seeds."""
    with_ratings = [row for row in rows if "ratings" in row]
    table = []
    for variant in dict.fromkeys(row["variant"] for row in with_ratings):
        means = np.mean([row["ratings"] for row in with_ratings if row["variant"] == variant], axis=0)
        table.append([variant, *(f"{m:z.3f} ± {d:.3f}" for _, m, d in means)])
    counts = [int(n) for n, *_ in with_ratings[0]["ratings"]]
    header = [f"rated {lowest} to {lowest + 1} ({n})" for lowest, n in enumerate(counts)]
    test = with_ratings[0]["test"]
    caption = f"Cosines of {test}: mean and deviation over the pairs of each group of ratings, means over seeds:"
    return f"{caption}\n\n{markdown(['variant', *header], table, numeric=header)}"


def verdicts(rows: Rows) -> str:
    """Return the predictions of each pair by the threshold fitted on the pairs held out."""
    table = []
    for row in rows:
        equal = [score >= row["threshold"] for score in row["scores"]]
        for number, (label, predicted) in enumerate(zip(row["labels"], equal, strict=True), 1):
            right = "right" if predicted == (label == 1) else "wrong"
            words = {True: "equivalent", False: "unequivalent"}
            table.append([str(number), words[label == 1], row["variant"], words[predicted], right])
    table.sort(key=lambda cells: int(cells[0]))
    return markdown(["pair", "truth", "loss", "prediction", ""], table, numeric=())


def average(rows: Rows) -> str:
    """Return the mean Spearman x100 over all test sets of each variant, mean ± deviation over seeds."""
    tests = {row["test"] for row in rows}
    table = []
    for variant in dict.fromkeys(row["variant"] for row in rows):
        variant_rows = [row for row in rows if row["variant"] == variant]
        seeds = {
            seed: [row["spearman"] for row in variant_rows if row["seed"] == seed]
            for seed in {row["seed"] for row in variant_rows}
        }
        means = [float(np.mean(values)) for values in seeds.values() if len(values) == len(tests)]
        table.append([variant, spread(means) if means else "not run", str(len(means))])
    numeric = [mean_name(len(tests)), "runs"]
    return markdown(["variant", *numeric], table, numeric=numeric)


def path(rows: Rows) -> str:
    """Return alignment and uniformity on dev along the steps, of the first seed of each variant."""
    table = []
    for row in rows:
        if row.get("geometry") and row["seed"] == min(
            any_row["seed"] for any_row in rows if any_row["seed"] is not None
        ):
            for step, alignment, uniformity in row["geometry"]:
                table.append([row["variant"], str(step), f"{alignment:.4f}", f"{uniformity:.4f}"])
    table = list(dict.fromkeys(map(tuple, table)))
    header = ["variant", "step", "alignment", "uniformity"]
    return markdown(header, [list(cells) for cells in table], numeric=header[1:]) if table else "No path was kept."


def kept(rows: Rows) -> str:
    """Return each variant's agreement with Origin's scores of held-out pairs, mean ± deviation over seeds."""
    table = []
    pairs = 0
    for variant in dict.fromkeys(row["variant"] for row in rows if "kept" in row):
        agreements = {row["seed"]: row["kept"] for row in rows if row["variant"] == variant}.values()
        pairs = max(agreement["pairs"] for agreement in agreements)
        cells = [spread([agreement[figure] for agreement in agreements]) for figure in ("spearman", "pearson")]
        table.append([variant, *cells, f"{np.mean([agreement['mse'] for agreement in agreements]):.3f}"])
    header = ["variant", "Spearman x100", "Pearson x100", "mean squared distance"]
    return f"Against Origin, on {pairs:,} harvested pairs held out:\n\n{markdown(header, table, numeric=header[1:])}"


Block = Callable[[Rows], str]


@dataclass(frozen=True)
class Whole:
    """The section of a page about one sweep: where its figures come from, then each block."""

    sweep: str
    blocks: tuple[Block, ...]
    only: tuple[str, ...] = ()
    variants: str = ""

    metric = "spearman"

    @property
    def is_compared(self) -> bool:
        """Whether the section has the comparisons of the sweep."""
        return self.blocks[0] is figures and not self.variants

    def write(self, paper: str) -> str:
        """Return the text between the marks of the page."""
        rows = [
            row
            for row in rows_of(paper, self.sweep)
            if (not self.only or row["test"] in self.only)
            and (row["seed"] is None or re.search(self.variants, row["variant"]))
        ]
        if not any(row["seed"] is not None for row in rows):
            return f"Not run yet: no results of `scaled/{self.sweep}.toml`."
        check_same_data(rows)
        blocks = "\n\n".join(block(rows) for block in self.blocks)
        tested = ""
        if self.is_compared:
            tested = differences(paper, self.sweep, metric=self.metric, examples="test pairs")
        return f"{origin(rows)}\n\n{blocks}{tested}"


def whole(sweep: str, *blocks: Block, only: tuple[str, ...] = (), variants: str = "") -> Whole:
    """Return the section about a sweep, of the test sets ``only`` and the variants that ``variants`` matches."""
    return Whole(sweep, blocks, only, variants)


@dataclass(frozen=True)
class Several:
    """The section of a page about several sweeps."""

    wholes: tuple[Whole, ...]

    def write(self, paper: str) -> str:
        """Return the text between the marks of the page."""
        return "\n\n".join(f"### {section.sweep}\n\n{section.write(paper)}" for section in self.wholes)


@dataclass(frozen=True)
class Transfer:
    """The section of a page about transfer tasks, from the results of ``transfer.py``."""

    sweep: str = "transfer"
    metric = "accuracy"
    is_compared = True

    def write(self, paper: str) -> str:
        """Return the text between the marks of the page."""
        rows = rows_of(paper, self.sweep)
        if not rows:
            return "Not run yet: no results of `transfer.py`."
        seeds = ", ".join(map(str, sorted({row["seed"] for row in rows if row["seed"] is not None})))
        caption = f"Accuracy x100. Start point: {rows[0]['start']}; seeds {seeds}; commit {rows[0]['commit']}."
        tested = differences(paper, self.sweep, metric=self.metric, examples="test sentences")
        return f"{caption}\n\n{figures(rows, metric='accuracy')}{tested}"


@dataclass(frozen=True)
class Shares:
    """The section about the gradient of a batch, from the results of ``cosent/shares.py``."""

    sweep = "shares"
    is_compared = False

    def write(self, paper: str) -> str:
        """Return the text between the marks of the page."""
        rows = rows_of(paper, self.sweep)
        cells = {(row["set"], row["state"], row["batch_size"], row["temperature"]): row["pairs"] for row in rows}
        columns = sorted({key[2:] for key in cells})
        table = [
            [name, state, *(f"{100 * cells[name, state, *column] / column[0]:.0f} %" for column in columns)]
            for name, state in dict.fromkeys(key[:2] for key in cells)
        ]
        numeric = [f"{size} at {temperature:g}" for size, temperature in columns]
        most = max(row["gradient_in_scales"] for row in rows)
        return (
            f"{markdown(['set', 'model', *numeric], table, numeric=numeric)}\n\n"
            f"Share of the pairs of a batch that the gradient moves, by batch size and temperature. The sum of the "
            f"gradient's absolute values is {most:.2f} times the scale at most."
        )


TUNED = ("tuned", "tuned-softmax", "tuned-bq")
STS = tuple(f"nli/{name}" for name in ("sts12", "sts13", "sts14", "sts15", "stsb", "sickr"))
PAGES: dict[str, dict[str, Whole | Several | Transfer | Shares]] = {
    "cosent": {
        "table1": whole("epsilon", figures),
        "table3": whole("nli", figures, only=STS),
        "table4": whole("losses", figures),
        "table5": Transfer(),
        "table7": whole("interaction", figures),
        "table7-en": whole("interaction-en", figures, convergence),
        "table7-bq": whole("interaction-bq", figures, convergence),
        "table8": whole("pooling", figures),
        "table9": whole("nli", figures, only=("nli/stsb", "nli/sickr", "nli/paws", "nli/mrpc")),
        "table10": whole("cases", verdicts),
        "fig3": Several(tuple(whole(sweep, convergence) for sweep in TUNED)),
        "fig4": whole("lambda", figures),
        "fig5": Several(tuple(whole(sweep, cosines) for sweep in TUNED)),
        "batches": whole("batches", figures),
        "tuned": whole("tuned", figures),
        "paws": whole("paws", figures, convergence),
        "paws-rivals": whole("paws-rivals", figures, convergence),
        "stsb-sets": whole("stsb-sets", figures, average, convergence),
        "lists": whole("lists", figures, convergence),
        "bq-64": whole("bq-64", figures, convergence),
        "bq-temperatures": whole("bq-temperatures", figures, convergence),
        "batch-temperatures": whole("batch-temperatures", figures),
        "scored-temperatures": whole("scored-temperatures", figures),
        "tuned-softmax": whole("tuned-softmax", figures),
        "tuned-binary": whole("tuned-binary", figures, convergence),
        "tuned-bq": whole("tuned-bq", figures),
        "tuned-nli": whole("tuned-nli", figures, average, convergence),
        "bq": whole("bq", figures, cosines),
        "shares": Shares(),
    },
    "rankcse": {
        "table2": whole("sts", figures, average, variants="^(simcse|.*both)$"),
        "table3": Transfer(),
        "table4": whole("ablation", average, figures),
        "table5": whole("sts", average, figures),
        "table6": whole("sts", average),
        "fig3": whole("temperatures", average),
        "fig4": whole("geometry", path),
        "fig5": whole("documents", ratings),
        "own-teachers": whole("own-teachers", figures, average),
        "tuned": whole("tuned", figures, average, convergence),
        "documents": Several(
            (
                whole("documents-teachers", figures, average),
                whole("documents", figures, average, convergence),
            )
        ),
        "neighbours": whole("neighbours", figures, average, convergence),
        "two-teachers": whole("two-teachers", figures, average, convergence),
    },
    "supmpn": {
        "table2": whole("losses", figures, average),
        "table3": Transfer(),
        "places": whole("places", average, figures),
        "ragged": whole("ragged", figures),
        "tableA1": whole("augment", figures, average),
        "tuned": whole("tuned", figures, average, convergence),
        "anchors": whole("anchors", figures, average, convergence),
        "last": whole("last", figures, average),
        "options": whole("options", figures, average),
    },
    "context": {
        "table2": whole("further", figures, only=STS),
        "table3": whole("further", figures, only=("stsb", "sickr")),
        "table3-nli": whole("after-nli", figures),
        "table3-labels": Several((whole("labels-words", figures, average, convergence), whole("labels", figures))),
        "table8": whole("pairs", figures, average, kept),
        "section56": whole("structure", figures, average, kept),
    },
}
"""For each paper the page that each entry writes. CoSENT's Table VI shares the sweep of Table IV."""


def filled(text: str, content: str) -> str:
    """Return a page with ``content`` between its marks."""
    before, remainder = text.split(BEGIN)
    return f"{before}{BEGIN}\n{content}\n{END}{remainder.split(END)[1]}"


def main() -> None:
    """Take over results with ``--take``, then write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", choices=PAGES)
    parser.add_argument("--take", nargs=2, metavar=("SWEEP", "FOLDER"))
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.take:
        take(HOME / args.paper / "results", args.take[0], Path(args.take[1]))
    changed = False
    for name, section in PAGES[args.paper].items():
        page = HOME / args.paper / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        updated = filled(text, section.write(args.paper))
        changed |= updated != text
        if args.check:
            continue
        page.write_text(updated, encoding="utf-8")
        for part in getattr(section, "wholes", (section,)):
            if part.is_compared:
                draw(args.paper, part.sweep, part.metric)
    sys.exit(int(args.check and changed))


if __name__ == "__main__":
    main()
