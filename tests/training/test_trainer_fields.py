"""Trainer arguments of transformers: any field that is not ours, typed, and the reporting integrations."""

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from typing import ClassVar

import pytest
import torch
from sentence_transformers import SentenceTransformerTrainingArguments
from transformers import TrainerCallback
from transformers.integrations import INTEGRATION_TO_CALLBACK

import samesense
from samesense.errors import ConfigError
from samesense.execution.trainer_fields import OURS, trainer_fields
from samesense.recipes.cosent.settings import CosentSettings, choose
from samesense.training.settings import TrainingSettings
from tests.recipes.harvests import some_pairs, write_harvest
from tests.training.test_fit import run_of

QUICK = {"max_steps": 2, "precision": "float32", "batch_size": 8, "dev": "none"}


def fields(**options):
    return trainer_fields(SentenceTransformerTrainingArguments, options)


def test_texts_become_what_the_field_is():
    parsed = fields(
        adam_beta2="0.95",
        ddp_timeout="2",
        gradient_checkpointing="true",
        optim="adamw_torch",
        lr_scheduler_kwargs='{"power": 2}',
        gradient_checkpointing_kwargs={"use_reentrant": False},
        run_name="none",
        neftune_noise_alpha="5",
    )
    assert parsed == {
        "adam_beta2": 0.95,
        "ddp_timeout": 2,
        "gradient_checkpointing": True,
        "optim": "adamw_torch",
        "lr_scheduler_kwargs": '{"power": 2}',
        "gradient_checkpointing_kwargs": {"use_reentrant": False},
        "run_name": None,
        "neftune_noise_alpha": 5.0,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"adam_beta3": 1},
            "`trainer` takes fields of SentenceTransformerTrainingArguments, and 'adam_beta3' is none. "
            "Did you mean 'adam_beta",
        ),
        ({"seed": 1}, "`trainer` seed is set by samesense. In its place: `seed`."),
        (
            {"multi_dataset_batch_sampler": "x"},
            "`trainer` multi_dataset_batch_sampler is set by samesense. In its place: `mixing`",
        ),
        ({"output_dir": "x"}, "`trainer` output_dir is set by samesense. In its place: `output`."),
        ({"ddp_timeout": "many"}, "`trainer` ddp_timeout is of type int; received 'many'."),
        ({"dataloader_num_workers": 2}, "`trainer` dataloader_num_workers is set by samesense. In its place: batches "),
    ],
)
def test_what_is_unknown_ours_or_of_another_type_is_refused_by_name(options, message):
    with pytest.raises(ConfigError) as error:
        fields(**options)
    assert str(error.value).startswith(message)


def test_every_field_that_is_ours_exists_or_did():
    dataclass_fields = SentenceTransformerTrainingArguments.__dataclass_fields__
    assert set(OURS) <= set(dataclass_fields)


def test_words_of_the_command_line_and_a_table_of_a_file_are_one(tmp_path):
    options = {"trainer": ("adam-beta2=0.95", "optim_args=a=b")}
    table = {"adam_beta2": "0.95", "optim_args": "a=b"}
    assert CosentSettings(**options).trainer == table
    mine = tmp_path / "mine.toml"
    mine.write_text('report_to = ["tensorboard"]\n[trainer]\nadam_beta2 = 0.95\n')
    _, chosen = choose(str(mine), {}, kind="scored")
    assert (chosen.trainer, chosen.report_to) == ({"adam_beta2": 0.95}, ("tensorboard",))
    with pytest.raises(ConfigError, match=r"^`trainer` takes fields as key=value; received 'adam_beta2'\.$"):
        CosentSettings(trainer=["adam_beta2"])


class Arguments(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.seen = args


def test_the_trainer_has_them(tiny_trunk, toy_pairs, tmp_path):
    arguments = Arguments()
    settings = TrainingSettings(
        max_steps=1, precision="float32", trainer={"adam_beta2": 0.5, "logging_steps": "1"}, lr_scheduler_type="cosine"
    )
    run_of(tiny_trunk, toy_pairs, tmp_path / "run", settings, selecting=False, callbacks=[arguments])
    assert (arguments.seen.adam_beta2, arguments.seen.logging_steps, arguments.seen.report_to) == (0.5, 1.0, [])
    assert arguments.seen.run_name == "run"


def test_an_argument_that_the_trainer_refuses_is_a_mistake_of_the_user(tiny_trunk, toy_pairs, tmp_path):
    settings = TrainingSettings(max_steps=1, precision="float32", trainer={"optim": "adamm"})
    with pytest.raises(ConfigError, match=r"^The trainer refuses its arguments: .*adamm"):
        run_of(tiny_trunk, toy_pairs, tmp_path / "run", settings)


@pytest.mark.parametrize("budget", [None, 16])
def test_gradient_checkpointing_changes_no_weight(tiny_trunk, toy_pairs, tmp_path, budget):
    def trained(**trainer):
        settings = TrainingSettings(
            max_steps=3, precision="float32", trainer=trainer, mini_batch_num_tokens=budget, learning_rate=1e-3
        )
        model, _, _ = run_of(tiny_trunk, toy_pairs, tmp_path / f"run{len(trainer)}", settings, selecting=False)
        return model

    plain = trained()
    checkpointed = trained(gradient_checkpointing="true")
    assert checkpointed[0].model.is_gradient_checkpointing
    for parameter, expected in zip(plain.parameters(), checkpointed.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected, atol=1e-6, rtol=1e-5)


class Follower(TrainerCallback):
    """Stands for the callback of a service, such as that of wandb."""

    records: ClassVar[list] = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.records.append((args.run_name, state.global_step, sorted(logs)))


def data_of(method, pairs, sentences, folder):
    """Files on which a method trains."""
    if method in ("cosent", "cross"):
        return str(pairs / "train.tsv")
    if method == "surrogate":
        return write_harvest(folder / "harvest", some_pairs(60))
    lines = sentences
    if method == "supmpn":
        lines = ["anchor\tpositive", *(f"{first}\t{second}" for first, second in pairwise(sentences))]
    if method == "sections":
        sections = [{"sentences": sentences[index : index + 5]} for index in range(0, 40, 5)]
        lines = [json.dumps({"id": index, "sections": sections[index : index + 2]}) for index in range(0, 8, 2)]
    path = folder / f"data.{ {'supmpn': 'tsv', 'sections': 'jsonl'}.get(method, 'txt') }"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


METHODS = ("cosent", "cross", "supmpn", "simcse", "rankcse", "sections", "surrogate", "distil")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_them_all(tiny_trunk, toy_pairs, sentences, tmp_path, monkeypatch, method):
    """A stub of a reporter, a field of the trainer, adapters, widths and a prompt."""
    monkeypatch.setitem(INTEGRATION_TO_CALLBACK, "wandb", Follower)
    monkeypatch.setattr("samesense.execution.trainer_fields._check_reporters", lambda names: None)
    monkeypatch.setattr(Follower, "records", [])
    settings = {
        "max_steps": 2,
        "precision": "float32",
        "batch_size": 8,
        "prompt": "a red ",
        "report_to": "wandb",
        "trainer": {"logging_steps": 1},
        "output": tmp_path / "run",
    }
    settings |= {"encoder": "cross"} if method == "cross" else {"matryoshka": "8"}
    settings |= {"lora": 2} if importlib.util.find_spec("peft") else {}
    settings |= {"teacher": (str(tiny_trunk),)} if method in ("rankcse", "distil") else {}
    settings |= {"held_out_share": 0.2} if method == "surrogate" else {}
    data = data_of(method, toy_pairs, sentences, tmp_path)
    if method == "distil":
        run = samesense.distil(data, student=str(tiny_trunk), **settings)
    else:
        name = "cosent" if method == "cross" else method
        run = samesense.train(data, method=name, dev="none", model=str(tiny_trunk), **settings)
    assert [step for name, step, logged in Follower.records if name == "run" and "loss" in logged] == [1, 2]
    assert json.loads((run.folder / "manifest.json").read_text())["settings"]["report_to"] == ["wandb"]
    config = json.loads((run.model / "config_sentence_transformers.json").read_text())
    assert config["prompts"][config["default_prompt_name"]] == "a red "


def test_what_is_not_installed_is_named_before_anything_is_computed(tiny_trunk, toy_pairs, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"^`report_to` mlflow needs the package mlflow: pip install mlflow$"):
        samesense.train(
            str(toy_pairs / "train.tsv"), model=str(tiny_trunk), report_to="mlflow", output=tmp_path / "run", **QUICK
        )
    assert not (tmp_path / "run").exists()


def test_tensorboard_has_loss_and_dev_score(tiny_trunk, toy_pairs, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = samesense.train(
        str(toy_pairs / "train.tsv"),
        model=str(tiny_trunk),
        report_to=["tensorboard"],
        output=tmp_path / "run",
        **QUICK | {"dev": str(toy_pairs / "dev.tsv"), "max_steps": 5},
    )
    events = EventAccumulator(str(run.folder / "tensorboard")).Reload()
    scores = events.Scalars("eval/dev_spearman")
    assert [event.step for event in scores] == [0, 1, 2, 3, 4, 5]
    assert max(event.value for event in scores[1:]) == pytest.approx(run.output.best_dev_spearman)
    assert "train/loss" in events.Tags()["scalars"]


def test_trackio_has_loss_and_dev_score_without_a_network(tiny_trunk, toy_pairs, tmp_path):
    pytest.importorskip("trackio")
    code = (
        "import sys, samesense; train, dev, model, output = sys.argv[1:]; "
        "samesense.train(train, dev=dev, model=model, output=output, report_to='trackio', max_steps=3, eval_steps=1, "
        "batch_size=8, precision='float32', report=False)"
    )
    arguments = [str(toy_pairs / "train.tsv"), str(toy_pairs / "dev.tsv"), str(tiny_trunk), str(tmp_path / "mine")]
    env = {**os.environ, "TRACKIO_DIR": str(tmp_path / "kept"), "HF_HUB_OFFLINE": "1"}  # read when it is imported
    subprocess.run([sys.executable, "-c", code, *arguments], env=env, check=True, capture_output=True)
    with closing(sqlite3.connect(tmp_path / "kept" / "samesense.db")) as database:
        rows = [
            (name, json.loads(logged)) for name, logged in database.execute("SELECT run_name, metrics FROM metrics")
        ]
    assert {name for name, _ in rows} == {"mine"}
    assert sum("eval/dev_spearman" in logged for _, logged in rows) == 4
    assert any("train/loss" in logged for _, logged in rows)
