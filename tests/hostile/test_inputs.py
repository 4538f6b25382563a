"""Generated inputs, most of them broken, through every command: success or a message, never a traceback.

One process, one seed per input, fast models. No input may take long, and memory may not grow.
"""

import gzip
import json
import random
import re
import time
import traceback
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command import run_command
from tests.conftest import WORDS
from tests.hostile.conftest import figures, rounds

LONGEST = 20.0
"""Limit in seconds of one input, on a slow machine too."""

MOST_MEMORY = 600_000
"""Kilobytes by which the process may grow over all inputs."""

ODD = (
    "",
    " ",
    "\t",
    "nan",
    "inf",
    "-1e400",
    "1e999",
    "0x10",
    "١",
    "1_000",
    "1,5",
    "-0",
    "None",
    "NULL",
    "true",
    "[]",
    "\0",
    "\ufeff",
    "\u2028",
    "\x85",
    "\x1b[31m",
    '"',
    "''",
    '"a',
    'a"b',
    "\\",
    "=1+1",
    "9" * 400,
    "a" * 9000,
    "é",
    "e\u0301",
    "\U0001f600",
    "\u202e",
    "../../etc/passwd",
    "%s%n",
    "${HOME}",
    "{0}",
    "<script>",
    "entailment",
    "0.5",
)
NAMES = (
    "sentence1",
    "sentence2",
    "score",
    "label",
    "text",
    "id",
    "premise",
    "hypothesis",
    "anchor",
    "positive",
    "negative",
    "",
    " score ",
    "Sentence1",
    "sentence1",
    "\0",
    "é",
    "x" * 300,
)


def text(draw):
    return " ".join(draw.choices(WORDS, k=draw.randint(1, 7)))


def cell(draw, odd=0.15):
    if draw.random() < odd:
        return draw.choice(ODD)
    return text(draw) if draw.random() < 0.7 else f"{draw.uniform(0, 5):.2f}"


def value(draw, depth=0):
    """A value of JSON."""
    kind = draw.randrange(9 if depth < 3 else 6)
    if kind < 6:
        return (text(draw), cell(draw, 1), draw.randint(-5, 5), draw.uniform(-9, 9), None, draw.random() < 0.5)[kind]
    if kind < 8:
        return [value(draw, depth + 1) for _ in range(draw.randrange(4))]
    return {draw.choice(NAMES): value(draw, depth + 1) for _ in range(draw.randrange(4))}


def rows(draw):
    """Rows of a usual table, some of them malformed."""
    count = draw.randrange(12)
    width = draw.randint(1, 5)
    lines = [["sentence1", "sentence2", "score"] if draw.random() < 0.6 else draw.choices(NAMES, k=width)]
    for _ in range(count):
        good = [text(draw), text(draw), str(draw.randint(0, 5))]
        lines.append(good if draw.random() < 0.7 else [cell(draw) for _ in range(draw.randint(0, 5))])
    return lines


def spoilt(draw, content):
    """Bytes, sometimes in another encoding, cut, or with noise among them."""
    kind = draw.randrange(12)
    if kind == 0:
        return content.decode("utf-8", "replace").encode(
            draw.choice(["utf-16", "utf-8-sig", "utf-32", "latin-1", "cp1252"]), "replace"
        )
    if kind == 1:
        return content[: draw.randrange(len(content) + 1)]
    if kind == 2:
        offset = draw.randrange(len(content) + 1)
        return content[:offset] + draw.randbytes(draw.randint(1, 20)) + content[offset:]
    if kind == 3:
        return content.replace(b"\n", draw.choice([b"\r", b"\r\n", b"\n\n", b"\0\n", b"\x0b"]))
    if kind == 4:
        return draw.choice(
            [b"", b"\n", b"\xff\xfe", b"\x1f\x8b", b"PAR1", b"\0" * 100, b"PK\x03\x04", b"[", b"{" * 3000]
        )
    return content


def delimited(draw, sign):
    return "\n".join(sign.join(line) for line in rows(draw)).encode("utf-8", "surrogatepass")


def json_lines(draw):
    lines = []
    for _ in range(draw.randrange(12)):
        good = {"sentence1": text(draw), "sentence2": text(draw), "score": draw.randint(0, 5)}
        lines.append(json.dumps(good if draw.random() < 0.6 else value(draw), ensure_ascii=draw.random() < 0.5))
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def parquet(draw):
    """A table of columns that are of any type."""
    count = draw.randrange(8)
    kinds = (
        lambda: pa.array([text(draw) for _ in range(count)]),
        lambda: pa.array([draw.choice([None, text(draw)]) for _ in range(count)], pa.string()),
        lambda: pa.array([draw.choice([float("nan"), float("inf"), 1.0, 4.0]) for _ in range(count)]),
        lambda: pa.array([draw.randint(0, 5) for _ in range(count)], pa.int8()),
        lambda: pa.array([[draw.random()] * draw.randrange(3) for _ in range(count)]),
        lambda: pa.array([{"a": 1}] * count),
        lambda: pa.array([b"\xff\xfe"] * count),
        lambda: pa.array([None] * count),
        lambda: pa.array([text(draw) for _ in range(count)]).dictionary_encode(),
        lambda: pa.array([draw.randint(0, 10**9) for _ in range(count)], pa.timestamp("ns")),
        lambda: pa.array([draw.random() < 0.5 for _ in range(count)]),
    )
    columns = (
        ("sentence1", "sentence2", "score") if draw.random() < 0.7 else draw.sample(NAMES[:12], draw.randint(1, 4))
    )
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: draw.choice(kinds)() for name in columns}), sink)
    return sink.getvalue().to_pybytes()


def vectors(draw):
    """Word vectors as text."""
    width = draw.randint(1, 4)
    lines = [f"{word} {' '.join(f'{draw.gauss(0, 1):.2f}' for _ in range(width))}" for word in draw.sample(WORDS, 20)]
    for _ in range(draw.randrange(3)):
        lines.insert(
            draw.randrange(21), draw.choice([f"{cell(draw, 1)} 1 2", "word", "20 4", "", "a nan nan", "b 1e39 0"])
        )
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def toml(draw):
    """A file of settings, or of a sweep."""
    good = ['data = [{name = "d", train = "good.tsv"}]', "seeds = [1]", "[base]", "[[variants]]", 'name = "a"']
    names = ("epochs", "learning_rate", "model", "loss", "seed", cell(draw, 1))
    lines = [f"{draw.choice(names)} = {json.dumps(value(draw))}" for _ in range(4)]
    return "\n".join(draw.sample(good + lines, draw.randint(1, 9))).encode("utf-8", "surrogatepass")


FILES = {
    "tsv": lambda draw: delimited(draw, "\t"),
    "csv": lambda draw: delimited(draw, ","),
    "jsonl": json_lines,
    "txt": lambda draw: "\n".join(cell(draw, 0.05) for _ in range(draw.randrange(9))).encode("utf-8", "surrogatepass"),
    "parquet": parquet,
    "vec": vectors,
    "toml": toml,
    "npz": lambda draw: draw.randbytes(draw.randrange(300)),
}
PAIRS = ("tsv", "csv", "jsonl", "parquet")
COMMANDS = {
    "encode MODEL FILE": ("txt",),
    "mine FILE --model MODEL --top NUMBER": ("txt",),
    "dedup FILE --model MODEL --threshold NUMBER --output out.csv --groups g.jsonl": ("txt", *PAIRS),
    "match FILE good.tsv --model MODEL --threshold NUMBER --target-columns sentence1": ("txt", *PAIRS),
    "index build C FILE --model MODEL --overwrite": ("txt", *PAIRS),
    "index add good FILE --upsert": ("txt", *PAIRS),
    "index query good TEXT --where CONDITION --top NUMBER": ("txt",),
    "index delete good --where CONDITION": ("txt",),
    "doctor FILE": ("txt", *PAIRS),
    "evaluate MODEL --data FILE --no-intervals": PAIRS,
    "evaluate MODEL --data FILE --no-intervals --columns COLUMNS --label-range NUMBER NUMBER": PAIRS,
    "evaluate MODEL --data good.tsv --no-intervals --output FILE": ("jsonl",),
    "compare MODEL --data FILE --output page.html --suite SUITE": PAIRS,
    "calibrate MODEL --data FILE --output c.json": PAIRS,
    "augment FILE": PAIRS,
    "train FILE --model no/such-model --output run": ("txt", *PAIRS),
    "train good.tsv --config FILE --model no/such-model --output run": ("toml",),
    "sweep FILE --output sweep --dry-run": ("toml",),
    "similarity words:FILE TEXT TEXT": ("vec", "npz"),
    "similarity vectors:FILE TEXT TEXT": ("npz", "jsonl", "parquet"),
    "similarity TEXT TEXT TEXT": ("txt",),
}
NAME_THE_FILE = ("encode", "index build", "index add", "doctor", "evaluate", "sweep")
"""Commands whose errors are about the generated file, and name it."""

NUMBERS = ("1", "3", "0.5", "0", "-1", "1e9", "nan", "inf", "-inf", "9" * 20, "x", "1e-320")
CONDITIONS = tuple("topic n = >= < 'a' 'a 4 1e999 AND OR NOT ( ) IN LIKE IS NULL , ; -- \0 DROP".split(" "))


def argument(word, file, draw):
    """One word of a command."""
    makers = {
        "FILE": lambda: file,
        "MODEL": lambda: "words:good.vec",
        "TEXT": lambda: cell(draw),
        "NUMBER": lambda: draw.choice(NUMBERS),
        "COLUMNS": lambda: f"{draw.choice(NAMES)},{draw.choice(NAMES)},score",
        "SUITE": lambda: draw.choice(["sts", "geometry", "binary", "ranking"]),
        "CONDITION": lambda: draw.choice(
            ["n > 3", "(" * 2000, " ".join(draw.choices(CONDITIONS, k=draw.randint(1, 8)))]
        ),
    }
    return makers[word]() if word in makers else word.replace("FILE", file)


@pytest.fixture
def prepared(here, capsys):
    (here / "words.vec").rename(here / "good.vec")
    (here / "pairs.tsv").rename(here / "good.tsv")
    entries = "".join(
        json.dumps({"text": text(random.Random(number)), "topic": "ab"[number % 2], "n": number}) + "\n"
        for number in range(20)
    )
    (here / "entries.jsonl").write_text(entries)
    assert run_command(capsys, "index", "build", "good", "entries.jsonl", "--model", "words:good.vec")[0] == 0
    return here


def one_input(here, capsys, seed):
    """Run one input; return its outcome, and the problem if there is one."""
    draw = random.Random(seed)
    command, suffixes = draw.choice(list(COMMANDS.items()))
    suffix = draw.choice(suffixes)
    content = spoilt(draw, FILES[suffix](draw))
    file = here / f"input.{suffix}"
    if draw.random() < 0.1:
        file = here / f"input.{suffix}.gz"
        content = gzip.compress(content)[: draw.choice([None, None, -5])]
    file.write_bytes(content)
    started = time.monotonic()
    try:
        code, _, err = run_command(capsys, *(argument(word, file.name, draw) for word in command.split(" ")))
    except BaseException as error:
        inner = [frame for frame in traceback.extract_tb(error.__traceback__) if "/src/samesense/" in frame.filename]
        location = f"{inner[-1].filename.rpartition('/samesense/')[2]}:{inner[-1].lineno}" if inner else ""
        return "traceback", f"{command}: {type(error).__name__} at {location}: {error}"[:300]
    finally:
        file.unlink(missing_ok=True)
    if time.monotonic() - started > LONGEST:
        return "slow", f"{command}: {time.monotonic() - started:.0f} s"
    if code not in (0, 2) or (code == 2 and "samesense: error: " not in err):
        return "code", f"{command}: {code} {err[-300:]}"
    if code == 2 and command.startswith(NAME_THE_FILE) and not re.search(rf"{file.name}|See: |--", err):
        return "no file named", f"{command}: {err[-300:]}"
    return "done" if code == 0 else "refused", ""


@pytest.mark.posix
def test_every_input_ends_well(prepared, capsys):
    import resource  # not on Windows

    run_command(capsys, "similarity", "no/such-model", "a", "b")  # warm-up: imports the libraries before measuring
    outcomes = Counter()
    wrong = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(rounds(short=100, long=10_000)):
        outcome, reason = one_input(prepared, capsys, seed)
        outcomes[outcome] += 1
        if reason:
            wrong.append(f"{seed} {outcome}: {reason}")
    figures("inputs", {**outcomes, "grown": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before})
    assert not wrong, f"{len(wrong)} of {sum(outcomes.values())}:\n" + "\n".join(wrong[:200])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY
