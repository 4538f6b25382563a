"""Models that NumPy reads give the vectors of torch, and what it does not know is left to torch."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from itertools import pairwise
from math import erf as exact_erf

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import samesense
from samesense.encoder.names import default_folder
from samesense.execution.unread import counted
from samesense.inference.models.load import load
from samesense.inference.plain.activations import erf
from samesense.inference.plain.files import model_files_hash
from samesense.inference.plain.folder import open_plain
from samesense.inference.plain.weights import NotPlainError, Weights
from tests.command import run_command
from tests.inference import plain_models
from tests.inference.plain_models import MODULES, TEXTS, TRUNKS, bert, static


def by_both(folder, **options):
    """The same model by NumPy and by torch."""
    plain = load(folder, texts=TEXTS, **options)
    assert plain.backend == "numpy"
    return plain, load(folder, precision="float32", **options)


def check_same(folder, **options):
    plain, by_torch = by_both(folder, **options)
    with counted(apart=True) as unread:
        rows = plain.encode(TEXTS)
    with counted(apart=True) as expected_unread:
        expected = by_torch.encode(TEXTS)
    np.testing.assert_allclose(rows, expected, atol=2e-6 * max(1.0, np.abs(expected).max()))
    pairs = list(pairwise(TEXTS))
    np.testing.assert_allclose(plain.scores(pairs), by_torch.scores(pairs), atol=1e-6)
    assert plain.protocol == by_torch.protocol
    assert plain.reading.longest == by_torch.reading.longest
    assert plain.reading.lengths(TEXTS) == by_torch.reading.lengths(TEXTS)
    assert (unread.cut, unread.unknown) == (expected_unread.cut, expected_unread.unknown)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    return bert(tmp_path_factory.mktemp("plain") / "bert")


@pytest.mark.parametrize("name", TRUNKS)
def test_every_trunk_gives_the_vectors_of_torch(name, tmp_path):
    check_same(TRUNKS[name](tmp_path / "bare"))


@pytest.mark.parametrize("name", MODULES)
def test_every_module_gives_the_vectors_of_torch(name, bare, tmp_path):
    plain_models.model(bare, name).save(str(tmp_path / "model"))
    check_same(tmp_path / "model")


def test_every_pooling_by_its_name(bare):
    for pooling in ("mean", "cls", "max", "lasttoken", "first-last", "last-2"):
        check_same(bare, pooling=pooling)


def test_static_vectors(tmp_path):
    check_same(static(tmp_path / "static"))


def test_prompts_lengths_and_fewer_dimensions(bare, tmp_path):
    built = plain_models.model(
        bare,
        "unit",
        prompts={"query": "the man ", "passage": "a dog ", "mine": "the "},
        default_prompt_name="mine",
        truncate_dim=10,
    )
    built.max_seq_length = 12
    built.save(str(tmp_path / "model"))
    check_same(tmp_path / "model")
    plain, by_torch = by_both(tmp_path / "model")
    for task in ("query", "document"):
        np.testing.assert_allclose(plain.encode(TEXTS, task=task), by_torch.encode(TEXTS, task=task), atol=2e-6)


def test_a_prompt_that_the_pooling_leaves_out_is_left_to_torch(bare, tmp_path):
    built = plain_models.model(bare, "cls", prompts={"mine": "the "}, default_prompt_name="mine")
    built[1].include_prompt = False
    built.save(str(tmp_path / "model"))
    assert load(tmp_path / "model", texts=TEXTS).backend.startswith("torch")


def test_texts_of_many_lengths_in_half_precision_and_bfloat16(bare, tmp_path):
    import torch
    from transformers import BertModel

    shutil.copytree(bare, tmp_path / "half")
    BertModel.from_pretrained(bare).to(torch.bfloat16).save_pretrained(tmp_path / "half")
    check_same(tmp_path / "half")


def test_the_default_model_to_six_digits():
    plain, by_torch = by_both("default")
    texts = ["A man is eating.", "Someone has a meal.", "Die Katze schläft.", "word " * 400, "?"]
    pairs = [(first, second) for first in texts for second in texts]
    np.testing.assert_allclose(plain.scores(pairs), by_torch.scores(pairs), atol=5e-7)
    assert plain.protocol == by_torch.protocol


def test_many_texts_and_other_arithmetic_go_to_torch(bare, monkeypatch):
    for options in ({"precision": "bfloat16"}, {"backend": "torch"}, {"deterministic": True}, {"prompt": "the "}):
        assert load(bare, texts=["a"], **options).backend.startswith("torch"), options
    assert load(bare, texts=["a"], precision="float32").backend == "numpy"
    assert load(bare).backend.startswith("torch")
    monkeypatch.setattr("samesense.inference.models.load.MOST_WORK", 1)
    assert load(bare, texts=["a"]).backend.startswith("torch")


def test_the_model_in_torch_is_still_there(bare):
    plain = load(bare, texts=["a"])
    assert plain.encoder.get_embedding_dimension() == 32
    assert plain.identity == load(bare, precision="float32").identity
    assert "numpy" in repr(plain)
    again = pickle.loads(pickle.dumps(plain))
    assert again.backend == "numpy"
    np.testing.assert_array_equal(again.encode(TEXTS), plain.encode(TEXTS))


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def change(path, make):
    save_file(make(load_file(path)), path)


DAMAGED = {
    "unknown kind": lambda folder: edit(folder / "config.json", model_type="modernbert"),
    "decoder": lambda folder: edit(folder / "config.json", is_decoder=True),
    "relative positions": lambda folder: edit(folder / "config.json", position_embedding_type="relative_key"),
    "other activation": lambda folder: edit(folder / "config.json", hidden_act="silu"),
    "other shape": lambda folder: edit(folder / "config.json", intermediate_size=32),
    "missing weight": lambda folder: change(
        folder / "model.safetensors", lambda weights: {name: weights[name] for name in [*weights][:-3]}
    ),
    "other weight": lambda folder: save_file(
        {**load_file(folder / "model.safetensors"), "head.weight": np.zeros(2, np.float32)},
        folder / "model.safetensors",
    ),
    "not a number": lambda folder: save_file(
        {name: value * np.nan for name, value in load_file(folder / "model.safetensors").items()},
        folder / "model.safetensors",
    ),
    "cut weights": lambda folder: (folder / "model.safetensors").write_bytes(
        (folder / "model.safetensors").read_bytes()[:5000]
    ),
    "other case": lambda folder: edit(folder / "tokenizer_config.json", do_lower_case=False),
    "unknown setting": lambda folder: edit(folder / "tokenizer_config.json", add_bos_token=True),
    "cut from the left": lambda folder: edit(folder / "tokenizer_config.json", truncation_side="left"),
    "other special token": lambda folder: edit(folder / "tokenizer_config.json", sep_token="[END]"),
    "unknown tokenizer": lambda folder: edit(folder / "tokenizer_config.json", tokenizer_class="T5Tokenizer"),
    "no tokenizer": lambda folder: (folder / "tokenizer.json").unlink(),
    "damaged tokenizer": lambda folder: (folder / "tokenizer.json").write_text("{", encoding="utf-8"),
    "adapters": lambda folder: (folder / "adapter_config.json").write_text("{}", encoding="utf-8"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_is_not_known_is_left_to_torch(damage, bare, tmp_path):
    folder = shutil.copytree(bare, tmp_path / "bare")
    assert open_plain(folder, None).description.dim == 32
    DAMAGED[damage](folder)
    with pytest.raises(NotPlainError):
        open_plain(folder, None)


def test_the_error_function():
    values = np.linspace(-6, 6, 20001, dtype=np.float32)
    np.testing.assert_allclose(erf(values), [exact_erf(value) for value in values], atol=1e-7)


def test_weights_of_every_precision(tmp_path):
    import torch
    from safetensors.torch import save_file as save_torch

    rows = torch.randn(5, 3)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        save_torch({"one": rows.to(dtype), "other": rows[0].to(dtype).clone()}, tmp_path / "weights.safetensors")
        weights = Weights(tmp_path / "weights.safetensors")
        expected = rows.to(dtype).float().numpy()
        np.testing.assert_array_equal(weights["one"], expected)
        np.testing.assert_array_equal(weights.rows("one", np.array([3, 0])), expected[[3, 0]])
    (tmp_path / "weights.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(NotPlainError):
        Weights(tmp_path / "weights.safetensors")


WITHOUT_TORCH = """
import sys
from samesense.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print("torch" in sys.modules, file=sys.stderr)
"""


def run(*arguments, **options):
    words = [sys.executable, "-c", WITHOUT_TORCH, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"), **options)


def imports_torch(done):
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1] == "True"


def test_similarity_does_not_import_torch(bare, tmp_path):
    done = run("similarity", bare, *TEXTS[:2])
    assert not imports_torch(done)
    assert float(done.stdout) == pytest.approx(load(bare, precision="float32").similarity(*TEXTS[:2]), abs=1e-4)
    assert not imports_torch(run("similarity", default_folder(), *TEXTS[:2]))
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS), encoding="utf-8")
    assert not imports_torch(run("encode", bare, texts, "--output", tmp_path / "rows.npy"))
    np.testing.assert_allclose(
        np.load(tmp_path / "rows.npy"),
        load(bare, precision="float32").encode([text.strip() for text in TEXTS]),
        atol=1e-5,
    )


def test_a_query_of_a_collection_does_not_import_torch(bare, tmp_path, capsys):
    texts = tmp_path / "Sätze; alle.txt"
    texts.write_text("a man\na dog\nthe man is big\n", encoding="utf-8")
    collection, model = tmp_path / "my index", shutil.copytree(bare, tmp_path / "model")
    # a collection in bfloat16, which auto takes where the processor computes in it, is queried by torch
    samesense.build_index(collection, texts, model=str(model), precision="float32")
    query = ("index", "query", collection, "a dog", "--json")
    done = run(*query)
    assert not imports_torch(done)
    by_numpy = [json.loads(line) for line in done.stdout.splitlines()]
    (model / "results.json").write_text("{}", encoding="utf-8")  # decides nothing, and only torch can tell
    code, out, _ = run_command(capsys, *query)
    assert code == 0
    by_torch = [json.loads(line) for line in out.splitlines()]
    assert [row.pop("score") for row in by_numpy] == pytest.approx([row.pop("score") for row in by_torch], abs=2e-6)
    assert by_numpy == by_torch
    moved = shutil.copytree(bare, tmp_path / "moved")
    assert not imports_torch(run(*query, "--model", moved))


@pytest.mark.long
def test_a_query_by_another_model_is_refused(bare, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("a man\na dog\n", encoding="utf-8")
    assert run("index", "build", tmp_path / "index", texts, "--model", bare).returncode == 0
    other_folder = shutil.copytree(bare, tmp_path / "other")
    change(other_folder / "model.safetensors", lambda weights: {name: rows * 1.5 for name, rows in weights.items()})
    for model in (other_folder, f"{bare}?cls"):
        done = run("index", "query", tmp_path / "index", "a dog", "--model", model)
        assert (done.returncode, "the model it was built with" in done.stderr) == (2, True), done.stderr


def test_files_of_a_model(bare, tmp_path):
    assert model_files_hash(f"{bare}?cls") == model_files_hash(f"{bare}+dim:8") == model_files_hash("owner/name") == ""
    plain_models.model(bare, "dense").save(str(tmp_path / "model"))
    before = model_files_hash(str(tmp_path / "model"))
    assert before == model_files_hash(str(shutil.copytree(tmp_path / "model", tmp_path / "copy")))
    (weights,) = (path for path in tmp_path.glob("copy/*/model.safetensors"))
    change(weights, lambda tensors: {name: rows + 1 for name, rows in tensors.items()})
    assert model_files_hash(str(tmp_path / "copy")) != before


def test_small_tables_do_not_import_torch(bare, tmp_path, capsys):
    table = tmp_path / "Paare.csv"
    table.write_text("links;rechts\na man;the man\n;\na dog;the dog is big\n", encoding="utf-8")
    (tmp_path / "texts.txt").write_text("a man\na dog\na man is big\n", encoding="utf-8")
    (tmp_path / "others.txt").write_text("the man\nthe dog\n", encoding="utf-8")
    commands = (
        ("score", table, "--model", bare, "--decimal", "point", "--output", "{}.csv"),
        ("dedup", tmp_path / "texts.txt", "--model", bare, "--threshold", "0.5", "--output", "{}.txt"),
        (
            "match",
            tmp_path / "texts.txt",
            tmp_path / "others.txt",
            "--model",
            bare,
            "--threshold",
            "0.5",
            "--output",
            "{}.tsv",
        ),
    )
    for command in commands:
        done = run(*(str(word).format(tmp_path / "auto") for word in command))
        assert not imports_torch(done), command
        words = [str(word).format(tmp_path / "float32") for word in command]
        assert run_command(capsys, *words, "--precision", "float32")[:2] == (0, done.stdout)
    cells = [line.split(";") for line in (tmp_path / "auto.csv").read_text(encoding="utf-8").splitlines()]
    scores = load(bare, precision="float32").scores([("a man", "the man"), ("a dog", "the dog is big")])
    assert [float(cells[row][2]) for row in (1, 3)] == pytest.approx(scores, abs=2e-6)
