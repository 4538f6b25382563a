"""Model folders of every form with one thing in a file of JSON changed: opened, refused in words, or used."""

import json
import logging
import math
import shutil
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Router
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from samesense.encoder.assembly.build import build
from samesense.encoder.saving.storage import save
from samesense.errors import ModelError, SamesenseError
from samesense.inference.models.load import load
from tests.hostile.conftest import figures, json_items, rounds

TEXTS = ["a dog runs", "the man reads a book at night", "a dog " * 100, ""]
PAIRS = [("a dog runs", "the cat sleeps"), ("snow", "a dog " * 100)]
DEEP = "[" * 100_000
VALUES = [
    None,
    True,
    -1,
    0,
    3,
    10**9,
    10**25,
    1.5,
    math.nan,
    math.inf,
    "",
    "x",
    "../x",
    "/etc/passwd",
    [],
    [[]],
    ["x", 1],
    {},
    {"x": None},
]
WHOLE = [
    b"",
    b"{",
    b"[]",
    b"{}",
    b"null",
    b"3",
    b'"x"',
    b"\xff\xfe{\x00}\x00",
    b'{"a": \xff}',
    DEEP.encode(),
    b"[1e999]",
]


def with_value(content, keys, value):
    """Return a copy of content with another value at a path of keys, or without it for ``...``."""
    changed = json.loads(json.dumps(content))
    inner = changed
    for key in keys[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    return changed


def places(content, above=(), depth=3):
    """Yield the path of keys to every value of content, nested ones too."""
    for key, value in json_items(content)[:40]:
        yield (*above, key)
        if depth > 1:
            yield from places(value, (*above, key), depth - 1)


def changes(folder):
    """Yield each change of a JSON file: its file, a description, and its content."""
    for path in sorted(folder.rglob("*.json")):
        name = path.relative_to(folder)
        if path.name == "tokenizer.json":
            continue
        content = json.loads(path.read_text())
        for raw in WHOLE:
            yield name, f"whole {raw[:12]}", raw
        for keys in places(content):
            for value in [..., *VALUES]:
                yield name, f"{keys} {value!r}", json.dumps(with_value(content, keys, value)).encode()
            deep = json.dumps(with_value(content, keys, "DEEP")).replace('"DEEP"', "[" * 5000 + "]" * 5000)
            yield name, f"{keys} deep", deep.encode()


class Folders:
    """Each makes a folder of one form."""

    def __init__(self, trunk):
        self.trunk = trunk

    def whole(self, folder):
        model = build(str(self.trunk), device="cpu")
        model.extend([Dense(32, 8), Normalize()])
        model.prompts = {"query": "a man "}
        model.default_prompt_name = "query"
        save(model, folder)

    def bare(self, folder):
        shutil.copytree(self.trunk, folder)

    def layers(self, folder):
        save(build(str(self.trunk), pooling="first-last", device="cpu"), folder)

    def cross(self, folder):
        BertForSequenceClassification(BertConfig.from_pretrained(self.trunk, num_labels=1)).save_pretrained(folder)
        AutoTokenizer.from_pretrained(self.trunk).save_pretrained(folder)

    def routed(self, folder):
        query, document = (build(str(self.trunk), device="cpu")[0] for _ in range(2))
        model = SentenceTransformer(
            modules=[Router.for_query_document([query], [document]), Pooling(32, "mean")], device="cpu"
        )
        model.save(str(folder))

    def adapted(self, folder):
        peft = pytest.importorskip("peft")
        model = SentenceTransformer(str(self.trunk), device="cpu")
        model[0].model.add_adapter(peft.LoraConfig(r=2, target_modules=["query"], init_lora_weights=False))
        model[0].model.peft_config["default"].base_model_name_or_path = str(self.trunk)
        model.save(str(folder))


FORMS = [name for name in vars(Folders) if not name.startswith("_")]


def use(folder):
    """Open a folder and use it."""
    model = load(str(folder), device="cpu", precision="float32")
    rows = model.encode(TEXTS) if model.embeds else model.scores(PAIRS)
    assert np.isfinite(rows).all()
    return model


@pytest.mark.parametrize("form", FORMS)
def test_a_changed_file_of_json_is_refused_in_words_or_of_no_account(form, tiny_trunk, tmp_path):
    torch.manual_seed(0)
    intact = tmp_path / "made"
    folder = tmp_path / "m"
    getattr(Folders(tiny_trunk), form)(intact)
    shutil.copytree(intact, folder)
    use(folder)
    every = list(changes(intact))
    chosen = np.random.default_rng(FORMS.index(form)).permutation(len(every))[: rounds(short=40, long=100_000)]
    outcomes = {"refused": 0, "used": 0}
    logging.disable(logging.WARNING)
    for number in chosen:
        name, words, content = every[number]
        (folder / name).write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                use(folder)
            outcomes["used"] += 1
        except ModelError:
            outcomes["refused"] += 1
        except SamesenseError as error:
            raise AssertionError(f"{form}: {name}: {words}: {type(error).__name__}: {error}") from error
        except BaseException as error:
            raise AssertionError(f"{form}: {name}: {words}: {type(error).__name__}: {error}") from error
        finally:
            shutil.copy(intact / name, folder / name)
    logging.disable(logging.NOTSET)
    assert outcomes["refused"]
    figures(f"changed files of JSON, {form}", outcomes)


def reshaped(weight):
    return weight[:-1] if len(weight) > 1 else torch.cat([weight, weight])


def weight_changes(weights):
    """Yield each change of one weight: a description, and all weights after it."""
    for name in weights:
        remaining = {key: weight for key, weight in weights.items() if key != name}
        yield f"{name} gone", remaining
        yield f"{name} renamed", {**remaining, f"{name}_x": weights[name]}
        yield f"{name} reshaped", {**remaining, name: reshaped(weights[name])}
        yield f"{name} twice", {**weights, name.replace("layer.0", "layer.7"): weights[name]}
        yield f"{name} wrapped", {**remaining, f"module.{name}": weights[name]}


@pytest.mark.parametrize("form", ["whole", "bare", "cross", "adapted", "static"])
def test_a_changed_weight_is_refused_or_of_no_account(form, tiny_trunk, static_model, tmp_path):
    torch.manual_seed(0)
    intact = tmp_path / "made"
    folder = tmp_path / "m"
    if form == "static":
        shutil.copytree(static_model, intact)
    else:
        getattr(Folders(tiny_trunk), form)(intact)
    shutil.copytree(intact, folder)
    expected = answers(intact)
    every = [
        (path.relative_to(intact), words, weights)
        for path in sorted(intact.rglob("*.safetensors"))
        for words, weights in weight_changes(load_file(path))
    ]
    outcomes = {"refused": 0, "same": 0}
    for number in np.random.default_rng(0).permutation(len(every))[: rounds(short=40, long=100_000)]:
        name, words, weights = every[number]
        save_file({key: weight.clone() for key, weight in weights.items()}, folder / name, {"format": "pt"})
        try:
            rows = answers(folder)
        except ModelError:
            outcomes["refused"] += 1
        else:
            outcomes["same"] += 1
            assert np.abs(rows - expected).max() < 1e-6, f"{form}: {name}: {words}"
        shutil.copy(intact / name, folder / name)
    assert outcomes["refused"]
    figures(f"changed weights, {form}", outcomes)


def answers(folder):
    model = load(str(folder), device="cpu", precision="float32")
    return model.encode(TEXTS[:3]) if model.embeds else model.scores(PAIRS)
