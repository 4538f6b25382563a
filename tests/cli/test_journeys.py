"""What people come for, from their files to what they use: each journey by commands alone, with a model of no size."""

import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import WORDS
from tests.context.worlds import some_documents
from tests.recipes.test_context import HARVEST, ORIGIN

pytestmark = pytest.mark.slow


@pytest.fixture
def go(run, tmp_path, monkeypatch):
    """Runs a command in an empty folder, and is done with it only if it ends well: (standard output, error)."""
    monkeypatch.chdir(tmp_path)

    def call(line, *more, code=0):
        ended, out, err = run(*line.split(), *more)
        assert ended == code, err
        return out, err

    return call


def questions(count, seed=0):
    """Pairs of questions; what is asked twice is asked in nearly the same words."""
    source = random.Random(seed)
    for number in range(count):
        words = source.choices(WORDS, k=6)
        alike = number % 3 == 0
        other = [*words[1:], source.choice(WORDS)] if alike else source.choices(WORDS, k=6)
        yield " ".join(words), " ".join(other), alike


def write(name, lines):
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_csv(name, rows):
    with Path(name).open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)


def line_of(text, begin):
    """The only line that begins so."""
    (line,) = [line for line in text.splitlines() if line.startswith(begin)]
    return line


def test_duplicates_at_a_desk(go, tiny_desk):
    """A table of one's own, with columns of one's own and two bad rows, becomes a threshold of known precision."""
    rows = [(n, first, second, "yes" if alike else "No") for n, (first, second, alike) in enumerate(questions(520))]
    head = ("ticket", "asked", "asked before", "is_duplicate")
    write_csv(
        "tickets.csv", [head, *rows[:150], (150, "", "a cat", "yes"), (151, "a cat", "a dog", "perhaps"), *rows[150:]]
    )
    write_csv(
        "later.csv", [head, *((n, a, b, "Y" if alike else "n") for n, (a, b, alike) in enumerate(questions(60, 1)))]
    )
    columns = ("--columns", "asked,asked before,is_duplicate")
    _, err = go("doctor tickets.csv", *columns, code=2)
    assert "row 152" in err and "row 153" in err
    _, err = go(f"train tickets.csv --model {tiny_desk} --output run --max-steps 4", *columns, code=2)
    assert "--drop-bad-rows" in err
    _, err = go(
        f"train tickets.csv --drop-bad-rows --test later.csv --model {tiny_desk} --output run --max-steps 4", *columns
    )
    assert "leak" not in err and line_of(err, "verdict: ")
    card = Path("run/model/README.md").read_text(encoding="utf-8")
    assert rows[0][1] not in card and "tickets.csv" in card
    out, _ = go("calibrate run --min-precision 0.5")
    assert "threshold" in out and "precision" in out and "recall" in out
    write("inbox.txt", ["a cat eats", "a cat eats", "snow in the city at noon"])
    out, _ = go("mine inbox.txt --model run --threshold calibrated --json")
    found = json.loads(out.splitlines()[0])
    assert (found["text1"], found["text2"]) == ("a cat eats", "a cat eats")
    out, _ = go("similarity run --calibrated", "a cat eats", "a cat eats")
    assert 0 <= float(out.split()[0]) <= 1


def test_inference_data_and_a_page(go, tiny_trunk):
    """NLI in JSON lines, with labels as words, trains by anchors; a page says which model is the better one."""
    labels, source = ("entailment", "neutral", "contradiction"), random.Random(0)
    texts = [" ".join(source.choices(WORDS, k=5)) for _ in range(100)]
    rows = (
        {"premise": texts[90 + number // 9], "hypothesis": texts[number], "label": labels[number % 3]}
        for number in range(90)
    )
    write("nli.jsonl", map(json.dumps, rows))
    scored = (f"{a}\t{b}\t{5 if alike else source.randint(0, 2)}" for a, b, alike in questions(40))
    write("scored.tsv", ["sentence1\tsentence2\tscore", *scored])
    out, _ = go("doctor nli.jsonl scored.tsv")
    assert "entailment" in out
    how = f"--model {tiny_trunk} --output run --max-steps 3 --batch-size 4"
    go(f"train nli.jsonl --method supmpn --dev scored.tsv {how}")
    go(f"compare start={tiny_trunk} trained=run --data scored.tsv --output page.html --no-speed")
    page = Path("page.html").read_text(encoding="utf-8")
    assert 0 < page.index("trained") < page.index("<svg") and "scored.tsv" in page


def test_bare_sentences(go, tiny_trunk, sentences):
    """Texts without a label train, in a run that says that its gain is not known."""
    write("texts.txt", sentences)
    out, _ = go("doctor texts.txt")
    assert "texts" in out
    out, err = go(f"train texts.txt --model {tiny_trunk} --output run --max-steps 2 --batch-size 8 --dry-run")
    assert line_of(err, "steps: 2 of 8 examples") and line_of(err, "estimate of the time")
    _, err = go(f"train texts.txt --model {tiny_trunk} --output run --max-steps 2 --batch-size 8")
    assert line_of(err, "no verdict: ").endswith("Give --test FILE")
    go("encode run texts.txt --output vectors.npy")
    assert np.load("vectors.npy").shape == (len(sentences), 32)


def test_documents(go, tiny_trunk):
    """Running documents become an encoder, by way of their contexts."""
    write("documents.jsonl", (json.dumps({"sentences": part[0]}) for part in some_documents(12)))
    out, _ = go("doctor documents.jsonl")
    assert "documents" in out
    flags = [
        str(word)
        for part, settings in (("origin", ORIGIN), ("harvest", HARVEST))
        for name, value in settings.items()
        for word in (f"--{part}.{name.replace('_', '-')}", value[0] if isinstance(value, list) else value)
    ]
    how = f"--method context --origin-config scaled --model {tiny_trunk} --max-steps 2 --batch-size 4 --output made"
    _, err = go(f"train documents.jsonl {how}", *flags, code=2)
    assert "held_out_share" in err and not Path("made").exists()
    go(f"train documents.jsonl {how} --held-out-share 0.2", *flags)
    assert float(go("similarity made", "a cat eats", "a dog eats")[0].split()[0]) <= 1


def test_put_to_work(go, tiny_desk):
    """A trained model is exported with its threshold, indexed and searched; an unfinished run is no model."""
    rows = [(a, b, int(alike)) for a, b, alike in questions(520)]
    write_csv("pairs.csv", [("sentence1", "sentence2", "label"), *rows])
    go(f"train pairs.csv --model {tiny_desk} --output run --max-steps 2")
    go("calibrate run")
    _, err = go("export run --output small --int8 --data pairs.csv")
    assert "calibrat" in err
    write_csv(
        "faq.csv",
        [("id", "question", "team"), *((n, a, "red" if n % 2 else "blue") for n, (a, _, _) in enumerate(rows))],
    )
    _, err = go("index build faq faq.csv --model small --columns question")
    assert line_of(err, "time:") and line_of(err, "next: samesense index query")
    out, _ = go("index query faq --json --top 1 --where", "team = 'red'", rows[1][0])
    assert json.loads(out.splitlines()[0])["text"] == rows[1][0]
    go("encode small faq.csv --columns question --output faq.parquet")
    go("similarity small --threshold calibrated", rows[0][0], rows[0][1])
