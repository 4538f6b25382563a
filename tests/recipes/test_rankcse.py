"""RankCSE: the ranking of teachers, learnt from unlabelled sentences; each term a switch."""

import json
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from transformers import AutoTokenizer, TrainerCallback

from samesense.data import read_pairs
from samesense.data.sentences import read_unlabelled
from samesense.errors import ConfigError, ModelError
from samesense.losses.rank_cse import RankCSE
from samesense.recipes.methods import METHODS
from samesense.recipes.run import job as run_job
from samesense.recipes.run.job import Job
from samesense.recipes.unsupervised import rankcse
from samesense.recipes.unsupervised.settings import RankcseSettings
from samesense.recipes.unsupervised.views import GeometryPath, LossTerms
from samesense.training import teachers
from tests.conftest import WORDS
from tests.messages import listen

TOPICS = {word: index // 8 for index, word in enumerate(WORDS[:48])}


@pytest.fixture
def corpus(toy_pairs):
    return read_unlabelled(toy_pairs / "train.tsv")


@pytest.fixture
def wise(corpus, tmp_path):
    """A teacher that knows the hidden topics: how many words of each a sentence has."""
    rows = np.array([np.bincount([TOPICS[w] for w in text.split()], minlength=6) for text in corpus.texts])
    np.savez(tmp_path / "wise.npz", texts=np.array(corpus.texts), embeddings=(rows + 0.01).astype(np.float32))
    return f"vectors:{tmp_path / 'wise.npz'}"


@pytest.fixture
def settings(tiny_trunk, wise):
    return RankcseSettings(
        model=str(tiny_trunk),
        teacher=(wise,),
        learning_rate=2e-3,
        batch_size=32,
        epochs=6,
        eval_steps=20,
        pooling="mean",
        precision="float32",
        seed=1,
    )


def test_a_student_learns_what_its_teacher_knows(corpus, settings, toy_pairs, tmp_path):
    dev = read_pairs(toy_pairs / "dev.tsv")
    trained = METHODS["rankcse"].run(corpus, settings, tmp_path / "run", dev=dev, test=dev)
    before, after = (r.value for r in trained.results if r.metric == "spearman")
    assert after > before + 0.4
    stores = list((tmp_path / "run" / "teachers").glob("*/vectors.npy"))
    assert [np.load(store).shape for store in stores] == [(len(corpus), 6)]


@pytest.mark.parametrize(("rank", "equal"), [("listmle", math.lgamma(33)), ("listnet", math.log(31))])
def test_the_terms_of_the_loss_are_logged_beside_the_ranking_of_equal_scores(corpus, settings, tmp_path, rank, equal):
    lines = listen()
    settings = settings.model_copy(update={"rank": rank, "max_steps": 8, "logging_steps": 2})
    METHODS["rankcse"].run(corpus, settings, tmp_path / "run")
    log = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    terms = [entry for entry in log if "loss_rank" in entry]
    assert terms and all({"loss", "loss_contrast", "loss_consistency"} <= entry.keys() for entry in terms)
    for entry in terms:
        assert entry["loss_rank_if_equal"] == pytest.approx(equal, abs=2e-4)
        total = entry["loss_contrast"] + entry["loss_consistency"] + entry["loss_rank"]
        assert entry["loss"] == pytest.approx(total, rel=1e-3)
    assert terms[-1]["loss_rank"] < terms[0]["loss_rank"] < equal
    assert not any("was not learnt" in line for line in lines)


def test_a_ranking_that_is_not_learnt_is_said(corpus, settings, tmp_path):
    lines = listen()
    settings = settings.model_copy(update={"learning_rate": 1e-9, "tau2": 1e3, "max_steps": 4, "logging_steps": 2})
    METHODS["rankcse"].run(corpus, settings, tmp_path / "run")
    assert sum("the ranking of the teachers was not learnt: its term ended at 81.56" in line for line in lines) == 1


def test_a_student_learns_from_batches_of_neighbours_and_keeps_no_vectors_in_its_checkpoints(
    corpus, settings, toy_pairs, tmp_path
):
    dev = read_pairs(toy_pairs / "dev.tsv")
    settings = settings.model_copy(update={"batches": "neighbours"})
    trained = METHODS["rankcse"].run(corpus, settings, tmp_path / "run", dev=dev, test=dev)
    before, after = (r.value for r in trained.results if r.metric == "spearman")
    assert after > before + 0.3
    sampler = pickle.loads(pickle.dumps(rankcse._BatchesOfNeighbours([object()], [1.0])))
    assert (sampler.stores, sampler.shares) == ([], [1.0])


def test_batches_hold_sentences_that_two_teachers_put_close_together(tiny, tiny_trunk, corpus, wise, tmp_path):
    settings = RankcseSettings(
        teacher=(wise, str(tiny_trunk)), teacher_weights=(3, 1), teacher_dtype="float32", batches="neighbours"
    )
    texts = corpus.take(range(64))
    inputs = rankcse.prepare(tiny, Job(method="rankcse", data=texts, settings=settings, output=tmp_path))
    inputs.before_training()
    sampler = inputs.batches(inputs.dataset, batch_size=8)
    by_width = {store.shape[1]: store for store in map(np.load, (tmp_path / "teachers").glob("*/vectors.npy"))}
    cosines = 0.75 * by_width[6] @ by_width[6].T
    trunk = next(store for width, store in by_width.items() if width != 6)
    cosines += 0.25 * trunk @ trunk.T
    assert sampler.vectors @ sampler.vectors.T == pytest.approx(cosines, abs=1e-5)
    within = np.mean([cosines[np.ix_(batch, batch)].mean() for batch in sampler])
    assert within > cosines.mean() + cosines.std() / 2


def test_every_setting_reaches_the_loss(tiny):
    overrides = {
        "rank": "listnet",
        "contrast": 0.5,
        "beta": 0.7,
        "gamma": 0.3,
        "tau1": 0.07,
        "tau2": 0.1,
        "tau3": 0.02,
        "consistency": "community",
        "include_diagonal": True,
    }
    settings = RankcseSettings(
        teacher=("a", "b"), teacher_weights=(1, 3), mini_batch_num_tokens=99, head="train-only", **overrides
    )
    stores = [SimpleNamespace(rows=torch.eye(4).__getitem__)] * 2
    loss = RankCSE(tiny, **rankcse.terms(tiny, settings, stores))
    assert loss.settings == overrides and loss.weights == [0.25, 0.75]
    assert (loss.mini_batch_num_tokens, loss.two_views, loss.head is None) == (99, True, False)


def test_vectors_of_teachers_are_kept_as_asked(tiny, tiny_trunk, corpus, tmp_path):
    settings = RankcseSettings(teacher=(str(tiny_trunk),), teacher_dtype="float32", teacher_cache=str(tmp_path))
    job = Job(method="rankcse", data=corpus.take(range(40)), settings=settings, output=tmp_path / "run")
    rankcse.prepare(tiny, job).before_training()
    (vectors,) = tmp_path.glob("*/vectors.npy")
    assert np.load(vectors).dtype == np.float32


def test_the_geometry_of_dev_is_followed(tiny, corpus, toy_pairs, tmp_path):
    settings = RankcseSettings(gamma=0, geometry=True)
    dev = read_pairs(toy_pairs / "dev.tsv")
    job = Job(method="rankcse", data=corpus, settings=settings, output=tmp_path, dev=dev)
    assert [type(callback) for callback in rankcse.prepare(tiny, job).callbacks] == [GeometryPath, LossTerms]


def test_every_ranking_loss_is_said(corpus, settings, tmp_path):
    for rank in ("listnet", "listmle", "cosent"):
        messages = listen()
        METHODS["rankcse"].run(corpus, settings.model_copy(update={"rank": rank, "max_steps": 1}), tmp_path / rank)
        assert f"loss: 1 x InfoNCE + 1 x JS consistency + 1 x {rank} of 1 x {settings.teacher[0]}" in messages


def test_teachers_are_shared_by_runs(corpus, settings, tiny_trunk, tmp_path):
    update = {
        "teacher": (str(tiny_trunk), *settings.teacher),
        "teacher_weights": (1.0, 2.0),
        "max_steps": 2,
        "teacher_cache": str(tmp_path / "shared"),
    }
    messages = listen()
    for seed in (1, 2):
        seeded = settings.model_copy(update={**update, "seed": seed})
        METHODS["rankcse"].run(corpus, seeded, tmp_path / str(seed))
        assert not (tmp_path / str(seed) / "teachers").exists()
    assert [line.split()[2] for line in messages if line.startswith("teacher ")] == [
        "encoding",
        "encoding",
        "vectors",
        "vectors",
    ]
    record = json.loads((tmp_path / "1" / "manifest.json").read_text())
    assert f"listmle of 0.333333 x {tiny_trunk} + 0.666667 x {settings.teacher[0]}" in record["summary"][1]


@pytest.mark.parametrize("off", [{"gamma": 0.0}, {"contrast": 0.0, "beta": 0.0}])
def test_every_ablation_of_table_4_is_a_switch(corpus, settings, tmp_path, off):
    messages = listen()
    quick = settings.model_copy(update={**off, "max_steps": 2})
    METHODS["rankcse"].run(corpus, quick, tmp_path / "run")
    loss = next(line for line in messages if line.startswith("loss: "))
    assert ("InfoNCE" in loss, "JS" in loss, "listmle" in loss) == tuple(
        name not in off for name in ("contrast", "beta", "gamma")
    )
    assert (tmp_path / "run" / "teachers").exists() == ("gamma" not in off)


def test_the_paper_and_the_community_code_train_differently(corpus, settings, tmp_path):
    losses = {}
    for name in ("js", "community"):
        METHODS["rankcse"].run(
            corpus, settings.model_copy(update={"max_steps": 4, "consistency": name}), tmp_path / name
        )
        entries = [json.loads(line) for line in (tmp_path / name / "history.jsonl").read_text().splitlines()]
        losses[name] = [entry["loss"] for entry in entries if "loss" in entry]
    assert losses["community"][0] < losses["js"][0] - 1  # minus an entropy of up to log 32


def test_a_student_without_dropout_learns_from_one_view(corpus, settings, tiny_trunk, toy_pairs, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk).backend_tokenizer
    static = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)], device="cpu")
    static.save(str(tmp_path / "static"))
    update = {"model": str(tmp_path / "static"), "pooling": None, "max_seq_length": None, "learning_rate": 5e-2}
    settings = settings.model_copy(update=update)
    with pytest.raises(ConfigError, match="learn the ranking from one view alone: views one and beta 0"):
        METHODS["rankcse"].run(corpus, settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    dev = read_pairs(toy_pairs / "dev.tsv")
    one_view = settings.model_copy(update={"views": "one", "beta": 0.0})
    trained = METHODS["rankcse"].run(corpus, one_view, tmp_path / "run", dev=dev, test=dev)
    before, after = (r.value for r in trained.results if r.metric == "spearman")
    assert after > before + 0.4


class Killed(BaseException):
    pass


class KillAtStep25(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 25:
            raise Killed


@pytest.mark.slow
def test_resume_after_a_kill_gives_the_uninterrupted_run(corpus, settings, toy_pairs, tmp_path, monkeypatch):
    """While a teacher encodes, and while the student learns."""
    dev = read_pairs(toy_pairs / "dev.tsv")
    update = {"epochs": 4.0, "eval_steps": 10, "teacher_cache": str(tmp_path / "cache")}
    settings = settings.model_copy(update=update)
    alone = settings.model_copy(update={"teacher_cache": None})
    whole = METHODS["rankcse"].run(corpus, alone, tmp_path / "whole", dev=dev, test=dev)

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(teachers, "_encode_normalised", killed)
        with pytest.raises(Killed):
            METHODS["rankcse"].run(corpus, settings, tmp_path / "killed", dev=dev, test=dev)
    fit = run_job.fit
    with monkeypatch.context() as patch:
        patch.setattr(run_job, "fit", lambda *a, callbacks, **k: fit(*a, callbacks=[*callbacks, KillAtStep25()], **k))
        with pytest.raises(Killed):
            METHODS["rankcse"].run(corpus, settings, tmp_path / "killed", dev=dev, test=dev, resume=True)
    resumed = METHODS["rankcse"].run(corpus, settings, tmp_path / "killed", dev=dev, test=dev, resume=True)
    assert [r.value for r in resumed.results] == [r.value for r in whole.results]
    assert resumed.output.best_step == whole.output.best_step


def test_what_cannot_be_trained_is_refused_before_anything_is_written(corpus, settings, tmp_path):
    for update, error, message in (
        ({"teacher": ()}, ConfigError, r"none was named\. Give a teacher, or gamma 0"),
        ({"teacher": (str(tmp_path / "absent"),)}, ModelError, "There is no model folder"),
        ({"teacher": ("python:math:sqrt",)}, ConfigError, "a function may change between runs"),
    ):
        with pytest.raises(error, match=message):
            METHODS["rankcse"].run(corpus, settings.model_copy(update=update), tmp_path / "run")
    assert not (tmp_path / "run").exists()
