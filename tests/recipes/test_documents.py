"""Documents without labels: some are held out, their sections give the verdict; without a gain the start is kept."""

import json
from dataclasses import replace

import numpy as np
import pytest

import samesense
from samesense.inference.models.load import load
from samesense.recipes.planning.plan import plan
from samesense.recipes.run import evaluation_phase
from samesense.recipes.run.outcome import conclude
from samesense.training import manifest
from tests.conftest import WORDS

pytest.importorskip("accelerate")

SMALL = {"max_steps": 2, "batch_size": 8, "precision": "float32"}


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """Forty documents of two sections each, in JSON lines."""
    draw = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("documents") / "two words.jsonl"
    lines = []
    for _ in range(40):
        sections = [{"sentences": [" ".join(draw.choice(WORDS, 6)) for _ in range(4)]} for _ in range(2)]
        lines.append(json.dumps({"sections": sections}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("method", ["simcse", "sections"])
def test_a_run_on_documents_ends_with_a_verdict_on_sections(documents, tiny_trunk, tmp_path, method):
    trained = samesense.train(documents, method=method, model=str(tiny_trunk), output=tmp_path / "run", **SMALL)
    finding = trained.verdict.task
    assert (finding.role, finding.n, finding.metric) == ("held-out sections", 10, "accuracy")
    assert "documents held out" in finding.line()
    assert "about topics, not about meaning" in finding.line()
    assert trained.verdict.keep_reason == ""
    assert manifest.read(tmp_path / "run")["verdict"]["sets"][0]["role"] == "held-out sections"
    assert "predicts the classes" not in str(trained)


@pytest.mark.parametrize("tuned", [True, False])
@pytest.mark.parametrize("word", ["better", "no difference", "worse"])
def test_the_start_is_kept_where_training_does_not_help(documents, tiny_trunk, tmp_path, monkeypatch, word, tuned):
    """A start never tuned for sentences is kept where training does harm."""
    compared = conclude.compared

    def pretended(*args):
        verdict = compared(*args)
        ends = {"better": (0.01, 0.1), "no difference": (-0.1, 0.1), "worse": (-0.1, -0.01)}[word]
        return replace(verdict, task=replace(verdict.task, low=ends[0], high=ends[1]))

    monkeypatch.setattr(conclude, "compared", pretended)
    monkeypatch.setattr(evaluation_phase, "is_untuned", lambda *_: not tuned)
    is_kept = word == "worse" or (tuned and word == "no difference")
    trained = samesense.train(documents, model=str(tiny_trunk), output=tmp_path / "run", learning_rate=0.05, **SMALL)
    texts = ["a small dog", "the red house sleeps"]
    settings = plan(documents, settings={"model": str(tiny_trunk)}).settings
    start = load(str(tiny_trunk), pooling=settings.bare_pooling).encode(texts)
    assert np.allclose(load(trained.folder).encode(texts), start, atol=1e-5) == is_kept
    card = (trained.model / "README.md").read_text(encoding="utf-8")
    if not is_kept:
        assert trained.verdict.keep_reason == ""
        assert "trained by simcse" in card
    else:
        assert "model/ is the start" in str(trained)
        assert "kept as it is, as training by simcse was not shown to help" in card


def test_few_documents_have_no_verdict_and_hear_what_would_give_one(documents, tiny_trunk, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation_phase, "is_untuned", lambda *_: False)
    few = tmp_path / "few.jsonl"
    few.write_text("".join(documents.read_text().splitlines(keepends=True)[:10]))
    trained = samesense.train(few, model=str(tiny_trunk), output=tmp_path / "run", **SMALL)
    conclusion = "\n".join(trained.conclusion())
    assert "no verdict: of the documents, 10 have sentences to compare, and 27 are needed" in conclusion
    assert "samesense label" in conclusion
    assert "model/ is the start" in conclusion


def test_documents_are_not_held_out_beside_test_pairs(documents, toy_pairs):
    assert plan(documents, test=str(toy_pairs / "test.tsv")).train.held_out is None
    assert len(plan(documents).train.held_out.triplets) > 0


def test_a_learning_curve_needs_pairs(documents, tiny_trunk, tmp_path):
    with pytest.raises(samesense.errors.ConfigError, match="sections of documents are no pairs"):
        samesense.train(documents, model=str(tiny_trunk), output=tmp_path / "run", learning_curve=True, **SMALL)


def test_a_dry_run_says_on_what_the_verdict_will_be(documents, tiny_trunk, tmp_path):
    planned = plan(documents, settings={"model": str(tiny_trunk), **SMALL})
    assert any(line.startswith("beside the start: 10 examples that are documents held out") for line in planned.lines())
    assert any(line.startswith("estimate of the time") for line in planned.dry_run(tmp_path / "run"))


def test_a_warning_where_the_default_model_does_not_know_the_language(tmp_path):
    folder = tmp_path / "Akten & Garten"
    folder.mkdir()
    for number in range(3):
        text = f"Das Gericht hat den Antrag {number} abgelehnt.\n\nDie Frist ist kurz, und der Mieter zahlt nicht.\n"
        (folder / f"Datei {number}.txt").write_text(text, encoding="utf-8")
    assert "do not read as English" in "\n".join(plan(folder).lines())
