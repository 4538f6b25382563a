"""What every objective must obey: the function's value, any cut of the batch, and a plain trainer."""

import pytest
import torch
from datasets import Dataset

from samesense import losses
from samesense.training.objective import MSE, Contrastive, CoSENT, Objective, Softmax
from samesense.training.tuple_objective import InfoNCE, MultiPositive, Triplet

N = 12
BINARY, GRADES = torch.arange(N) % 2, (torch.arange(N) % 4).float()


def functional(name, e, labels, head):
    """The same loss written down directly."""
    cosines = losses.row_cosine(e[0], e[1])
    owners = torch.arange(N)
    return {
        "cosent": lambda: losses.cosent(cosines, labels),
        "contrastive": lambda: losses.contrastive(cosines, labels, threshold=0.2),
        "mse": lambda: losses.mse(cosines, labels),
        "softmax": lambda: losses.softmax(head(losses.softmax_features(e[0], e[1], product=True)), labels),
        "triplet": lambda: losses.triplet(*e),
        "info_nce": lambda: losses.info_nce(e[0], e[1], torch.cat(e[2:])),
        "multi_positive": lambda: losses.multi_positive(
            e[0], torch.cat(e[1:3]), e[3], positive_owner=owners.repeat(2), negative_owner=owners
        ),
    }[name]()


CASES = {
    "cosent": (CoSENT, {}, 2, GRADES),
    "contrastive": (Contrastive, {"threshold": 0.2}, 2, BINARY),
    "mse": (MSE, {}, 2, GRADES / 3),
    "softmax": (Softmax, {"classes": 4, "dim": 32, "product": True}, 2, GRADES.long()),
    "triplet": (Triplet, {}, 3, None),
    "info_nce": (InfoNCE, {}, 4, None),
    "multi_positive": (MultiPositive, {"positives": 2}, 4, None),
}


@pytest.fixture(params=CASES)
def case(request, tiny, sentences):
    kind, settings, count, labels = CASES[request.param]
    texts = [[sentences[(i * (c + 2) + c) % 40] for i in range(N)] for c in range(count)]

    def make(**extra):
        torch.manual_seed(1)
        return kind(tiny, **settings, **extra)

    return request.param, make, texts, labels


def gradients(objective):
    return torch.cat(
        [p.grad.flatten() if p.grad is not None else torch.zeros(p.numel()) for p in objective.parameters()]
    )


def test_value_is_that_of_the_function(case, tiny):
    name, make, texts, labels = case
    tiny.eval()
    objective = make()
    columns = [tiny.preprocess(column) for column in texts]
    embeddings = [tiny(dict(column))["sentence_embedding"] for column in columns]
    expected = functional(name, embeddings, labels, getattr(objective, "head", None))
    torch.testing.assert_close(objective(columns, labels), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("budget", [1, 40, 10**6])
def test_any_cut_gives_the_same_loss_and_gradient(case, tiny, budget):
    _, make, texts, labels = case
    tiny.eval()

    def run(objective):
        tiny.zero_grad()
        loss = objective([tiny.preprocess(column) for column in texts], labels)
        loss.backward()
        return loss.detach(), gradients(objective)

    (whole, wanted), (cut, got) = run(make()), run(make(token_budget=budget))
    torch.testing.assert_close(cut, whole, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(got, wanted, atol=3e-5, rtol=1e-3)
    assert wanted.abs().sum() > 0


def test_autocast_does_not_reach_the_loss(case, tiny):
    _, make, texts, labels = case
    with torch.autocast("cpu", torch.bfloat16):
        loss = make()([tiny.preprocess(column) for column in texts], labels)
    assert loss.dtype == torch.float32
    assert loss.isfinite()
    loss.backward()


def test_trains_in_a_plain_trainer(case, tiny, tmp_path):
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

    _, make, texts, labels = case
    data = {f"text{c}": column for c, column in enumerate(texts)}
    if labels is not None:
        data["label"] = labels.tolist()
    before = torch.cat([p.detach().flatten() for p in tiny.parameters()])
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path), max_steps=2, per_device_train_batch_size=N, report_to="none", use_cpu=True, save_strategy="no"
    )
    objective = make()
    head = objective.head.weight.detach().clone() if hasattr(objective, "head") else None
    SentenceTransformerTrainer(
        model=tiny, args=arguments, train_dataset=Dataset.from_dict(data), loss=objective
    ).train()
    assert not torch.equal(torch.cat([p.detach().flatten() for p in tiny.parameters()]), before)
    assert head is None or not torch.equal(objective.head.weight, head)  # the optimiser holds the head too


def test_settings_are_shown(case):
    _, make, _, _ = case
    assert make(token_budget=7).get_config_dict()["token_budget"] == 7


def test_misuse(tiny, sentences):
    one = tiny.preprocess(sentences[:3])
    with pytest.raises(ValueError) as error:
        Triplet(tiny)([one, one])
    assert str(error.value) == ("Triplet takes three text columns: anchor, positive, negative; received 2 columns.")
    with pytest.raises(ValueError) as error:
        CoSENT(tiny)([one, one])
    assert str(error.value) == "CoSENT needs a label for each pair, and the data has none."


def test_none_is_forgotten():
    kinds = {kind for kind, *_ in CASES.values()}
    assert kinds == {kind for kind in Objective.__subclasses__() if kind.__module__.startswith("samesense")}
