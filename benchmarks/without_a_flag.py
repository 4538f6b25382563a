"""How good ``samesense train DATA --output RUN`` is without a flag, beside the recipes that people copy.

Twenty tasks of all kinds of supervision (``supervision.py``): ten on which defaults are chosen, and ten that are run
once. Part ``fresh`` has eight that were named later, with other sets or starts; part ``triplets`` three of a kind that
was missing. Rivals are the documented recipes of sentence-transformers and SetFit and the bare defaults of its trainer
(``rivals.py``), a linear model on the start's frozen vectors, the untouched start, and untouched bge-small. All have
the same rows and the same start model. Only ``--model`` and ``--seed`` are added to our command. Part ``curves`` has
three sets with 50 to 2,500 labels, and part ``race`` compares our command with ten minutes of ``samesense race``.

    python benchmarks/without_a_flag.py run --data DATA --models MODELS --folder FOLDER --part development --seeds 1 2 3
    python benchmarks/without_a_flag.py table --data DATA --models MODELS --folder FOLDER --part development
    python benchmarks/without_a_flag.py record --data DATA --models MODELS --folder FOLDER --part development

To choose a default, ``--variant "NAME=FLAGS"`` runs our command with flags as one more system, on development tasks.
``record`` puts the table into ``results/``, where lines of other tasks stay.
``run`` makes what is missing, and can be stopped at any time; ``--limit MINUTES`` ends it after the run at hand.
Seconds are those of the processor, of the whole command, on all cores together.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from alternate import fastest_flags
from rivals import SETFIT, names_of
from supervision import NLI_LABELS, PARTS, Row, Task, Test, write_training_file

from samesense.metrics import average_precision, spearman
from samesense.reports.significance import compare_runs
from samesense.types import Evidence

Floats = npt.NDArray[np.float64]

OURS, START, FROZEN, LARGER = "samesense", "start", "linear on frozen vectors", "bge-small, untouched"
"""Systems beside the rivals that train; the last two are not trained encoders."""

RACE, BUDGET = "race, 10 minutes", "10m"
"""The system of part ``race``, and its wall time."""

DOCUMENTED = ("OnlineContrastiveLoss", "SoftmaxLoss", "CoSENTLoss", "MultipleNegativesRankingLoss", SETFIT, "SimCSE")
"""Of a task's recipes, the first of these is the one that is documented for its kind of data.

Source: sentence-transformers' Loss Overview, for yes or no, classes of pairs, scores and positives; SetFit's
quickstart.
"""

SAMPLES = 2000

RECORD = Path(__file__).parent / "results" / "without_a_flag.jsonl"
"""The lines of the tables, from which the page and its figure are made."""


@dataclass(frozen=True)
class Place:
    """Folders of a call."""

    data: Path
    models: Path
    folder: Path
    variants: dict[str, list[str]]  # flags by the name of a system

    def start(self, task: Task) -> str:
        """Return the start model of a task as commands take it."""
        return task.start if task.start == "default" else str(self.models / task.start)

    def results(self, task: Task, system: str, seed: int) -> Path:
        """Return the file of the values of a run; what describes it is beside it as JSON."""
        name = f"{system}-{seed}.npz".replace(" ", "_").replace(",", "")
        return self.folder / task.name.replace(" ", "_").replace(",", "") / name


def systems_of(task: Task, part: str, variants: Iterable[str] = ()) -> list[str]:
    """Return the systems of a task in a part, ours first."""
    if part == "race":
        return [OURS, START, RACE]
    english = task.start != "me5-small"
    frozen = [FROZEN] if task.kind in ("scored", "binary", "nli") else []
    larger = [LARGER] if english and task.start != "bge-small-en" else []
    return [OURS, *variants, START, *names_of(task.kind), *frozen, *larger]


# --- runs


def run(
    place: Place, part: str, tasks: Sequence[Task], seeds: Sequence[int], systems: Sequence[str], limit: float
) -> None:
    """Make the runs that are missing, seed by seed, so that a stopped call has whole seeds."""
    ends = time.monotonic() + 60 * limit
    for seed in seeds:
        for task in tasks:
            for system in systems_of(task, part, place.variants):
                path = place.results(task, system, seed)
                if path.is_file() or (systems and system not in systems):
                    continue
                if time.monotonic() > ends:
                    return
                with tempfile.TemporaryDirectory() as scratch:
                    values, facts = run_system(place, task, system, seed, Path(scratch))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.with_suffix(".json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
                np.savez(path, values=values)
                figure = score(task.test(place.data), values)
                print(f"{task.name}, seed {seed}, {system}: {figure:.2f} in {facts['seconds']:.0f} s", flush=True)


def run_system(place: Place, task: Task, system: str, seed: int, scratch: Path) -> tuple[Floats, dict[str, Any]]:
    """Return the values of a system on the test of a task, and what describes the run."""
    rows = task.training_rows(place.data, seed)
    test = task.test(place.data)
    start = place.start(task)
    facts: dict[str, Any] = {"seconds": 0.0}
    model = start
    if system == OURS or system in place.variants:
        facts, model = train_ours(task, rows, start, seed, scratch, place.variants.get(system, []))
    elif system == RACE:
        facts, model = race(task, rows, seed, scratch)
    elif system == LARGER:
        model = str(place.models / "bge-small-en")
    elif system not in (START, FROZEN):
        facts, model = train_rival(task, rows, system, start, seed, scratch)
    before = processor_seconds()
    encode = encoder_of(model)
    if task.kind == "classes":
        head = scratch / "output" / "head.pickle"
        values = classified(encode, rows, test, head if system == SETFIT else None)
    elif system == FROZEN:
        values = linear_scores(encode, rows, test, task.kind)
        facts = {"seconds": processor_seconds() - before}
    elif test.statistic == "mean":
        values = reciprocal_ranks(encode, test)
    else:
        first, second = (encode([row[side] for row in test.rows]) for side in (0, 1))
        values = np.einsum("nd,nd->n", first, second)
    return values, facts


def processor_seconds() -> float:
    """Return the seconds that this process and those that it waited for have used of all cores."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def timed(words: list[str], **environment: str) -> dict[str, Any]:
    """Run a command; return its seconds of the processor and of the clock."""
    before, started = processor_seconds(), time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr[-3000:]}")
    return {"seconds": processor_seconds() - before, "clock": time.perf_counter() - started}


def train_ours(
    task: Task, rows: list[Row], start: str, seed: int, scratch: Path, flags: list[str]
) -> tuple[dict[str, Any], str]:
    """Train by our command, and return what its verdict says."""
    output = scratch / "run"
    file = write_training_file(task, rows, scratch)
    words = [sys.executable, "-m", "samesense", "train", str(file), "--output", str(output), "--seed", str(seed)]
    facts = timed([*words, *flags, *(["--model", start] if start != "default" else [])])
    record = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
    verdict = record.get("verdict") or {}
    facts |= {
        "method": record["method"],
        "verdict": verdict.get("verdict", "none"),
        "kept": bool(verdict.get("keep_reason")),
        "whitened": "it is the start whitened" in verdict.get("keep_reason", ""),
    }
    facts |= {name: record["settings"].get(name) for name in ("loss", "learning_rate", "epochs", "batch_size")}
    if "weight_share" in record:
        facts["weight_share"] = record["weight_share"]
    facts["steps"] = record["outcome"]["steps"]
    return facts, str(output)


def race(task: Task, rows: list[Row], seed: int, scratch: Path) -> tuple[dict[str, Any], str]:
    """Search by our race, from the default model and its static form."""
    output = scratch / "race"
    file = write_training_file(task, rows, scratch)
    words = [sys.executable, "-m", "samesense", "race", str(file), "--output", str(output), "--seed", str(seed)]
    # Models in the hub's cache of this machine are none of the default's.
    return timed([*words, "--budget", BUDGET], HF_HUB_CACHE=str(scratch / "cache")), str(output)


def train_rival(
    task: Task, rows: list[Row], recipe: str, start: str, seed: int, scratch: Path
) -> tuple[dict[str, Any], str]:
    """Train by a recipe in a process of its own."""
    from samesense.encoder.names import resolve

    output = scratch / "output"
    output.mkdir()
    _, faster = fastest_flags()
    job = {"kind": task.kind, "recipe": recipe, "rows": rows, "start": resolve(start), "seed": seed, "faster": faster}
    file = scratch / "job.json"
    file.write_text(json.dumps(job | {"output": str(output)}), encoding="utf-8")
    facts = timed([sys.executable, str(Path(__file__).with_name("rivals.py")), str(file)])
    return facts, str(output / "model")


# --- tests


def encoder_of(model: str) -> Callable[[Sequence[str]], Floats]:
    """Return what gives unit vectors of texts by a model in float32."""
    from samesense.inference.models.load import load

    opened = load(model, precision="float32")
    return lambda texts: np.asarray(opened.encode(list(texts), normalize=True), dtype=np.float64)


def reciprocal_ranks(encode: Callable[[Sequence[str]], Floats], test: Test) -> Floats:
    """Return for each title 1 over the rank of its own text among the texts of all."""
    titles, texts = (encode([row[side] for row in test.rows]) for side in (0, 1))
    cosines = titles @ texts.T
    return 1.0 / (1 + (cosines > np.diag(cosines)[:, None]).sum(axis=1))


def classified(
    encode: Callable[[Sequence[str]], Floats], rows: list[Row], test: Test, head_file: Path | None
) -> Floats:
    """Return for each text whether a logistic regression on the training rows' vectors has its class right."""
    from sklearn.linear_model import LogisticRegression

    if head_file is None:
        head = LogisticRegression(max_iter=1000).fit(encode([row[0] for row in rows]), [row[1] for row in rows])
    else:
        head = pickle.loads(head_file.read_bytes())
    predicted = head.predict(encode([row[0] for row in test.rows]))
    return np.array([name == row[1] for name, row in zip(predicted, test.rows, strict=True)], dtype=np.float64)


def linear_scores(encode: Callable[[Sequence[str]], Floats], rows: list[Row], test: Test, kind: str) -> Floats:
    """Return scores of a ridge regression, of yes and no a logistic one, on differences and products of vectors."""
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV

    def features(pairs: Iterable[Row]) -> Floats:
        first, second = (encode([row[side] for row in pairs]) for side in (0, 1))
        return np.hstack([np.abs(first - second), first * second])

    labels = np.array([NLI_LABELS.get(row[2], 0.0) if kind == "nli" else float(row[2]) for row in rows])
    if kind == "binary":
        fitted = LogisticRegressionCV(Cs=10, cv=5, max_iter=1000, scoring="average_precision")
        return fitted.fit(features(rows), labels).decision_function(features(test.rows))
    return RidgeCV(np.logspace(-3, 3, 13)).fit(features(rows), labels).predict(features(test.rows))


def score(test: Test, values: Floats) -> float:
    """Return the figure of a run, times 100."""
    if test.statistic == "mean":
        return 100 * float(values.mean())
    measure = spearman if test.statistic == "spearman" else average_precision
    return 100 * float(measure(values, np.array(test.labels)))


# --- the table


@dataclass(frozen=True)
class Runs:
    """The runs of a system on a task."""

    evidence: list[Evidence]
    facts: list[dict[str, Any]]
    figures: list[float]

    def of_seeds(self, seeds: set[int | None]) -> Runs:
        """Return the runs of some seeds."""
        chosen = [number for number, run in enumerate(self.evidence) if run.seed in seeds]
        lists = (self.evidence, self.facts, self.figures)
        return Runs(*([values[number] for number in chosen] for values in lists))

    @property
    def mean(self) -> float:
        """The mean figure over seeds."""
        return statistics.mean(self.figures)

    @property
    def seconds(self) -> float:
        """The median of the processor's seconds."""
        return statistics.median(facts["seconds"] for facts in self.facts)


def read_runs(place: Place, task: Task, system: str) -> Runs | None:
    """Return the finished runs of a system, ``None`` if there is none."""
    test = task.test(place.data)
    runs = Runs([], [], [])
    for path in sorted(place.results(task, system, 0).parent.glob("*.npz")):
        seed = int(path.stem.rpartition("-")[2])
        if path != place.results(task, system, seed):
            continue
        values = np.load(path)["values"]
        examples = ["\t".join(row) for row in test.rows]
        labels = np.array(test.labels) if test.labels else None
        runs.evidence.append(
            Evidence(
                task=task.kind,
                dataset=task.name,
                metric=test.statistic,
                model=system,
                statistic=test.statistic,
                values=values,
                labels=labels,
                examples=examples,
                seed=seed,
            )
        )
        runs.facts.append(json.loads(path.with_suffix(".json").read_text(encoding="utf-8")))
        runs.figures.append(score(test, values))
    return runs if runs.figures else None


@dataclass(frozen=True)
class Line:
    """What a task showed: means over seeds, and the comparison with the best rival that was trained."""

    part: str
    task: str
    metric: str
    seeds: int
    start: float
    ours: float
    rivals: dict[str, float]
    rival_differences: dict[str, float]  # of ours to each, over the seeds that both have
    rival_seconds: dict[str, float]
    larger: float | None  # of the larger untouched model
    best: str  # of the rivals
    difference: float  # to it, over seeds and examples together
    low: float
    high: float
    seconds: float  # of the processor, the median over seeds
    best_seconds: float
    verdicts: list[str]
    truth: str  # what the test says of the end against the start

    @property
    def regret(self) -> float:
        """How far below the best of all, ours included."""
        return max(self.same_start_regret, 0.0 if self.larger is None else self.larger - self.ours)

    @property
    def documented(self) -> str | None:
        """The recipe that is documented for the kind of data; ``None`` if it was not run."""
        return next((name for name in DOCUMENTED if name in self.rivals), None)

    @property
    def same_start_regret(self) -> float:
        """How far below the best that begins at the same start, the start itself and ours included."""
        return max(0.0, max(*self.rivals.values(), self.start) - self.ours)


def lines_of(place: Place, part: str, tasks: Sequence[Task]) -> list[Line]:
    """Return a line a task, of those that have runs of ours, of the start and of a rival."""
    lines = []
    for task in tasks:
        ours, start = read_runs(place, task, OURS), read_runs(place, task, START)
        names = [name for name in systems_of(task, part) if name not in (OURS, START, LARGER)]
        rivals = {name: runs for name in names if (runs := read_runs(place, task, name)) is not None}
        if ours is None or start is None or not rivals:
            continue
        larger = read_runs(place, task, LARGER)
        best = max(rivals, key=lambda name: rivals[name].mean)
        differences = {name: mean_difference(ours, runs) for name, runs in rivals.items()}
        ours, rivals[best] = on_shared_seeds(ours, rivals[best])
        start, _ = on_shared_seeds(start, ours)
        comparison = compare_runs(ours.evidence, rivals[best].evidence, SAMPLES)
        gain = compare_runs(ours.evidence, start.evidence[: len(ours.evidence)], SAMPLES)
        lines.append(
            Line(
                part=part,
                task=task.name,
                metric=task.test(place.data).statistic,
                seeds=len(ours.evidence),
                start=start.mean,
                ours=ours.mean,
                rivals={name: runs.mean for name, runs in rivals.items()},
                rival_differences=differences,
                rival_seconds={name: runs.seconds for name, runs in rivals.items()},
                larger=None if larger is None else larger.mean,
                best=best,
                difference=100 * comparison.difference,
                low=100 * comparison.low,
                high=100 * comparison.high,
                seconds=ours.seconds,
                best_seconds=rivals[best].seconds,
                verdicts=[verdict_of(facts) for facts in ours.facts],
                truth="better" if gain.low > 0 else "worse" if gain.high < 0 else "no difference",
            )
        )
    return lines


def on_shared_seeds(first: Runs, second: Runs) -> tuple[Runs, Runs]:
    """Return the runs of two systems with the seeds that both have."""
    seeds = {run.seed for run in first.evidence} & {run.seed for run in second.evidence}
    return first.of_seeds(seeds), second.of_seeds(seeds)


def mean_difference(ours: Runs, its: Runs) -> float:
    """Return how far our mean figure is above that of a rival, over the seeds that both have."""
    mine, theirs = on_shared_seeds(ours, its)
    return mine.mean - theirs.mean


def recipes_table(lines: Sequence[Line]) -> str:
    """Return how far we are above each recipe on the tasks that have it, and in what part of its time, as Markdown.

    The best rival of a task is known after the test only; who copies a recipe takes the same one for each task.
    """
    rows = ["| recipe | tasks | mean difference | least | our seconds / its (median) |", "|---|---:|---:|---:|---:|"]
    for name in dict.fromkeys(name for line in lines for name in line.rivals):
        having = [line for line in lines if name in line.rivals]
        differences = [line.rival_differences[name] for line in having]
        ratio = statistics.median(line.seconds / line.rival_seconds[name] for line in having)
        figures = f"{statistics.mean(differences):+.2f} | {min(differences):+.2f} | {ratio:.2f}"
        rows.append(f"| {name} | {len(having)} | {figures} |")
    return "\n".join(rows)


def above_documented(lines: Sequence[Line]) -> tuple[float, float]:
    """Return how far we are above the documented recipes on average, and in what part of their time (median)."""
    pairs = [(line, line.documented) for line in lines if line.documented is not None]
    differences = [line.rival_differences[name] for line, name in pairs]
    ratios = [line.seconds / line.rival_seconds[name] for line, name in pairs]
    return statistics.mean(differences), statistics.median(ratios)


def table(lines: Sequence[Line]) -> str:
    """Return figures, differences to the best rival and to the start, regret, seconds and verdicts as Markdown."""
    rows = [
        "| task | seeds | start | samesense | best rival | | difference [95 %] | regret | seconds: ours, its "
        "| verdict |",
        "|---|---:|---:|---:|---|---:|---:|---:|---:|---|",
    ]
    for line in lines:
        counts = ", ".join(f"{line.verdicts.count(word)} {word}" for word in dict.fromkeys(line.verdicts))
        cells = [line.task, str(line.seeds), f"{line.start:.2f}", f"{line.ours:.2f}", line.best]
        cells += [f"{line.rivals[line.best]:.2f}", f"{line.difference:+.2f} [{line.low:+.1f}, {line.high:+.1f}]"]
        cells += [f"{line.regret:.2f}", f"{line.seconds:.0f}, {line.best_seconds:.0f}"]
        rows.append(f"| {' | '.join([*cells, f'{counts} (test: {line.truth})'])} |")
    if lines:
        rows += ["", conclusion(lines), "", recipes_table(lines)]
    return "\n".join(rows)


def conclusion(lines: Sequence[Line]) -> str:
    """Return what all tasks together say, in a sentence."""
    regrets = [line.regret for line in lines]
    same_start = [line.same_start_regret for line in lines]
    ratios = [line.seconds / line.best_seconds for line in lines if line.best_seconds]
    right = sum(is_right(word, line.truth) for line in lines for word in line.verdicts)
    documented = ""
    if any(line.documented for line in lines):
        above, part = above_documented(lines)
        documented = (
            f"Mean difference to the recipe that is documented for the kind of data {above:+.2f}, in {part:.2f} times "
            "its seconds (median). "
        )
    return (
        f"{documented}"
        f"Mean difference to the best rival {statistics.mean(line.difference for line in lines):+.2f}; regret "
        f"{statistics.mean(regrets):.2f} on average, {max(regrets):.2f} at worst, among those from the same start "
        f"{statistics.mean(same_start):.2f} and {max(same_start):.2f}; {statistics.median(ratios):.2f} "
        f"times the best rival's seconds (median); verdicts right in {right} of "
        f"{sum(len(line.verdicts) for line in lines)} runs."
    )


def variants_table(place: Place, tasks: Sequence[Task]) -> str:
    """Return a row for each variant on each task, compared with the command without a flag."""
    rows = ["| task | variant | | without a flag | difference [95 %] | seconds |", "|---|---|---:|---:|---:|---:|"]
    for task in tasks:
        ours = read_runs(place, task, OURS)
        for name in place.variants:
            variant = read_runs(place, task, name)
            if ours is not None and variant is not None:
                rows.append(variant_row(task, name, variant, ours))
    return "\n".join(rows)


def variant_row(task: Task, name: str, variant: Runs, ours: Runs) -> str:
    """Return a row of the table of variants, over the seeds that both have."""
    variant, ours = on_shared_seeds(variant, ours)
    comparison = compare_runs(variant.evidence, ours.evidence, SAMPLES)
    interval = f"{100 * comparison.difference:+.2f} [{100 * comparison.low:+.1f}, {100 * comparison.high:+.1f}]"
    cells = [task.name, name, f"{variant.mean:.2f}", f"{ours.mean:.2f}", interval]
    return f"| {' | '.join([*cells, f'{variant.seconds:.0f} / {ours.seconds:.0f}'])} |"


def verdict_of(facts: dict[str, Any]) -> str:
    """Return what a run said of its model; a whitened start is kept because it was better than the plain one."""
    if facts.get("whitened"):
        return "better"
    return "kept" if facts["kept"] else facts["verdict"]


def is_right(word: str, truth: str) -> bool:
    """Return whether a verdict agrees with the test: one that is less sure is right unless it names the wrong side."""
    if word == "better":
        return truth == "better"
    if word in ("worse", "kept"):
        return truth != "better"
    return truth != "worse"


def main() -> None:
    """Run, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "table", "record"))
    parser.add_argument("--data", type=Path, required=True, help="folder with en, zh, nli and docs")
    parser.add_argument("--models", type=Path, required=True, help="folder with the start models")
    parser.add_argument("--folder", type=Path, required=True, help="of the results")
    parser.add_argument("--part", choices=PARTS, default="development")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--tasks", nargs="*", default=[], help="only those whose names begin so")
    parser.add_argument("--systems", nargs="*", default=[], help="only these")
    parser.add_argument("--variant", nargs="*", default=[], help="NAME=FLAGS of our command, as one more system")
    parser.add_argument("--limit", type=float, default=float("inf"), help="minutes after which no run begins")
    args = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    variants = {name: flags.split() for name, _, flags in (text.partition("=") for text in args.variant)}
    if variants and args.part == "final":
        parser.error("final tasks choose nothing: leave --variant out")
    place = Place(args.data, args.models, args.folder, variants)
    tasks = [task for task in PARTS[args.part] if not args.tasks or task.name.startswith(tuple(args.tasks))]
    if args.action == "run":
        run(place, args.part, tasks, args.seeds, args.systems, args.limit)
    lines = lines_of(place, args.part, tasks)
    print(table(lines))
    if variants:
        print(f"\n{variants_table(place, tasks)}")
    if args.action == "record":
        measured = {(line.part, line.task) for line in lines}
        others = [line for line in read_record() if (line.part, line.task) not in measured]
        written = sorted([*others, *lines], key=place_of)
        RECORD.write_text("".join(f"{json.dumps(asdict(line))}\n" for line in written), encoding="utf-8")


def place_of(line: Line) -> tuple[str, int]:
    """Return what lines of the record are sorted by: the part, and the place of the task in it."""
    return line.part, [task.name for task in PARTS[line.part]].index(line.task)


def read_record() -> list[Line]:
    """Return the lines that are kept with the project."""
    if not RECORD.is_file():
        return []
    return [Line(**json.loads(line)) for line in RECORD.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
