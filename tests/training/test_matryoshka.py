"""Matryoshka embeddings: the losses of all widths are summed, with one forward of the model."""

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard

import samesense
from samesense.encoder.assembly.students import make_student
from samesense.errors import ConfigError, ModelError
from samesense.inference.models.maps import apply_maps
from samesense.losses.base import nest
from samesense.losses.cosent import CoSENT
from samesense.losses.distillation import Distillation
from samesense.losses.info_nce import InfoNCE, projection
from samesense.losses.softmax import Softmax
from samesense.recipes.cosent.settings import CosentSettings
from tests.command import run_command
from tests.training.bert import take_gradient
from tests.training.registered import specs, trained_on

BI = specs("bi")
WIDTHS = (16, 8)


def made(model, spec, rows=12, **options):
    settings, targets, texts, labels = trained_on(spec, rows, **options)
    torch.manual_seed(3)
    columns = [model.preprocess(column) for column in texts]
    return spec.build(model, settings, targets), columns, None if labels is None else torch.tensor(labels)


@pytest.mark.parametrize("name", BI)
def test_every_loss_is_that_of_the_whole_and_of_each_width(tiny, name):
    tiny.eval()
    loss, columns, labels = made(tiny, BI[name])
    embeddings = [tiny(dict(column))["sentence_embedding"] for column in columns]
    truncated = {32: embeddings}
    for width in WIDTHS:  # a classifier reads zeros for what is cut off
        whole = name == "softmax"
        truncated[width] = [
            torch.cat([rows[:, :width], torch.zeros(len(rows), 32 - width if whole else 0)], 1) for rows in embeddings
        ]
    expected = sum(loss.compute_loss_from_embeddings(rows, labels).item() for rows in truncated.values())
    nest(loss, WIDTHS, 32)
    assert loss(columns, labels).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", BI)
def test_a_token_budget_changes_nothing(tiny, name):
    tiny.eval()
    values = []
    for budget in (None, 20):
        loss, columns, labels = made(tiny, BI[name], mini_batch_num_tokens=budget)
        nest(loss, WIDTHS, 32)
        value = loss(columns, labels)
        value.backward()
        values.append((value.detach(), take_gradient(tiny)))
    torch.testing.assert_close(values[0], values[1], atol=2e-5, rtol=1e-3)


def test_layers_of_the_loss_read_whole_rows(tiny):
    column = tiny.preprocess(["a dog eats", "the cat sleeps", "one bird sings"])
    teacher = torch.randn(3, 32, generator=torch.Generator().manual_seed(0)).__getitem__
    for loss, labels in (
        (InfoNCE(tiny, head=projection(32)), None),
        (Distillation(tiny, teachers=[teacher], widths=[32], dim=32), torch.arange(3)),
        (Softmax(tiny, classes=2), None),
    ):
        nest(loss, WIDTHS, 32)
        columns, labels = ([column] * 2, torch.tensor([0, 1, 1])) if isinstance(loss, Softmax) else ([column], labels)
        assert torch.isfinite(loss(columns, labels))


def test_widths_are_read_from_one_word_and_checked(tiny):
    assert CosentSettings(matryoshka="8,16").matryoshka == WIDTHS == CosentSettings(matryoshka=("16,8", 8)).matryoshka
    with pytest.raises(ConfigError, match=r"^`matryoshka` takes widths from 1 on; received 0\.$"):
        CosentSettings(matryoshka="0,16")
    with pytest.raises(ConfigError, match=r"^matryoshka belongs to encoder bi"):
        CosentSettings(matryoshka=16, encoder="cross")
    with pytest.raises(ConfigError, match=r"below that of the model's vectors, 32, .* received 64, 16\.$"):
        nest(CoSENT(tiny), (64, 16), 32)


def test_a_run_says_what_each_width_is_worth(tiny_trunk, toy_pairs, tmp_path):
    files = {split: str(toy_pairs / f"{split}.tsv") for split in ("train", "dev", "test")}

    def trained(name, **options):
        return samesense.train(
            files["train"],
            dev=files["dev"],
            test=files["test"],
            model=str(tiny_trunk),
            max_steps=40,
            eval_steps=40,
            learning_rate=3e-3,
            precision="float32",
            seed=1,
            output=tmp_path / name,
            **options,
        )

    def narrow(run):
        model = samesense.load(run.model, dim=4, precision="float32")
        [result] = [
            evaluated for evaluated in samesense.evaluate(model, files["test"]) if evaluated.metric == "spearman"
        ]
        return result.value

    plain = trained("plain")
    run = trained("nested", matryoshka="8,4")
    assert narrow(run) > narrow(plain) + 0.05
    rows = {row.model: row for row in run.results if (row.task, row.metric) == ("matryoshka", "spearman")}
    home = str(tmp_path / "nested")
    assert list(rows) == [f"{home}+dim:8", f"{home}+dim:4"]
    assert rows[f"{home}+dim:4"].value == pytest.approx(narrow(run))
    assert rows[f"{home}+dim:4"].protocol.startswith(
        "cosine, mean pooling, float32, at most 64 tokens, first 4 dimensions; "
    )
    own_result = next(row for row in run.results if (row.task, row.model, row.metric) == ("sts", home, "spearman"))
    assert run.verdict.task.end == pytest.approx(own_result.value)
    card = ModelCard.load(run.model / "README.md")
    assert f"| all | test.tsv | {100 * own_result.value:.2f} |" in card.text
    assert f"| 4 | test.tsv | {100 * narrow(run):.2f} |" in card.text
    assert len(card.data.eval_results) == 2


def test_encode_keeps_the_first_numbers_at_unit_length(tiny, tiny_trunk, sentences, tmp_path):
    rows = samesense.load(tiny, precision="float32").encode(sentences)[:, :5]
    expected = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for vectors in (
        samesense.load(tiny, dim=5, precision="float32").encode(sentences),
        samesense.load(f"{tiny_trunk}+dim:5", precision="float32").encode(sentences),
        samesense.encode(str(tiny_trunk), sentences, dim=5, precision="float32"),
        apply_maps(samesense.load(tiny, precision="float32"), "+dim:9+dim:5", None).encode(sentences),
    ):
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert samesense.load(f"{tiny_trunk}+dim:5").identity != samesense.load(f"{tiny_trunk}+dim:6").identity
    with pytest.raises(ModelError, match=r"^\+dim:33 keeps 33 numbers of each vector, and these have 32\.$"):
        samesense.load(tiny, dim=33).encode(["a dog"])
    with pytest.raises(ConfigError, match=r"^\+dim keeps the first numbers of each vector, as in \+dim:64"):
        samesense.load(f"{tiny_trunk}+dim")


def test_the_command_has_it_too(tiny_trunk, sentences, tmp_path, capsys):
    lines = tmp_path / "texts.txt"
    output = tmp_path / "vectors.npy"
    lines.write_text("\n".join(sentences) + "\n")
    assert run_command(capsys, "encode", tiny_trunk, lines, "--dim", 5, "--output", output)[0] == 0
    assert np.load(output).shape == (40, 5)


def test_a_student_too(tiny_trunk, sentences, toy_pairs, tmp_path):
    student = make_student("static:16", str(tiny_trunk), sentences)
    assert student.get_embedding_dimension() == 16
    run = samesense.distil(
        sentences,
        teacher=str(tiny_trunk),
        student="static:16",
        dev=str(toy_pairs / "dev.tsv"),
        max_steps=2,
        matryoshka="8",
        precision="float32",
        output=tmp_path / "run",
    )
    text = (run.model / "README.md").read_text()
    assert "## Distilled" in text
    assert "| 8 | dev.tsv |" in text
