"""The choice of the method for the data, and which method has a setting."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import samesense
from samesense.data.rows.memory import Rows
from samesense.errors import ConfigError, DataError
from samesense.recipes.methods import METHODS, method_named
from samesense.recipes.planning.fitting import fitting_method
from samesense.recipes.planning.plan import plan
from samesense.recipes.reading import Reading
from samesense.recipes.settings import shipped
from samesense.recipes.sweep.file import SweepFile
from samesense.recipes.sweep.plan import make_plan
from samesense.recipes.sweep.run import run
from tests.messages import listen

PAIRS = [("a b", "c d", 1), ("e", "f g", 0)]
TEXTS = ["a text", "another"]


@pytest.mark.parametrize(
    ("sources", "config", "settings", "name"),
    [
        ([PAIRS], "auto", {}, "cosent"),
        ([PAIRS], "mine.toml", {}, "cosent"),
        ([TEXTS, TEXTS], "auto", {}, "simcse"),
        ([TEXTS], "auto", {"teacher": ("default",)}, "rankcse"),
        ([PAIRS], "rankcse-listnet", {}, "rankcse"),
        ([TEXTS], "cosent-cross", {}, "cosent"),
    ],
)
def test_the_method_is_told_by_data_settings_and_teachers(sources, config, settings, name):
    assert fitting_method([Rows(source) for source in sources], config, settings).method.name == name


TRIPLETS = [
    {"anchor": f"question {number}", "positive": f"answer {number}", "negative": f"lure {number}"}
    for number in range(4)
]
OTHER_NAMES = [dict(zip(("text", "text_pos", "text_neg"), row.values(), strict=True)) for row in TRIPLETS]


@pytest.mark.parametrize("rows", [TRIPLETS, OTHER_NAMES, samesense.read(TRIPLETS), samesense.read(OTHER_NAMES)])
def test_triplets_are_anchors_with_a_positive_and_a_negative(rows):
    planned = plan(rows)
    assert (planned.method.name, planned.config) == ("supmpn", "supmpn-ragged")
    assert planned.train.anchors == [row["anchor"] for row in TRIPLETS]
    assert planned.train.positives == [[row["positive"]] for row in TRIPLETS]
    assert planned.train.negatives == [[row["negative"]] for row in TRIPLETS]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"loss": "triplet"}, "supmpn"),
        ({"loss": "info-nce"}, "supmpn"),
        ({"batch_size": 8}, "supmpn"),
        ({"loss": "cosent"}, "cosent"),
        ({"encoder": "cross"}, "cosent"),
        ({"batches": "label-aware"}, "cosent"),
    ],
)
def test_a_setting_of_cosent_alone_has_triplets_ranked_as_pairs(settings, name):
    assert plan(TRIPLETS, dev="none", settings=settings).method.name == name
    assert plan(samesense.read(TRIPLETS), dev="none", settings=settings).method.name == name
    assert fitting_method([Rows(TRIPLETS)], "cosent", {}).method.name == "cosent"
    assert plan(TRIPLETS, dev="none", for_race=True).train.kind == "triplet"


def test_triplets_beside_other_data_are_a_part_of_supmpn(tmp_path, lines):
    triplets = tmp_path / "triplets.jsonl"
    triplets.write_text("".join(json.dumps(row) + "\n" for row in TRIPLETS), encoding="utf-8")
    for settings in ({}, {"mixing": "in-turn"}):  # a setting of the mixture is none of CoSENT
        parts = plan([triplets, lines], settings=settings).train.parts
        assert [(part.name, part.method) for part in parts] == [("triplet", "supmpn"), ("sentences", "simcse")]


@pytest.mark.parametrize(
    ("settings", "loss", "steps"),
    [
        ({}, ("angle", 0.1, 1.0, 0.0), 60),
        ({"epochs": 2}, ("angle", 0.1, 1.0, 0.0), None),
        ({"loss": "cosent"}, ("cosent", 1.0, 1.0, 1.0), 30),
        ({"loss": "angle"}, ("angle", 1.0, 1.0, 1.0), 60),
        ({"encoder": "cross"}, ("cosent", 1.0, 1.0, 1.0), 30),
        ({"batches": "label-aware"}, ("cosent", 1.0, 1.0, 1.0), 30),
    ],
)
def test_nli_labels_are_ranked_beside_in_batch_negatives_unless_the_loss_is_named(settings, loss, steps):
    rows = [("a man eats", "he has food", "entailment"), ("a man eats", "he fasts", "contradiction")] * 3
    named = [{"premise": first, "hypothesis": second, "label": label} for first, second, label in rows]
    messages = listen()
    bound = plan(named, dev="none", settings=settings).settings
    assert (bound.loss, bound.cosine_weight, bound.in_batch_weight, bound.angle_weight) == loss
    assert bound.max_steps == steps
    assert ("`loss` cosent only ranks" in "\n".join(messages)) == (loss == ("angle", 0.1, 1.0, 0.0))


def test_every_method_has_a_shipped_file_that_holds_its_defaults():
    for name, method in METHODS.items():
        assert name in shipped()
        if name != "cosent":  # its files depend on the labels; tested with its recipe
            bound_name, bound = method.choose("auto", {}, lambda: None)
            assert (bound_name, bound) == (name, method.settings())
    assert {max((n for n in METHODS if file.startswith(n)), key=len, default="") for file in shipped()} == set(METHODS)


def test_a_setting_of_another_method_is_refused_with_its_owner():
    with pytest.raises(ConfigError) as error:
        METHODS["simcse"].choose("auto", {"gamma": 0.5}, lambda: None)
    assert str(error.value) == (
        "gamma is a setting of method rankcse; this is method simcse, for unlabelled sentences; supervised: NLI pairs "
        "or triplets. Leave it out, or take method rankcse."
    )
    with pytest.raises(ConfigError, match=r"^There is no setting 'gama'\. Did you mean 'gamma'\?$"):
        METHODS["rankcse"].choose("auto", {"gama": 0.5}, lambda: None)
    with pytest.raises(ConfigError, match=r"^The methods are cosent, simcse, rankcse.*; received 'bert'\.$"):
        method_named("bert")
    with pytest.raises(ConfigError, match=r"are for labelled pairs; method simcse takes unlabelled sentences"):
        METHODS["simcse"].read(["a.txt"], METHODS["simcse"].settings(), Reading(label_range=(0, 5)))


@pytest.mark.parametrize(("method", "columns", "rows"), [("simcse", "body", 2), ("supmpn", "body,title", 2)])
def test_columns_of_other_data_say_nothing_of_the_pairs_that_select(tmp_path, method, columns, rows):
    (tmp_path / "t.csv").write_text("title,body\none,a text\ntwo,another\n")
    (tmp_path / "dev.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t0\nc\td\t1\n")
    source = str(tmp_path / "t.csv")
    dev = str(tmp_path / "dev.tsv")
    planned = plan(source, method=method, dev=dev, reading=Reading(columns=columns))
    assert (len(planned.train), planned.settings.columns, len(planned.dev)) == (rows, columns, 2)
    with pytest.raises(DataError, match=r"`columns`"):
        plan(source, method=method, dev="none")


def test_methods_stand_side_by_side_in_a_sweep(tiny_trunk, toy_pairs, lines, tmp_path):
    quick = {"learning_rate": 1e-3, "max_steps": 2, "eval_steps": 1, "precision": "float32"}
    entry = {"name": "toy", "dev": str(toy_pairs / "dev.tsv"), "test": str(toy_pairs / "test.tsv")}
    file = SweepFile(
        seeds=(1,),
        start=True,
        base={"model": str(tiny_trunk), "pooling": "mean", **quick},
        case=(
            {"method": "simcse", "batch_size": 8},
            {"name": "twice", "method": "simcse", "batch_size": 8, "keep_repeated": True},
            {"data": ["pairs"]},
        ),
        data=(
            {**entry, "train": str(lines), "train_rows": 20},
            {**entry, "name": "pairs", "train": str(toy_pairs / "train.tsv")},
        ),
    )
    with pytest.raises(ConfigError, match="toy, start: gamma is a setting of method rankcse"):
        make_plan(file.model_copy(update={"base": {**file.base, "gamma": 1.0}}))
    plan = make_plan(file.model_copy(update={"case": file.case[:2], "data": file.data[:1]}))
    assert [cell.name for cell in plan.cells] == [
        "toy, start",
        "toy, simcse, batch_size 8, seed 1",
        "toy, twice, seed 1",
    ]
    assert [cell.method.name for cell in plan.cells] == ["simcse", "simcse", "simcse"]
    assert len({cell.reading for cell in plan.cells[1:]}) == 2
    assert len(plan.splits_of(plan.cells[1]).train) == 20
    ended = run(plan, tmp_path / "sweep")
    assert (ended.finished, ended.failed) == (3, 0)
    assert "method" in plan.cells[1].identity
    assert run(make_plan(plan.file), tmp_path / "sweep").finished == 3  # nothing is done twice
    everything = make_plan(file)
    assert np.unique([cell.key for cell in everything.cells]).size == len(everything.cells)


def test_pairs_are_not_held_out_of_bare_sentences(tiny_trunk, toy_pairs, lines):
    file = SweepFile(
        base={"method": "simcse"},
        data=({"name": "toy", "train": str(lines), "test": str(toy_pairs / "test.tsv")},),
    )
    with pytest.raises(ConfigError, match=r"^toy.*method simcse trains on unlabelled sentences.*Give dev = \"FILE\""):
        make_plan(file)


def test_two_files_of_one_name_in_two_languages_may_be_translations(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {"my set.en": ["a house", "snow", "a tree"], "my set.de": ["ein Haus", "Schnee", "ein Baum"]}
    for name, lines in {**texts, "other.en": ["a", "b"], "my set.txt": ["c", "d"]}.items():
        Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (line,) = [line for line in fitting_method([*texts], "auto", {}).messages if "translations" in line]
    command = line.partition("a table of both: ")[2]
    subprocess.run(command, shell=True, check=True)
    assert samesense.read("pairs.tsv").anchors == texts["my set.en"]
    for others in (["my set.en", "other.en"], ["my set.en", "my set.txt"], ["my set.en"]):
        assert not any("translations" in line for line in fitting_method(others, "auto", {}).messages)
