"""What every loss module must obey: the function's value, any cut of the batch, and a plain trainer."""

import pytest
import torch
from datasets import Dataset

from samesense import losses
from samesense.losses.check import loss_classes
from samesense.losses.contrastive import Contrastive
from samesense.losses.cosent import CoSENT
from samesense.losses.info_nce import InfoNCE, projection
from samesense.losses.mse import MSE
from samesense.losses.multi_positive import MultiPositive
from samesense.losses.rank_cse import RankCSE
from samesense.losses.softmax import Softmax
from samesense.losses.sup_con import SupCon
from samesense.losses.triplet import BatchTriplet, Triplet
from tests.training.registered import specs, trained_on

N = 12
TEACHERS = torch.randn(2 * N, 9, generator=torch.Generator().manual_seed(0))
ROWS = torch.randperm(2 * N, generator=torch.Generator().manual_seed(1))[:N]
BINARY, GRADES = torch.arange(N) % 2, (torch.arange(N) % 4).float()


def functional(name, e, labels, head):
    """The same loss written down directly."""
    e = e * 2 if len(e) == 1 else e  # without dropout two views are one
    cosines = losses.row_cosine(e[0], e[1])
    owners = torch.arange(N)
    return {
        "cosent": lambda: losses.cosent(cosines, labels),
        "angle": lambda: losses.cosent(losses.angle_scores(e[0], e[1]), labels, temperature=1.0),
        "sup_con": lambda: losses.sup_con(e[0], labels),
        "batch_all": lambda: losses.batch_all(e[0], labels),
        "batch_hard": lambda: losses.batch_hard(e[0], labels, distance="euclidean"),
        "simcse": lambda: losses.info_nce(head(e[0]), head(e[1])),
        "rank_cse": lambda: (
            losses.rank_cse(
                losses.cosine_matrix(head(e[0]), head(e[1])),
                losses.teacher_scores([TEACHERS[labels, :4], TEACHERS[labels, 4:]], [1, 2]),
                rank="listnet",
                beta=0.5,
            ).total
        ),
        "contrastive": lambda: losses.contrastive(cosines, labels, threshold=0.2),
        "mse": lambda: losses.mse(cosines, labels),
        "softmax": lambda: losses.softmax(head(losses.softmax_features(e[0], e[1], product=True)), labels),
        "triplet": lambda: losses.triplet(*e),
        "info_nce": lambda: losses.info_nce(e[0], e[1], torch.cat(e[2:])),
        "info_nce both": lambda: losses.info_nce(e[0], e[1], torch.cat(e[2:]), symmetric=True, hardness=2.0),
        "multi_positive both": lambda: losses.multi_positive(
            e[0], torch.cat(e[1:3]), e[3], positive_owner=owners.repeat(2), symmetric=True, hardness=2.0
        ),
        "multi_positive": lambda: losses.multi_positive(e[0], torch.cat(e[1:3]), e[3], positive_owner=owners.repeat(2)),
    }[name]()


CASES = {
    "cosent": (CoSENT, {}, 2, GRADES),
    "contrastive": (Contrastive, {"threshold": 0.2}, 2, BINARY),
    "mse": (MSE, {}, 2, GRADES / 3),
    "softmax": (Softmax, {"classes": 4, "dim": 32, "product": True}, 2, GRADES.long()),
    "triplet": (Triplet, {}, 3, None),
    "info_nce": (InfoNCE, {}, 4, None),
    "multi_positive": (MultiPositive, {"positives": 2}, 4, None),
    "info_nce both": (InfoNCE, {"symmetric": True, "hardness": 2.0}, 4, None),
    "multi_positive both": (MultiPositive, {"positives": 2, "symmetric": True, "hardness": 2.0}, 4, None),
    "angle": (CoSENT, {"similarity": "angle", "temperature": 1.0}, 2, GRADES),
    "sup_con": (SupCon, {}, 1, GRADES.long()),
    "batch_all": (BatchTriplet, {"mining": "all"}, 1, GRADES.long()),
    "batch_hard": (BatchTriplet, {"distance": "euclidean"}, 1, GRADES.long()),
    "simcse": (InfoNCE, {"head": True}, 1, None),
    "rank_cse": (
        RankCSE,
        {
            "teachers": [lambda rows: TEACHERS[rows, :4], lambda rows: TEACHERS[rows, 4:]],
            "weights": [1, 2],
            "rank": "listnet",
            "beta": 0.5,
            "head": True,
        },
        1,
        ROWS,
    ),
}


REGISTERED = specs("bi")
UNREGISTERED = ("info_nce", "multi_positive", "sup_con", "batch_all", "batch_hard", "simcse", "rank_cse")
"""Cases that no flag makes."""


def explicit(name, tiny, sentences):
    """Return what makes a loss module, its texts and its labels."""
    kind, settings, count, labels = CASES[name]
    texts = [[sentences[(i * (c + 2) + c) % 40] for i in range(N)] for c in range(count)]

    def make(**extra):
        torch.manual_seed(1)
        head = {"head": projection(32)} if "head" in settings else {}
        return kind(tiny, **{**settings, **head, **extra})

    return make, texts, labels


@pytest.fixture(params=[*REGISTERED, *UNREGISTERED])
def case(request, tiny, sentences):
    if request.param not in REGISTERED:
        return explicit(request.param, tiny, sentences)
    spec = REGISTERED[request.param]
    settings, targets, texts, labels = trained_on(spec, N)

    def make(**extra):
        torch.manual_seed(1)
        return spec.build(tiny, settings.model_copy(update=extra), targets)

    return make, texts, None if labels is None else torch.tensor(labels)


def gradients(loss_module):
    return torch.cat(
        [p.grad.flatten() if p.grad is not None else torch.zeros(p.numel()) for p in loss_module.parameters()]
    )


@pytest.mark.parametrize("name", CASES)
def test_value_is_that_of_the_function(name, tiny, sentences):
    make, texts, labels = explicit(name, tiny, sentences)
    tiny.eval()
    loss_module = make()
    columns = [tiny.preprocess(column) for column in texts]
    embeddings = [tiny(dict(column))["sentence_embedding"] for column in columns]
    expected = functional(name, embeddings, labels, getattr(loss_module, "head", None))
    torch.testing.assert_close(loss_module(columns, labels), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("budget", [1, 40, 10**6])
def test_any_cut_gives_the_same_loss_and_gradient(case, tiny, budget):
    make, texts, labels = case
    tiny.eval()

    def run(loss_module):
        tiny.zero_grad()
        loss = loss_module([tiny.preprocess(column) for column in texts], labels)
        loss.backward()
        return loss.detach(), gradients(loss_module)

    (whole, wanted), (cut, got) = run(make()), run(make(mini_batch_num_tokens=budget))
    torch.testing.assert_close(cut, whole, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(got, wanted, atol=3e-5, rtol=1e-3)
    assert wanted.abs().sum() > 0


@pytest.mark.parametrize("name", CASES)
def test_autocast_does_not_reach_the_loss(name, tiny, sentences):
    make, texts, labels = explicit(name, tiny, sentences)
    tiny.eval()
    loss_module = make()
    rows = [tiny(tiny.preprocess(column))["sentence_embedding"] for column in texts]
    rows = rows * 2 if name in ("simcse", "rank_cse") else rows  # two views
    with torch.autocast("cpu", torch.bfloat16):
        inside = loss_module.compute_loss_from_embeddings(rows, labels)
    assert inside.item() == loss_module.compute_loss_from_embeddings(rows, labels).item()


def test_trains_in_a_plain_trainer(case, tiny, tmp_path):
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

    make, texts, labels = case
    data = {f"text{c}": column for c, column in enumerate(texts)}
    if labels is not None:
        data["label"] = labels.tolist()
    before = torch.cat([p.detach().flatten() for p in tiny.parameters()])
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path), max_steps=2, per_device_train_batch_size=N, report_to="none", use_cpu=True, save_strategy="no"
    )
    loss_module = make()
    head = [p.detach().clone() for name, p in loss_module.named_parameters() if name.startswith("head.")]
    SentenceTransformerTrainer(
        model=tiny, args=arguments, train_dataset=Dataset.from_dict(data), loss=loss_module
    ).train()
    assert not torch.equal(torch.cat([p.detach().flatten() for p in tiny.parameters()]), before)
    after = [p for name, p in loss_module.named_parameters() if name.startswith("head.")]
    assert all(not torch.equal(old, new) for old, new in zip(head, after, strict=True))  # the optimiser holds it too


def test_settings_are_shown(case):
    make, *_ = case
    assert make(mini_batch_num_tokens=7).get_config_dict()["mini_batch_num_tokens"] == 7


def test_misuse(tiny, sentences):
    one = tiny.preprocess(sentences[:3])
    with pytest.raises(ValueError) as error:
        Triplet(tiny)([one, one])
    assert str(error.value) == ("Triplet takes three text columns: anchor, positive, negative; received 2 columns.")
    with pytest.raises(ValueError) as error:
        CoSENT(tiny)([one, one])
    assert str(error.value) == "CoSENT needs a label for each pair, and the data has none."


def test_every_loss_of_plain_columns_is_a_case():
    tested = {kind for kind, *_ in CASES.values()} | {spec.module for spec in REGISTERED.values()}
    assert tested == set(loss_classes())


@pytest.mark.parametrize("known", [[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
def test_only_hard_negatives_with_label_1_count(tiny, known):
    anchors, positives, negatives = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0)).unbind()
    negatives.requires_grad_()
    module = InfoNCE(tiny, temperature=0.1, some_negatives=True)
    loss = module.compute_loss_from_embeddings([anchors, positives, negatives], torch.tensor(known))
    real = negatives[[at for at, counts in enumerate(known) if counts]]
    torch.testing.assert_close(loss, losses.info_nce(anchors, positives, real, temperature=0.1))
    if any(known):
        loss.backward()
        assert [bool(row.any()) for row in negatives.grad] == [bool(counts) for counts in known]
    with pytest.raises(ValueError, match="needs a label for each pair"):
        module.compute_loss_from_embeddings([anchors, positives, negatives])
