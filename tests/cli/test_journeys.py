"""What people come for, from their files to what they use: each journey by commands alone, with a model of no size.

The tutorials are followed as they stand: their commands, in their order, on data of the same form.
"""

import csv
import json
import os
import random
import re
import shlex
import subprocess
import sys
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

    def call(line, *arguments, code=0):
        ended, out, err = run(*line.split(), *arguments)
        assert ended == code, err
        return out, err

    return call


def questions(count, seed=0):
    """Pairs of questions; what is asked twice is asked in nearly the same words."""
    source = random.Random(seed)
    for number in range(count):
        words = source.choices(WORDS, k=6)
        alike = number % 3 == 0
        second = [*words[1:], source.choice(WORDS)] if alike else source.choices(WORDS, k=6)
        yield " ".join(words), " ".join(second), alike


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
    pair = json.loads(out.splitlines()[0])
    assert (pair["text1"], pair["text2"]) == ("a cat eats", "a cat eats")
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
    options = f"--model {tiny_trunk} --output run --max-steps 3 --batch-size 4"
    go(f"train nli.jsonl --method supmpn --dev scored.tsv {options}")
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


@pytest.mark.usefixtures("smallest_generator")
def test_documents(go, tiny_trunk):
    """Running documents become an encoder, by way of their contexts."""
    write("documents.jsonl", (json.dumps({"sentences": document[0]}) for document in some_documents(12)))
    out, _ = go("doctor documents.jsonl")
    assert "documents" in out
    flags = [
        str(word)
        for section, settings in (("origin", ORIGIN), ("harvest", HARVEST))
        for name, value in settings.items()
        for word in (f"--{section}.{name.replace('_', '-')}", value[0] if isinstance(value, list) else value)
    ]
    options = f"--method context --origin-config scaled --model {tiny_trunk} --max-steps 2 --batch-size 4 --output made"
    _, err = go(f"train documents.jsonl {options}", *flags, code=2)
    assert "held_out_share" in err and not Path("made").exists()
    go(f"train documents.jsonl {options} --held-out-share 0.2", *flags)
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


TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL_SIGNS = {"|", "<", ">", "&&", ";"}


def blocks(page, language):
    """The blocks of a tutorial in one language."""
    text = (TUTORIALS / f"{page}.md").read_text(encoding="utf-8")
    return [code for name, code in FENCE.findall(text) if name == language]


def shell_statements(page):
    """The statements of a tutorial, in order: lines after ``$`` in its consoles, and bash blocks.

    A bash block with a script in it is one statement; in others each line is one.
    """
    text = (TUTORIALS / f"{page}.md").read_text(encoding="utf-8")
    for name, code in FENCE.findall(text):
        lines = code.replace("\\\n", " ").splitlines()
        if name == "console":
            yield from (line.removeprefix("$ ") for line in lines if line.startswith("$ "))
        elif name == "bash" and "<<" in code:
            yield code
        elif name == "bash":
            yield from lines


@pytest.fixture
def follow(go, tiny_desk, monkeypatch):
    """Follows a tutorial with the tiny model as ``default``: {statement: (standard output, error)}."""
    monkeypatch.setattr("samesense.encoder.names.default_folder", lambda: tiny_desk)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))

    def call(page, *, instead=(), without=()):
        """``instead`` are texts in the place of others, ``without`` the beginnings of statements that are left out."""
        answers = {}
        for statement in shell_statements(page):
            if statement.startswith(tuple(without)):
                continue
            changed = statement
            for text, replacement in instead:
                changed = changed.replace(text, replacement)
            words = shlex.split(changed, comments=True)
            if words[:1] == ["samesense"] and not SHELL_SIGNS & set(words):
                answers[statement] = go("", *words[1:])
            else:
                done = subprocess.run(["sh", "-c", changed], capture_output=True, text=True)
                assert done.returncode == 0, f"{changed}\n{done.stderr}"
                answers[statement] = done.stdout, done.stderr
        return answers

    return call


def test_a_spreadsheet_of_labelled_pairs(follow):
    """400 pairs with labels in words become a verdict, a threshold and a scored list, by four plain commands."""
    exec(blocks("spreadsheet", "python")[0], {"__name__": "page"})
    answers = follow("spreadsheet", instead=[("--min-precision 0.95", "--min-precision 0.5")])
    train, calibrate, score = (answers[line] for line in list(answers)[1:])
    assert "out of fold" in line_of(train[1], "verdict: ")
    assert "precision" in calibrate[0] and "trained without it" in calibrate[1]
    new, scored = (
        Path(name).read_text(encoding="utf-8-sig").splitlines() for name in ("Neue Liste.csv", "Bewertet.csv")
    )
    assert [line[: len(before)] for line, before in zip(scored, new, strict=True)] == new
    assert scored[0].endswith(";score;probability;same") and re.search(r";-?0,\d+;0,\d+;(yes|no)$", scored[1])
    assert "row" in score[1]
    assert Path("Bewertet.csv").read_bytes().startswith(b"\xef\xbb\xbf")


def test_losses_over_seeds_to_a_table(follow):
    """Three losses and several seeds become a LaTeX table and figures; an unfinished sweep says what is missing."""
    Path("data").mkdir()
    for split, count in {"train": 80, "dev": 60, "test": 60}.items():
        source = random.Random(split)
        rows = (
            f"{source.randint(3, 5) if alike else source.randint(0, 2)}\t{a}\t{b}" for a, b, alike in questions(count)
        )
        write(f"data/stsb.{split}.tsv", ["score\tsentence1\tsentence2", *rows])
    (settings,) = blocks("reproduce-a-paper", "toml")
    for value, less in (
        ("1, 2, 3, 4, 5", "1, 2"),
        ("30", "2"),
        ("eval_steps = 15", "eval_steps = 1"),
        ("layers = 3", "layers = 1"),
    ):
        settings = settings.replace(value, less)
    write("losses.toml", [settings])
    # in this process: each of two others would import torch for every run
    one_process = [("samesense sweep losses.toml", "samesense sweep losses.toml --jobs 1")]
    left_out = ["mkdir", "python", "samesense sweep reproduce"]
    answers = follow("reproduce-a-paper", instead=one_process, without=left_out)
    partial, whole = (
        next(out for line, (out, _) in answers.items() if flag in line) for flag in ("--max-runs", "--figures")
    )
    assert "not run" in partial and "Partial: 3 of 7 runs finished" in partial
    assert "Partial" not in whole and "±" in whole
    assert r"\pm" in Path("table.tex").read_text(encoding="utf-8")
    assert list(Path("figures").glob("seeds-*.pdf"))


def test_documents_to_a_search(follow):
    """Documents without labels become models, a page that compares them, and a search of passages."""
    source = random.Random(0)
    documents = []
    for number in range(120):
        themes = [source.choices(WORDS, k=6) for _ in range(3)]
        sections = [
            {
                "title": f"Part {theme_number}",
                "sentences": [" ".join(source.choices(theme, k=5)) + "." for _ in range(6)],
            }
            for theme_number, theme in enumerate(themes)
        ]
        documents.append({"title": f"Document {number}", "sections": sections})
    write("documents.jsonl", map(json.dumps, documents))
    answers = follow("documents-only")
    query = next(out for line, (out, _) in answers.items() if line.startswith("samesense index query"))
    assert re.search(r"docs/Document \d+\.md, line \d+", query)
    assert Path("report.html").is_file()


@pytest.mark.long
def test_four_models_to_a_choice(follow, measured, tmp_path):
    """Labelled pairs and four models become a recommendation with its interval, cost and a page."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from tests.conftest import random_bert

    rows = [f"{int(alike)}\t{first}\t{second}" for first, second, alike in questions(120)]
    write("pairs.tsv", ["score\tsentence1\tsentence2", *rows])
    write("sixty.tsv", ["score\tsentence1\tsentence2", *rows[:60]])
    paraphrase, bge = (random_bert(tmp_path / name, WORDS[:count]) for name, count in (("paraphrase", 30), ("bge", 50)))
    tokenizer = SentenceTransformer(str(bge), device="cpu").tokenizer
    static = StaticEmbedding(tokenizer._tokenizer, embedding_dim=8)
    SentenceTransformer(modules=[static], device="cpu").save("models/static")
    answers = follow(
        "which-model",
        instead=[
            ("sentence-transformers/paraphrase-MiniLM-L3-v2", str(paraphrase)),
            ("BAAI/bge-small-en-v1.5", str(bge)),
        ],
        without=["python"],
    )
    four, answer_of_two = (out for out, _ in answers.values())
    assert [line.split(" | ")[0] for line in four.splitlines() if line.startswith("| ")][2:] == [
        "| default",
        "| paraphrase",
        "| bge",
        "| static",
    ]
    recommendation = line_of(four, "Take ")
    for figure in ("95 % interval", "ms a text", "MB of memory", "MB on disk"):
        assert figure in recommendation
    assert re.search("these are 60|No data of this size would show a difference", answer_of_two)
    for name in ("report.html", "sixty.html"):
        assert "Take " in Path(name).read_text(encoding="utf-8")
