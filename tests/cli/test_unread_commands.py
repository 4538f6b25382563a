"""Every command that is given a model and texts says what the model does not read of them: once, of the texts given."""

import inspect
import itertools
import json
import random
import re
from contextlib import suppress
from functools import partial

import pytest

import samesense
from samesense.cli.main import COMMANDS as ALL
from samesense.cli.main import main
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.saving.storage import save
from samesense.execution.unread import logs_unread
from samesense.recipes.race import clock, entrants
from samesense.recipes.race import run as race
from tests.command import run_command
from tests.conftest import WORDS
from tests.context.worlds import small_worded_causal, some_documents
from tests.inference.exported import copy_graph
from tests.messages import listen
from tests.recipes.test_origin import SMALL as RETRIEVED
from tests.recipes.word_world import SMALL

pytestmark = pytest.mark.usefixtures("smallest_generator")

LONG = "the cat sleeps " * 60  # 180 words; the encoders read 64 tokens, the language model 128
LONG_TEXTS = [f"{LONG}{word}" for word in ("dog", "bird", "man")]
UNKNOWN = "\N{POUTING FACE}"
CUT = re.compile(r"(\d+) of (\d+) texts are longer than the (\d+) tokens that the model reads.*?, such as .*?'the cat")
HARVEST = {"pairs": 600, "min_words": 1, "max_words": 999}
SPARK = ["--max-steps", "4", "--precision", "float32"]

ELSEWHERE = {
    "quickstart": "trains on texts of its own, which are short",
    "pretrain": "cuts documents into pieces that the model reads whole",
    "push": "reads no texts",
    "doctor": "has no model",
    "augment": "has no encoder; its own test is in tests/data",
    "serve": "goes on until it is stopped; its test is in tests/encoder/test_unread.py",
}
"""Commands that are not in the table, and why."""

TABLE = {
    "similarity": ("similarity", "M", LONG, "a cat"),
    "similarity by a cross-encoder": ("similarity", "X", LONG, "a cat"),
    "similarity by an Origin": ("similarity", "origin:O", LONG, "a cat"),
    "score": ("score", "pairs.tsv", "--model", "M", "--prefix", "new_", "--output", "scored.tsv"),
    "score in another format": (
        "score",
        "pairs.tsv",
        "--model",
        "X",
        "--prefix",
        "new_",
        "--output",
        "scored.jsonl",
    ),
    "explain": ("explain", "M", LONG, "a cat"),
    "explain by occlusion": ("explain", "M", LONG, "a cat", "--by", "occlusion"),
    "explain a cross-encoder": ("explain", "X", LONG, "a cat"),
    "explain an Origin": ("explain", "origin:O", LONG, "a cat"),
    "explain by sentences": ("explain", "M", LONG, "a cat", "--by", "sentences"),
    "encode": ("encode", "M", "texts.txt", "--output", "v.npy"),
    "encode by an Origin": ("encode", "origin:O", "texts.txt", "--output", "v.npy"),
    "encode shards": ("encode", "M", "texts.txt", "--shard-size", "3", "--workers", "1", "--output", "shards"),
    "encode shards in a process": ("encode", "M", "texts.txt", "--shard-size", "99", "--workers", "2", "--output", "s"),
    "mine": ("mine", "texts.txt", "--model", "M"),
    "dedup": ("dedup", "texts.txt", "--model", "M", "--output", "kept.txt"),
    "match": ("match", "texts.txt", "texts.txt", "--model", "M", "--output", "m.tsv"),
    "index": ("index", "build", "ix", "texts.txt", "--model", "M"),
    "index query": ("index", "query", "C", LONG),
    "rerank": ("rerank", "texts.txt", "--model", "M", "--cross", "X", "--query", "cat"),
    "mine-negatives": ("mine-negatives", "binary.tsv", "--model", "M", "--relative-margin", "none"),
    "label": ("label", "texts.txt", "--scorer", "X", "--model", "M", "--pairs", "9", "--output", "labels.tsv"),
    "label pairs at random": ("label", "pairs.tsv", "--scorer", "X", "--pairs-by", "random", "--output", "labels.tsv"),
    "evaluate": ("evaluate", "M", "--data", "pairs.tsv"),
    "evaluate a cross-encoder": ("evaluate", "X", "--data", "pairs.tsv"),
    "evaluate an Origin": ("evaluate", "origin:O", "--data", "pairs.tsv"),
    "compare": ("compare", "M", "X", "--data", "pairs.tsv", "--output", "page.html"),
    "calibrate": ("calibrate", "M", "--data", "pairs.tsv", "--output", "c.json"),
    "drift": ("drift", "M", "M", "--texts", "texts.txt"),
    "whiten": ("whiten", "M", "texts.txt", "--output", "white"),
    "export": ("export", "N", "--data", "pairs.tsv", "--output", "exported"),
    "distil": (
        "distil",
        "texts.txt",
        "--teacher",
        "M",
        "--student",
        "layers:1",
        "--output",
        "run",
        "--dev",
        "pairs.tsv",
        *SPARK,
    ),
    "train": ("train", "pairs.tsv", "--model", "M", "--dev", "none", "--test", "pairs.tsv", "--output", "run", *SPARK),
    "train a cross-encoder": (
        "train",
        "pairs.tsv",
        "--config",
        "cosent-cross",
        "--model",
        "T",
        "--dev",
        "none",
        "--output",
        "run",
        *SPARK,
    ),
    "train on yes and no": ("train", "binary.tsv", "--model", "M", "--dev", "none", "--output", "run", *SPARK),
    "train on texts": (
        "train",
        "texts.txt",
        "--method",
        "simcse",
        "--model",
        "M",
        "--dev",
        "none",
        "--output",
        "run",
        *SPARK,
    ),
    "train on sections": (
        "train",
        "sections.jsonl",
        "--method",
        "sections",
        "--model",
        "M",
        "--dev",
        "none",
        "--output",
        "run",
        *SPARK,
    ),
    "train on a harvest": (
        "train",
        "H",
        "--method",
        "surrogate",
        "--model",
        "M",
        "--dev",
        "none",
        "--output",
        "run",
        *SPARK,
    ),
    "sweep": ("sweep", "sweep.toml", "--output", "sweep", "--jobs", "1"),
    "sweep in a process": ("sweep", "one_seed.toml", "--output", "sweep", "--jobs", "2"),
    "race": ("race", "pairs.tsv", "--models", "M", "--no-at-hand", "--output", "race", "--budget", "30m"),
    "origin": (
        "origin",
        "sections.jsonl",
        "--output",
        "made",
        *(
            word
            for name, value in {**SMALL, "reference": 140}.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
        ),
        "--language-model",
        "L",
    ),
    "origin with retrieved contexts": (
        "origin",
        "sections.jsonl",
        "--output",
        "made",
        *(
            word
            for name, value in {**RETRIEVED, "max_tokens": 65}.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
        ),
    ),
    "harvest": (
        "harvest",
        "--origin",
        "O",
        "--pairs",
        "600",
        "--output",
        "h",
        "--min-words",
        "1",
        "--max-words",
        "999",
    ),
}
"""Commands; M is an encoder, X a cross-encoder, T a bare transformer, L a language model and O an Origin by it.

N is an encoder of one layer, whose export there is already. Shards and seeds are several in this process; one in a
process of its own shows that its figures come back.
"""

SLOW = (
    "sweep",
    "sweep in a process",
    "race",
    "origin",
    "origin with retrieved contexts",
    "harvest",
    "encode shards in a process",
    "compare",
    "distil",
    "export",
)


def test_every_command_is_in_the_table_or_has_its_reason():
    assert {words[0] for words in TABLE.values()} | set(ELSEWHERE) == set(ALL)
    assert not {words[0] for words in TABLE.values()} & set(ELSEWHERE)


def test_every_function_that_encodes_says_it():
    without = {"app", "disable_progress_bars", "doctor", "enable_progress_bars", "load", "open_index", "push", "read"}
    without |= {"read_vectors", "serve"}  # the server counts its requests
    for name in samesense.__all__:
        function = getattr(samesense, name)
        if inspect.isfunction(function) and name not in without:
            assert function.__code__ is logs_unread(function).__code__, name


@pytest.fixture(scope="module")
def world(tmp_path_factory, tiny_trunk, one_layer):
    """A folder with models and files in which three texts are long."""
    folder = tmp_path_factory.mktemp("unread")
    draw = random.Random(0)
    few = [" ".join(draw.choices(WORDS, k=draw.randint(2, 9))) for _ in range(57)]
    texts = [*few[:20], *LONG_TEXTS, *few[20:26], UNKNOWN, *few[26:-1]]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n")
    rows = [(text, f"cat {text}" if i % 6 == 5 else texts[-i - 1], i % 6) for i, text in enumerate(texts)]
    for name, divisor in (("pairs", 1), ("binary", 5)):
        lines = [f"{label // divisor}\t{first}\t{second}" for first, second, label in rows]
        (folder / f"{name}.tsv").write_text("score\tsentence1\tsentence2\n" + "\n".join(lines) + "\n")
    documents = [
        [*sections[0], f"{LONG_TEXTS[index % 3].strip()}."] for index, sections in enumerate(some_documents(12))
    ]
    lines = [
        {"id": index, "sections": [{"sentences": document[:6]}, {"sentences": document[6:]}]}
        for index, document in enumerate(documents)
    ]
    (folder / "sections.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    for name, seeds in (("sweep", [1, 2]), ("one_seed", [1])):
        (folder / f"{name}.toml").write_text(
            f"seeds = {seeds}\n[base]\nmodel = 'M'\nmax_steps = 4\neval_steps = 2\nprecision = 'float32'\n"
            "[[data]]\nname = 'toy'\ntrain = 'pairs.tsv'\ndev = 'pairs.tsv'\ntest = 'pairs.tsv'\n"
        )
    save(build(str(tiny_trunk), device="cpu"), folder / "M")
    save(build(str(one_layer), device="cpu"), folder / "N")
    save(build_cross(str(tiny_trunk), device="cpu"), folder / "X")
    small_worded_causal(folder / "L")
    samesense.origin(str(folder / "sections.jsonl"), output=folder / "O", language_model=str(folder / "L"), **SMALL)
    samesense.harvest(origin=folder / "O", output=folder / "H", **HARVEST)
    with suppress(SystemExit):
        main(["index", "build", str(folder / "C"), str(folder / "texts.txt"), "--model", str(folder / "M")])
    return folder


@pytest.fixture
def here(world, tmp_path, monkeypatch):
    for path in world.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] if case in SLOW else []) for case in TABLE]
)
def test_what_is_cut_is_said_once(here, capsys, tiny_trunk, monkeypatch, request, case):
    ticks = itertools.count()
    monkeypatch.setattr(clock, "now", lambda: next(ticks) / 1000)  # of the race, which takes what time there is
    monkeypatch.setattr(entrants, "LOSSES", {"scored": ({"loss": "cosent"},)})
    monkeypatch.setattr(race, "FORMS", {})
    if case.endswith("in a process"):
        request.getfixturevalue("ready_workers")
    if case == "export":
        exported = request.getfixturevalue("exported_layer")
        monkeypatch.setattr("samesense.inference.onnx.export.write_graph", partial(copy_graph, exported))
    words = [str(tiny_trunk) if word == "T" else word for word in TABLE[case]]
    code, _, err = run_command(capsys, *words)
    assert code == 0, err
    assert len(CUT.findall(err)) == err.count("are longer than") == 1, err
    cut_texts, texts, longest = map(int, CUT.search(err).groups())
    assert 1 <= cut_texts <= 4 and cut_texts <= texts, err
    by_language_model = any(word in ("L", "O", "origin:O") for word in words)
    assert longest == (128 if by_language_model else 64)
    from_file = any(word.endswith((".txt", ".tsv", ".toml")) for word in words)
    assert not from_file or texts <= 71, err  # different ones, however often they are encoded
    assert err.count("hold nothing that the model knows") == (from_file and not by_language_model), err


@pytest.mark.slow
def test_from_documents_to_a_model_it_is_said_once(here):
    lines = listen()
    samesense.train(
        "sections.jsonl",
        method="context",
        output="run",
        model="M",
        max_steps=4,
        held_out_share=0.1,
        precision="float32",
        origin_config="words",
        origin={**SMALL, "reference": 40, "language_model": "L", "held_out_documents": 0.25},
        harvest=HARVEST,
    )
    assert sum("are longer than" in line for line in lines) == 1, lines
