"""Data of several kinds in one run: their objectives one by one as exact as alone, in every order, also resumed."""

import json
from dataclasses import replace
from itertools import groupby

import pytest
import torch
from transformers import TrainerCallback

import samesense
from samesense.data import read_pairs
from samesense.data.sentences import read_unlabelled
from samesense.errors import ConfigError, DataError
from samesense.recipes.inputs import PREPARE
from samesense.recipes.mixed import recipe
from samesense.recipes.planning.plan import plan
from samesense.recipes.unsupervised.views import set_dropout
from tests.command import run_command
from tests.conftest import WORDS
from tests.training.test_fit import At, Killed, killed

TEXTS = [" ".join(WORDS[(7 * index + 5 * step) % len(WORDS)] for step in range(2 + index % 6)) for index in range(48)]
NLI = ("entailment", "neutral", "contradiction")
QUICK = {"precision": "float32", "batch_size": 8, "learning_rate": 2e-3}


@pytest.fixture
def files(tmp_path):
    """Scored pairs, inference pairs, anchors with a positive, classes and sentences: 24, 24, 20, 30 and 32 of each."""
    folder = tmp_path / "data"
    folder.mkdir()
    pairs = list(zip(TEXTS[:24], TEXTS[24:], strict=True))
    rows = "".join(f"{a}\t{b}\t{index % 6}\n" for index, (a, b) in enumerate(pairs))
    (folder / "scored.tsv").write_text(f"sentence1\tsentence2\tscore\n{rows}")
    nli_rows = [{"premise": b, "hypothesis": a, "label": NLI[index % 3]} for index, (a, b) in enumerate(pairs)]
    (folder / "nli.jsonl").write_text("".join(json.dumps(row) + "\n" for row in nli_rows))
    (folder / "anchors.csv").write_text("anchor,positive\n" + "".join(f"{a},{b}\n" for a, b in pairs[:20]))
    classes = "".join(f"{text}\tclass {index % 3}\n" for index, text in enumerate(TEXTS[:30]))
    (folder / "classes.tsv").write_text(f"text\tlabel\n{classes}")
    (folder / "texts.txt").write_text("\n".join(TEXTS[:32]))
    return folder


def named(files, *names):
    paths = {path.stem: str(path) for path in files.iterdir()}
    return [paths[name] for name in names]


def test_every_kind_becomes_a_part_with_its_method(files):
    planned = plan(named(files, "texts", "nli", "anchors", "classes", "scored"), settings={"seed": 3})
    assert planned.method.name == "mixed"
    by_name = {part_plan.name: (part_plan.method, len(part_plan.data)) for part_plan in planned.train.parts}
    assert by_name == {
        "sentences": ("simcse", 32),
        "nli": ("cosent", 24),
        "anchors": ("supmpn", 20),
        "classes": ("supmpn", 30),
        "scored": ("cosent", 22),
    }
    assert (len(planned.dev), planned.dev.kind) == (2, "scored")  # a tenth of the scored pairs
    assert {part_plan.settings.seed for part_plan in planned.train.parts} == {3}
    assert [part_plan.settings.batch_size for part_plan in planned.train.parts] == [64, 64, 64, 64, 16]
    lines = planned.lines()
    assert lines[2].startswith(
        "anchors.csv: read as anchors with positives, by the columns anchor and positive; method"
    )
    assert "anchors: data: 20 anchors with 20 positives and 0 negatives" in lines
    assert "selection: Spearman on 2 pairs held out, none of their sentences is trained on" in lines


def test_sources_of_one_kind_are_one_part_and_labels_of_two_scales_are_two(files):
    scored, nli = named(files, "scored", "nli")
    assert plan([scored, scored]).method.name == "cosent"
    percent = files / "percent.tsv"
    percent.write_text("sentence1\tsentence2\tscore\na\tb\t0\nc\td\t100\n")
    planned = plan([scored, str(percent), scored, nli], dev="none")
    assert [(part_plan.name, len(part_plan.data)) for part_plan in planned.train.parts] == [
        ("scored", 48),
        ("scored-2", 2),
        ("nli", 24),
    ]
    read = plan([read_pairs(scored), read_unlabelled(named(files, "texts")[0])], dev="none")
    assert [part_plan.name for part_plan in read.train.parts] == ["scored", "sentences"]
    assert [part_plan.name for part_plan in plan(scored, method="mixed").train.parts] == ["scored"]
    documents = files / "documents.jsonl"
    section = {"sections": [TEXTS[:4], TEXTS[4:8]]}
    documents.write_text(json.dumps(section) + "\n")
    assert plan([scored, str(documents)]).train.parts[1].method == "sections"


def test_settings_go_to_the_run_to_all_parts_that_have_them_or_to_one(files):
    sources = named(files, "scored", "nli", "anchors")
    overrides = {
        "epochs": 2,
        "temperature": 0.1,
        "tuples": "padded",
        "parts": {"nli": {"loss": "softmax", "batch_size": 4}},
    }
    with pytest.raises(ConfigError, match="temperature"):  # softmax has no such setting
        plan(sources, settings=overrides)
    part_settings = {"nli": {"loss": "softmax", "batch_size": 4}, "scored": {"temperature": 0.1}}
    planned = plan(sources, dev="none", settings={"epochs": 2, "tuples": "padded", "parts": part_settings})
    scored, nli, anchors = planned.train.parts
    assert (scored.settings.temperature, nli.settings.loss, anchors.settings.tuples) == (0.1, "softmax", "padded")
    assert planned.settings.parts == {**part_settings, "anchors": {"tuples": "padded"}}
    assert planned.settings.for_data(planned.train).max_steps == 2 * (2 + 6 + 1)
    toml = files / "own.toml"
    toml.write_text('mixing = "weighted"\nweights = [1, 2, 3]\nbatch_size = 8\n[parts.nli]\nloss = "softmax"\n')
    planned = plan(sources, dev="none", config=str(toml))
    assert [part_plan.settings.batch_size for part_plan in planned.train.parts] == [8, 8, 8]
    assert (planned.settings.weights, planned.train.parts[1].settings.loss) == ((1, 2, 3), "softmax")
    assert planned.settings.for_data(planned.train).max_steps == 3 + 3 + 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.0}, r"gamma is a setting of method rankcse; these data are scored \(method cosent\), sentences"),
        ({"gama": 1.0}, r"There is no setting 'gama'"),
        ({"parts": {"nli": {}}}, r"The tables of `parts` are those of the data, scored .*; received 'nli'"),
        ({"parts": {"scored": {"learning_rate": 1e-3}}}, r"`learning_rate` of part scored is .* of the whole run"),
        ({"parts": {"sentences": {"batch_size": 4, "epochs": 2}}}, r"`epochs` .* set it outside `parts`\.$"),
        ({"parts": {"scored": {"mixing": "in-turn"}}}, r"`mixing` of part scored"),
        ({"parts": {"sentences": {"dropout": 0.2}}}, r"`dropout` of part sentences changes the encoder of every part"),
        ({"parts": {"sentences": {"head": "kept"}}}, r"`head` of part sentences .*; received 'kept'\. Set it outside"),
        ({"mixing": "weighted"}, r"mixing weighted takes weights.*received mixing weighted and no weights"),
        ({"weights": (1, 2)}, r"received mixing proportional and weights"),
        ({"mixing": "weighted", "weights": (1, -1)}, r"a number above 0 for each kind; received 1.0, -1.0"),
        ({"encoder": "cross"}, r"scored: data of several kinds train one encoder of sentences; received encoder cross"),
    ],
)
def test_what_does_not_go_together_is_refused(files, settings, message):
    with pytest.raises(ConfigError, match=message):
        plan(named(files, "scored", "texts"), settings=settings)


def test_what_concerns_the_encoder_of_all_parts_is_set_for_the_run_or_the_only_part(files):
    sources = named(files, "scored", "texts", "classes")
    planned = plan(sources, dev="none", settings={"dropout": 0.2, "head": "kept", "parts": {"classes": {"seed": 1}}})
    scored, sentences, classes = planned.train.parts
    assert "dropout" not in type(scored.settings).model_fields
    assert (sentences.settings.dropout, classes.settings.dropout, sentences.settings.head) == (0.2, 0.2, "kept")
    part_settings = {"sentences": {"head": "none"}}  # this setting leaves the encoder unchanged
    assert plan(sources, settings={"parts": part_settings}).train.parts[1].settings.head == "none"
    alone = plan(named(files, "texts"), method="mixed", settings={"parts": {"sentences": {"dropout": 0.2}}})
    assert alone.train.parts[0].settings.dropout == 0.2


def test_weights_for_other_parts_and_bad_rows_are_refused_before_the_folder_is_made(files, tiny_trunk, tmp_path):
    output = tmp_path / "run"
    sources = named(files, "scored", "texts")
    options = {"mixing": "weighted", "weights": (1, 2, 3), "model": str(tiny_trunk), **QUICK}
    with pytest.raises(ConfigError, match="weights takes a number for each kind, scored, sentences; received 3 for 2"):
        samesense.train(sources, output=output, **options)
    (files / "bad.csv").write_text("anchor,positive\na,\nb,c\n")
    with pytest.raises(DataError, match=r"bad\.csv: 1 of 2 rows cannot be used(.|\n)*row 2"):
        samesense.train([*sources, files / "bad.csv"], output=output, model=str(tiny_trunk))
    assert not output.exists()


def test_processes_whose_steps_would_be_of_different_kinds_are_refused(files, tiny_trunk, tmp_path, monkeypatch):
    monkeypatch.setattr(recipe, "world_size", lambda: 2)
    with pytest.raises(ConfigError, match="trained on by one process; received 2"):
        samesense.train(named(files, "scored", "texts"), output=tmp_path / "run", model=str(tiny_trunk), **QUICK)
    assert not (tmp_path / "run").exists()


class Gradients(TrainerCallback):
    """Keeps the gradient of each step, with the rows of its batch."""

    def __init__(self, collator):
        self.collator, self.rows, self.found = collator, [], []

    def batch(self, rows):
        self.rows.append(rows)
        return self.collator(rows)

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.found.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})


def watched(monkeypatch, *, callbacks=(), dropout=None):
    """Have runs keep their gradients."""
    prepare = recipe.prepare
    prepared = []

    def also(model, job):
        if dropout is not None:
            set_dropout(model, dropout)
        inputs = prepare(model, job)
        gradients = Gradients(inputs.collator)
        prepared.append((gradients, model))
        collator = type("Collator", (), {"__call__": lambda _, rows: gradients.batch(rows)})()
        collator.valid_label_columns, collator.begin = inputs.collator.valid_label_columns, inputs.collator.begin
        return replace(inputs, callbacks=[*inputs.callbacks, gradients, *callbacks], collator=collator)

    monkeypatch.setitem(PREPARE, "mixed", also)
    return prepared


def twin(model, rows, anchors):
    """The loss of a batch by the sums of its formula, each text encoded by itself."""

    def vector(text):
        embedding = model(model.preprocess([text]))["sentence_embedding"][0]
        return embedding / embedding.norm()

    if rows[0]["dataset_name"] == "anchors":
        vectors = [(vector(row["anchor"]), vector(anchors[row["anchor"]])) for row in rows]
        terms = [
            torch.log(sum(torch.exp((first @ second) / 0.05) for _, second in vectors)) - (first @ mine) / 0.05
            for first, mine in vectors
        ]
        return sum(terms) / len(terms)
    firsts, seconds = ([vector(row[column]) for row in rows] for column in ("sentence1", "sentence2"))
    scores = [first @ second for first, second in zip(firsts, seconds, strict=True)]
    labels = [row["label"] for row in rows]
    every = range(len(rows))
    ranking = torch.log(
        1 + sum(torch.exp((scores[i] - scores[j]) / 0.05) for i in every for j in every if labels[j] > labels[i])
    )
    if rows[0]["dataset_name"] != "nli":
        return ranking
    entailed = [
        torch.log(sum(torch.exp(firsts[i] @ second / 0.05) for second in seconds)) - scores[i] / 0.05
        for i in every
        if labels[i] == 2
    ]
    return 0.1 * ranking + sum(entailed) / len(entailed)


@pytest.mark.parametrize("budget", [None, 12])
def test_each_step_has_the_gradient_of_its_own_objective(files, tiny_trunk, tmp_path, monkeypatch, budget):
    watching = watched(monkeypatch, dropout=0.0)
    options = {**QUICK, "learning_rate": 1e-12, "weight_decay": 0.0, "max_grad_norm": 1e9, "max_steps": 6}
    samesense.train(
        named(files, "scored", "nli", "anchors"),
        dev="none",
        output=tmp_path / "run",
        model=str(tiny_trunk),
        mixing="round-robin",
        mini_batch_num_tokens=budget,
        **options,
    )
    ((gradients, model),) = watching
    anchors = dict(zip(TEXTS[:20], TEXTS[24:44], strict=True))
    order = [rows[0]["dataset_name"] for rows in gradients.rows[:6]]
    assert order == ["scored", "nli", "anchors"] * 2
    model.eval()
    for rows, gradients_of_step in zip(gradients.rows, gradients.found, strict=False):
        model.zero_grad()
        twin(model, rows, anchors).backward()
        expected = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        assert gradients_of_step.keys() == expected.keys()
        for name, gradient in expected.items():
            torch.testing.assert_close(gradients_of_step[name], gradient, rtol=1e-3, atol=1e-5)


def weights(run):
    from safetensors.torch import load_file

    return load_file(run.model / "model.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize(
    "mixing",
    [
        "proportional",
        "in-turn",
        *(pytest.param(mixing, marks=pytest.mark.long) for mixing in ("round-robin", "weighted")),
    ],
)
def test_a_resumed_run_equals_an_uninterrupted_one(files, tiny_trunk, tmp_path, monkeypatch, mixing):
    sources = named(files, "nli", "classes", "texts", "scored")
    options = {
        **QUICK,
        "model": str(tiny_trunk),
        "mixing": mixing,
        "epochs": 3,
        "eval_steps": 7,
        "resample": "epoch",
        "parts": {"nli": {"loss": "softmax"}},
        **({"weights": (1, 2, 1, 2)} if mixing == "weighted" else {}),
    }
    watching = watched(monkeypatch)
    whole = samesense.train(sources, output=tmp_path / "whole", **options)
    watched(monkeypatch, callbacks=[At(17, killed)])
    with pytest.raises(Killed):
        samesense.train(sources, output=tmp_path / "killed", **options)
    monkeypatch.setitem(PREPARE, "mixed", recipe.prepare)
    again = samesense.train(sources, output=tmp_path / "killed", resume=True, **options)
    assert again.output.steps == whole.output.steps > 30
    histories = [(run.folder / "history.jsonl").read_text() for run in (whole, again)]
    assert [json.loads(line).get("eval_dev_spearman") for line in histories[0].splitlines()] == [
        json.loads(line).get("eval_dev_spearman") for line in histories[1].splitlines()
    ]
    first = weights(whole)
    second = weights(again)
    assert all(torch.equal(first[name], second[name]) for name in first)
    order = [rows[0]["dataset_name"] for rows in watching[0][0].rows[: whole.output.steps]]
    if mixing == "in-turn":
        assert [name for name, _ in groupby(order)] == ["nli", "classes", "sentences", "scored"]
    elif mixing == "round-robin":
        assert order[:8] == ["nli", "classes", "sentences", "scored"] * 2
    elif mixing == "weighted":
        assert (order.count("classes"), order.count("nli")) == (15, 6)  # 2, 5, 2 and 5 of 14 batches each epoch
    assert (
        "classes: method supmpn, 4 batches of 8 a pass"
        in json.loads((whole.folder / "manifest.json").read_text())["summary"]
    )


def test_the_command_takes_files_of_any_kinds_together(files, tiny_trunk, toy_pairs, tmp_path, capsys):
    sources = named(files, "scored", "nli", "texts")
    flags = [
        "--model",
        tiny_trunk,
        "--precision",
        "float32",
        "--batch-size",
        "8",
        "--max-steps",
        "3",
        "--mixing",
        "round-robin",
        "--test",
        toy_pairs / "test.tsv",
        "--output",
        tmp_path / "run",
    ]
    code, out, err = run_command(capsys, "train", *sources, *flags)
    assert code == 0, err
    assert "texts.txt: read as unlabelled sentences, by one text a line; method simcse" in err
    assert "nli: method cosent, 3 batches of 8 a pass" in err
    assert "Spearman" in out
    assert samesense.load(tmp_path / "run").encode(["a dog"]).shape == (1, 32)
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "mixed" in card
    code, _, err = run_command(capsys, "train", *sources, *flags[:-1], tmp_path / "other", "--dry-run")
    assert (code, "steps: 3 of 8 examples each" in err) == (0, True), err


def test_a_part_is_cut_to_its_own_longest_input_and_what_was_cut_is_said_once(
    files, tiny_trunk, tmp_path, caplog, monkeypatch
):
    prepare = recipe.prepare
    kinds = []

    def also(model, job):
        inputs = prepare(model, job)
        kinds.extend(type(callback) for callback in inputs.callbacks)
        return inputs

    monkeypatch.setitem(PREPARE, "mixed", also)
    caplog.set_level("INFO")
    samesense.train(
        named(files, "scored", "anchors", "texts"),
        dev="none",
        output=tmp_path / "run",
        model=str(tiny_trunk),
        max_seq_length=5,
        parts={"scored": {"max_seq_length": 4}},
        **QUICK,
    )
    messages = [record.getMessage() for record in caplog.records if record.name == "samesense.training.texts"]
    assert sorted(line.split("texts were ")[1].split(" in training")[0] for line in messages) == [
        "cut to 4 tokens",
        "cut to 5 tokens",
        "cut to 5 tokens",
    ]
    assert len(kinds) == len(set(kinds))  # a trainer warns of two callbacks of one class
