"""The RankCSE objective asks its teachers by row number: the same loss as from their vectors, whoever holds them."""

import numpy as np
import pytest
import torch

from samesense.data.sentences import Sentences
from samesense.encoder.encode import encode
from samesense.losses import cosine_matrix, rank_cse, teacher_scores
from samesense.losses.rank_cse import RankCSE
from samesense.recipes.teachers import open_teacher
from samesense.training.teachers import teacher_store
from tests.references.rank_distillation import rank_cse as reference
from tests.references.rank_distillation import teacher_scores as reference_teacher

ROWS = torch.tensor([31, 4, 17, 0, 22, 9])


@pytest.fixture
def columns(tiny, sentences):
    tiny.eval()
    return [tiny.preprocess([sentences[row] for row in ROWS])]


def test_a_store_gives_the_loss_of_the_vectors(tiny, tiny_trunk, sentences, columns, tmp_path):
    corpus = Sentences(texts=sentences, source="made", name="made")
    direct = encode(tiny, [sentences[row] for row in ROWS], precision="float32")
    student = tiny(dict(columns[0]))["sentence_embedding"]
    expected = rank_cse(cosine_matrix(student, student), teacher_scores([torch.tensor(direct)], [1]), rank="listnet")
    for dtype, tolerance in (("float32", 1e-5), ("float16", 1e-3)):
        store = teacher_store(open_teacher(str(tiny_trunk), precision="float32"), corpus, tmp_path, dtype=dtype)
        loss = RankCSE(tiny, teachers=[store.rows], rank="listnet")(columns, ROWS)
        torch.testing.assert_close(loss, expected.total, atol=tolerance, rtol=tolerance)


def test_every_setting_and_teacher_reaches_the_loops(tiny, sentences, columns):
    vectors = [np.random.default_rng(seed).normal(size=(40, 3 + seed)) for seed in range(3)]
    settings = {"beta": 0.7, "gamma": 0.3, "tau1": 0.07, "tau2": 0.1, "tau3": 0.02, "contrast": 0.4}
    objective = RankCSE(
        tiny,
        teachers=[torch.tensor(v).__getitem__ for v in vectors],
        weights=[1, 2, 0.5],
        rank="listnet",
        consistency="community",
        **settings,
    )
    student = tiny(dict(columns[0]))["sentence_embedding"]
    teacher = reference_teacher([[v[row].tolist() for row in ROWS] for v in vectors], [1, 2, 0.5])
    scores = cosine_matrix(student, student).tolist()
    expected = reference(scores, teacher, "listnet", consistency="community", **settings)
    assert objective(columns, ROWS).item() == pytest.approx(expected, rel=1e-4)
    assert objective.get_config_dict()["teacher_weights"] == [1, 2, 0.5]


def test_two_views_differ_by_dropout_and_one_view_is_one_forward(tiny, columns):
    tiny.train()
    counts = []
    tiny.register_forward_hook(lambda module, args, out: counts.append(len(out["sentence_embedding"])))
    teacher = torch.eye(40).__getitem__
    for two_views, rows in ((True, 12), (False, 6)):
        counts.clear()
        loss = RankCSE(tiny, teachers=[teacher], two_views=two_views, beta=0)(columns, ROWS)
        loss.backward()
        assert sum(counts) == rows
    scores = {}
    real = RankCSE(tiny, teachers=[teacher], gamma=1.0)
    real.loss = lambda embeddings, labels: scores.update(views=embeddings[:2]) or embeddings[0].sum()
    real(columns, ROWS)
    assert not torch.allclose(*scores["views"])


def test_views_are_compared_with_each_other_and_not_with_themselves(tiny):
    first, second = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    value = RankCSE(tiny, gamma=0).total([first, second], [])
    torch.testing.assert_close(value, rank_cse(cosine_matrix(first, second), None, rank="listmle", gamma=0).total)


def test_without_ranking_no_teacher_is_asked_and_no_label_needed(tiny, columns):
    objective = RankCSE(tiny, teachers=[lambda rows: pytest.fail("asked")], gamma=0)
    assert objective.labels == "none"
    assert objective(columns).isfinite()


def test_misuse(tiny, columns):
    with pytest.raises(ValueError, match=r"RankCSE needs a teacher for its ranking term; received none"):
        RankCSE(tiny)
    with pytest.raises(ValueError, match=r"one weight a teacher; received 1 teachers and 2 weights"):
        RankCSE(tiny, teachers=[torch.eye(2).__getitem__], weights=[1, 2])
    objective = RankCSE(tiny, teachers=[torch.eye(40).__getitem__])
    for labels, received in (
        (None, "none"),
        (torch.zeros(6), r"torch\.float32 \(6,\)"),
        (ROWS[:3], r"torch\.int64 \(3,\)"),
    ):
        with pytest.raises(ValueError, match=f"the row number of each of 6 sentences; received {received}"):
            objective(columns, labels)
