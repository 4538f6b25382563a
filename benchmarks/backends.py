"""Texts a second of every backend, beside the fastest ways that others have, in turns, and their Spearman.

Each way runs in a process of its own, on the first processors only. Texts are of three lengths, encoded one by one and
all together. Median and range over the rounds are printed, for each processor by itself: results are keyed by the
processor's name and its instruction sets. What is in the file of results is not measured again.

python benchmarks/backends.py --model default --data stsb.test.tsv.gz --folder /tmp/backends
python benchmarks/backends.py ... --systems "samesense openvino-int8,ctranslate2 int8" --lengths 13 --rounds 3
python benchmarks/backends.py ... --python "sentence-transformers openvino=/tmp/intel/bin/python"
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from engines import SYSTEMS

RESULTS = Path(__file__).parent / "results" / "backends.jsonl"
INSTRUCTIONS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
BASELINE = "sentence-transformers torch"

TEXTS = {("13", "one"): 256, ("13", "many"): 2048, ("126", "one"): 64, ("126", "many"): 256}
TEXTS |= {("250", "one"): 32, ("250", "many"): 128}
"""Number of texts of a measurement, by mean length in tokens and by batch."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", default=None, help="file of labelled pairs [the shipped sample]")
    parser.add_argument("--folder", type=Path, required=True, help="for the exported model, kept between runs")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--systems", type=words, default=[*SYSTEMS])
    parser.add_argument("--lengths", type=words, default=["13", "126", "250"])
    parser.add_argument("--batches", type=words, default=["one", "many"])
    parser.add_argument("--threads", type=words, default=["1", "2"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=float, default=1.0, help="times the number of texts; below 1 to try the script")
    parser.add_argument("--python", action="append", default=[], help="SYSTEM=PATH: another Python for one system")
    args = parser.parse_args()
    unknown = [name for name in args.systems if name not in SYSTEMS]
    if unknown:
        parser.error(f"--systems are of {', '.join(SYSTEMS)}; received {', '.join(unknown)}")
    return args


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def processor() -> dict[str, Any]:
    """Return the name and the instruction sets of this processor, and its cores."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    flags = set(fields.get("flags", "").split())
    return {
        "name": fields.get("model name", "unknown"),
        "family": f"{fields.get('cpu family', '?')}/{fields.get('model', '?')}",
        "instructions": [name for name in INSTRUCTIONS if name in flags],
        "cores": os.cpu_count(),
    }


def prepare(args: argparse.Namespace) -> None:
    """Export the model, and write the texts of each length and the labelled pairs."""
    import samesense
    from samesense.data import read_pairs, sample_path

    data = read_pairs(args.data or sample_path("train"))
    exported = args.folder / "exported"
    if not exported.exists():
        samesense.export(
            args.model, output=exported, int8=True, openvino_int8=True, data=args.data or sample_path("train")
        )
    sentences = list(dict.fromkeys([*data.sentences1, *data.sentences2]))
    pairs = {"left": list(data.sentences1), "right": list(data.sentences2), "labels": [float(x) for x in data.labels]}
    if args.size < 1:
        most = max(20, int(len(data) * args.size))
        pairs = {name: column[:most] for name, column in pairs.items()}
    texts = {"13": sentences} | {length: joined(exported, sentences, int(length)) for length in ("126", "250")}
    content = {"texts": texts, "pairs": pairs}
    (args.folder / "texts.json").write_text(json.dumps(content), encoding="utf-8")


def joined(folder: Path, sentences: list[str], tokens: int) -> list[str]:
    """Return distinct texts of consecutive sentences, of 0.7 to 1.3 times the mean length, in turn."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    lengths = [len(entry.ids) for entry in tokenizer.encode_batch(sentences, add_special_tokens=False)]
    texts = []
    start = 0
    shares = (0.7, 0.85, 1.0, 1.15, 1.3)
    for number in range(256):
        target = tokens * shares[number % len(shares)]
        text: list[str] = []
        count = 0
        while count < target:
            text.append(sentences[start % len(sentences)])
            count += lengths[start % len(sentences)]
            start += 1
        texts.append(" ".join(text))
    return texts


class Worker:
    """The process of an engine, which sleeps until it is asked."""

    def __init__(self, name: str, args: argparse.Namespace, threads: int, python: str) -> None:
        number = str(threads)
        environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), number)
        environment |= {
            "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false",
            "HF_HUB_OFFLINE": "1",
            "CI": "true",  # OpenVINO then reports nothing
            "ORT_DISABLE_TELEMETRY": "1",
        }
        cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:threads]))
        script = Path(__file__).with_name("engines.py")
        self.process = subprocess.Popen(
            ["taskset", "--cpu-list", cores, python, str(script), name, str(args.folder), number, args.model],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._requests: Any = self.process.stdin
        self._answers: Any = self.process.stdout
        self.first = self._read()

    def ask(self, **request: Any) -> dict[str, Any]:
        try:
            self._requests.write(json.dumps(request) + "\n")
            self._requests.flush()
        except BrokenPipeError:
            return {"error": "its process ended"}
        return self._read()

    def _read(self) -> dict[str, Any]:
        line = self._answers.readline()
        return json.loads(line) if line else {"error": f"its process ended, with {self.process.wait()}"}

    def close(self) -> None:
        self._requests.close()
        self.process.wait()


KEYS = ("processor", "model", "system", "threads", "length", "batch", "texts")
"""What tells two measurements apart."""


def cell_key(line: dict[str, Any]) -> tuple[str, ...]:
    return tuple(json.dumps(line[name]) for name in KEYS)


def read_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run(args: argparse.Namespace, threads: int) -> None:
    """Measure what is missing with this number of threads, and add it to the file of results."""
    pythons = dict(entry.rsplit("=", 1) for entry in args.python)
    done = {cell_key(line) for line in read_lines(args.output)}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    common = {"processor": processor(), "model": Path(args.model).name, "threads": threads, "commit": commit}
    cells = []
    for length in args.lengths:
        for batch in args.batches:
            texts = max(4, int(TEXTS[length, batch] * args.size))
            cells.append(common | {"length": length, "batch": batch, "texts": texts})
    missing = {name: [cell for cell in cells if cell_key(cell | {"system": name}) not in done] for name in args.systems}
    workers: dict[str, Worker] = {}
    for name in args.systems:
        if not missing[name]:
            continue
        worker = Worker(name, args, threads, pythons.get(name, sys.executable))
        if "error" in worker.first:
            print(f"{name}: not run: {worker.first['error']}")
            continue
        workers[name] = worker
    spearman = {name: worker.ask(do="spearman") for name, worker in workers.items()}
    for name in [name for name, reply in spearman.items() if "error" in reply]:
        print(f"{name}: not run: {spearman[name]['error']}")
        del workers[name]
    for cell in cells:
        asked = {name: worker for name, worker in workers.items() if cell in missing[name]}
        lines = measure(asked, cell, args.rounds)
        args.output.parent.mkdir(parents=True, exist_ok=True)
        with args.output.open("a", encoding="utf-8") as out:
            for name, line in lines.items():
                line |= {"system": name, "versions": workers[name].first["versions"], **spearman[name]}
                out.write(json.dumps(line) + "\n")
    for worker in workers.values():
        worker.close()


def measure(workers: dict[str, Worker], cell: dict[str, Any], rounds: int) -> dict[str, dict[str, Any]]:
    """Return the line of each system: batch size, and seconds of every round, the systems in turns."""
    request = {"length": cell["length"], "texts": cell["texts"]}
    tuned: dict[str, dict[str, Any]] = {}
    for name, worker in workers.items():
        tuned[name] = worker.ask(do="tune", **request) if cell["batch"] == "many" else {"batch": 1}
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    for attempt in range(rounds + 1):
        for name, worker in workers.items():
            reply = worker.ask(do="time", batch=cell["batch"], **request)
            if "error" in reply:
                print(f"{name}: {reply['error']}")
            elif attempt:  # the first round warms up
                seconds[name].append(reply["seconds"])
    return {
        name: cell | {"seconds": [round(value, 5) for value in values], "batch_size": tuned[name]["batch"]}
        for name, values in seconds.items()
        if len(values) == rounds
    }


def tables(lines: list[dict[str, Any]]) -> str:
    """Return a table of texts a second for each processor, model and number of threads; the newest figures count."""
    newest = {cell_key(line): line for line in lines}
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for line in newest.values():
        groups.setdefault((json.dumps(line["processor"]), line["model"], line["threads"]), []).append(line)
    return "\n\n".join(
        _table(json.loads(key), model, threads, group) for (key, model, threads), group in groups.items()
    )


def _table(machine: dict[str, Any], model: str, threads: int, lines: list[dict[str, Any]]) -> str:
    columns = sorted({(int(line["length"]), line["batch"]) for line in lines})
    systems = list(dict.fromkeys(line["system"] for line in lines))
    cells = {(line["system"], int(line["length"]), line["batch"]): line for line in lines}
    cores = "1 thread" if threads == 1 else f"{threads} threads"
    head = f"**{model}, {cores}** on {machine['name']} ({', '.join(machine['instructions'])}); texts a second"
    titles = [f"{length} tokens, {'one by one' if batch == 'one' else 'together'}" for length, batch in columns]
    rows = [f"| | {' | '.join(titles)} | Spearman |", f"|---|{'---:|' * (len(columns) + 1)}"]
    order = sorted(systems, key=lambda name: -max(speed(line) for line in lines if line["system"] == name))
    for name in order:
        figures = [_figure(cells.get((name, *column))) for column in columns]
        quality = next(line["spearman"] for line in lines if line["system"] == name)
        rows.append(f"| {name} | {' | '.join(figures)} | {quality:.2f} |")
    return f"{head}\n\n" + "\n".join(rows)


def speed(line: dict[str, Any]) -> float:
    return line["texts"] / statistics.median(line["seconds"])


def _figure(line: dict[str, Any] | None) -> str:
    """Return median and range of texts a second."""
    if line is None:
        return ""
    low = line["texts"] / max(line["seconds"])
    high = line["texts"] / min(line["seconds"])
    return f"{speed(line):.0f} ({low:.0f} to {high:.0f})"


def main() -> None:
    args = arguments()
    args.folder.mkdir(parents=True, exist_ok=True)
    prepare(args)
    for threads in args.threads:
        run(args, int(threads))
    print(tables(read_lines(args.output)))


if __name__ == "__main__":
    main()
