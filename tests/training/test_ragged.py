"""Tuples in batches: each text once, with the loss and gradient of the plain way; texts that count as the same."""

import random
from itertools import chain

import pytest
import torch
from datasets import Dataset
from torch import nn
from transformers import TrainerState

from samesense.data.tuples.completion import Completion, key_of
from samesense.data.tuples.data import Group, tuple_data
from samesense.encoder.forward.dropout import use_cheap_dropout
from samesense.errors import DataError
from samesense.losses import batch_hard, gist, multi_positive, sup_con, triplet
from samesense.losses.check import check_dataset
from samesense.losses.gist import TupleGIST
from samesense.losses.multi_positive import MultiPositive, TupleMultiPositive
from samesense.losses.sup_con import TupleSupCon
from samesense.losses.triplet import TupleBatchTriplet, TupleTriplet
from samesense.losses.tuples import as_classes, unfold
from samesense.training.fit import fit
from samesense.training.settings import TrainingSettings
from samesense.training.tuple_batches import EMPTY, LogSavings, SetEpoch, TupleBatches, has_dropout
from tests.messages import listen

ANCHORS = 9


@pytest.fixture
def data(sentences):
    """Anchors with 0 to 4 partners on each side, drawn from few texts, so that many stand in several tuples."""
    source = random.Random(2)
    groups = []
    for anchor in sentences[:ANCHORS]:
        texts = source.sample(sentences[6:20], 8)
        texts = [text for text in texts if text != anchor]
        near = source.randint(1, 4)
        far = source.randint(0, 3)
        groups.append(Group(anchor, texts[:near], texts[near : near + far], []))
    return tuple_data(groups, source="made", name="made")


def batches_of(model, data, *, sizes=(3, 2), padded=True, false_negative_filter="same", **options):
    complete = Completion(data=data, positives=sizes[0], negatives=sizes[1], padded=padded)
    key = key_of(false_negative_filter)
    return TupleBatches(
        data.anchors, complete, model.preprocess, places=sizes, key=key, positives=data.positives, **options
    )


def columns_of(batch):
    features = {name.removeprefix("texts_"): value for name, value in batch.items() if name != "label"}
    return [features], batch["label"]


def examples(rows=range(ANCHORS)):
    return [{"anchor": "", "label": row} for row in rows]


def gradients(model):
    flat = torch.cat([p.grad.flatten() if p.grad is not None else torch.zeros(p.numel()) for p in model.parameters()])
    model.zero_grad()
    return flat


def result(model, objective, batch):
    loss = objective(*batch)
    loss.backward()
    return loss.detach(), gradients(model)


def test_a_batch_lists_each_text_once(tiny, data):
    batches = batches_of(tiny, data)
    labels = batches(examples())["label"]
    assert labels.shape == (ANCHORS, 3, 6)
    for row, positives_of_row in enumerate(data.positives):
        further_keys = {key for key in labels[row, 2].tolist() if key != EMPTY}
        assert further_keys == (
            {key_of("same")(text) for text in positives_of_row} if len(positives_of_row) > 3 else set()
        )
    texts = {}
    for row in range(ANCHORS):
        positives, negatives = batches.complete(row, 0)
        for index, text in enumerate([data.anchors[row], *positives, *negatives]):
            number, key = labels[row, :2, index].tolist()
            own_copy = 0 < index <= 3 and text == data.anchors[row]
            assert texts.setdefault(("own", row, index) if own_copy else text, number) == number
            assert key == key_of("same")(text)
    assert sorted(texts.values()) == list(range(len(texts)))  # one number a text, one text a number
    assert batches.encoded == len(texts) < batches.filled_slots == ANCHORS * 6
    batches_of(tiny, data, apart=False)
    together = batches_of(tiny, data, apart=False)(examples())["label"][:, 0]
    assert int(together.max()) + 1 == len({text for text in texts if isinstance(text, str)})
    assert int(batches_of(tiny, data, once=False)(examples())["label"].max(dim=0).values[0].max()) + 1 == ANCHORS * 6


@pytest.mark.parametrize("budget", [None, 50])
@pytest.mark.parametrize("apart", [True, False])
def test_encoding_once_changes_neither_loss_nor_gradient_without_dropout(tiny, data, budget, apart):
    tiny.eval()
    objective = TupleMultiPositive(tiny, positives=3, false_negative_filter="off", mini_batch_num_tokens=budget)
    once = result(tiny, objective, columns_of(batches_of(tiny, data, apart=apart)(examples())))
    plain = result(tiny, objective, columns_of(batches_of(tiny, data, once=False)(examples())))
    complete = batches_of(tiny, data).complete
    tuples = [[data.anchors[row], *chain(*complete(row, 0))] for row in range(ANCHORS)]
    columns = [tiny.preprocess(list(column)) for column in zip(*tuples, strict=True)]
    far = result(tiny, MultiPositive(tiny, positives=3), (columns, None))  # a column for each position
    for loss, gradient in (once, plain):
        torch.testing.assert_close(loss, far[0], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(gradient, far[1], atol=3e-5, rtol=1e-3)
    assert far[1].abs().sum() > 0


def test_copies_of_an_anchor_have_dropout_of_their_own(tiny):
    data = tuple_data(
        [Group("the dog runs", [], ["a cat"], []), Group("a bird sings", ["a cat"], ["a fish"], [])],
        source="x",
        name="x",
    )
    use_cheap_dropout(tiny)
    tiny.train()
    (features,), labels = columns_of(batches_of(tiny, data, sizes=(2, 1))(examples(range(2))))
    embeddings = tiny(features)["sentence_embedding"]
    numbers = labels[:, 0]
    anchor, first_copy, second_copy = (embeddings[numbers[0, index]] for index in range(3))
    assert not torch.allclose(anchor, first_copy)
    assert not torch.allclose(first_copy, second_copy)
    assert numbers[0, 3] == numbers[1, 1]  # a negative here and a positive there


def test_ragged_is_padded_where_nothing_is_padded(tiny, data):
    full = data.take([row for row in range(ANCHORS) if len(data.positives[row]) >= 2 and len(data.negatives[row]) >= 1])
    assert len(full) >= 3
    rows = examples(range(len(full)))
    ragged, padded = (batches_of(tiny, full, sizes=(2, 1), padded=p)(rows)["label"] for p in (False, True))
    assert torch.equal(ragged, padded)


@pytest.mark.parametrize("options", [{}, {"symmetric": True, "hardness": 2.0}], ids=str)
@pytest.mark.parametrize("false_negative_filter", ["same", "near"])
def test_value_on_ragged_tuples_with_texts_that_are_left_out(tiny, data, false_negative_filter, options):
    tiny.eval()
    clones = [*data.anchors[:7], data.anchors[0].upper(), " ".join(data.anchors[1].split()[::-1])]
    data = tuple_data(
        [Group(a, p, n, []) for a, p, n in zip(clones, data.positives, data.negatives, strict=True)], source="", name=""
    )
    batches = batches_of(tiny, data, padded=False, false_negative_filter=false_negative_filter)
    value = TupleMultiPositive(tiny, positives=3, **options)(*columns_of(batches(examples())))
    key = key_of(false_negative_filter)
    near = []
    far = []
    owner = []
    for row in range(ANCHORS):
        positives, negatives = batches.complete(row, 0)
        near = near + positives
        far = far + negatives
        owner = owner + [row] * len(positives)
    keys_of_anchor = [{key(data.anchors[row]), *map(key, data.positives[row])} for row in range(ANCHORS)]
    assert any(len(some) > 3 for some in data.positives)  # one is not drawn
    exclude = torch.tensor([[key(text) in class_keys for text in near + far] for class_keys in keys_of_anchor])
    assert exclude.sum() > len(near)  # more than the own positives
    vectors = [torch.from_numpy(tiny.encode(texts)) for texts in (data.anchors, near, far)]
    masks = {"exclude": exclude}
    if options:
        masks["exclude_anchors"] = torch.tensor(
            [[key(text) in class_keys for text in data.anchors] for class_keys in keys_of_anchor]
        )
        assert masks["exclude_anchors"].sum() > ANCHORS  # a copy of an anchor, and a positive that is an anchor
    expected = multi_positive(*vectors, positive_owner=torch.tensor(owner), **masks, **options)
    torch.testing.assert_close(value.detach(), expected, atol=1e-5, rtol=1e-4)
    objective = TupleMultiPositive(tiny, positives=3, false_negative_filter="off", **options)
    off = objective(*columns_of(batches(examples())))
    unfiltered = multi_positive(*vectors, positive_owner=torch.tensor(owner), **options)
    torch.testing.assert_close(off.detach(), unfiltered, atol=1e-5, rtol=1e-4)
    assert not torch.isclose(off, value)


def test_a_negative_that_is_the_anchors_text_shares_it(tiny):
    data = tuple_data([Group("a dog", ["a cat"], ["a dog"], [])], source="x", name="x")
    labels = batches_of(tiny, data, sizes=(1, 1), padded=False)(examples(range(1)))["label"]
    assert labels[0, 0].tolist() == [0, 1, 0]


def test_lists_that_name_each_other_are_one_class(tiny):
    pairs = [("a b", "b c"), ("b c", "a b"), ("x y", "y z"), ("y z", "x y")]
    data = tuple_data([Group(first, [second], [], []) for first, second in pairs], source="x", name="x")
    labels = batches_of(tiny, data, sizes=(1, 0), padded=False)(examples(range(4)))["label"]
    vectors = torch.eye(2)[[0, 0, 1, 1]]  # in the order of the texts: both of a pair have the same
    assert as_classes(unfold(vectors, labels, 1))[1].unique().numel() == 2
    loss = TupleBatchTriplet(tiny, positives=1)
    texts, classes = as_classes(unfold(vectors, labels, 1))
    assert loss.loss(texts, classes) == pytest.approx(0.0, abs=1e-6)


def test_other_losses_see_the_same_tuples(tiny, data):
    tiny.eval()
    batches = batches_of(tiny, data, sizes=(1, 1))
    tuples = [[data.anchors[row], *chain(*batches.complete(row, 0))] for row in range(ANCHORS)]
    vectors = [torch.from_numpy(tiny.encode(list(column))) for column in zip(*tuples, strict=True)]
    value = TupleTriplet(tiny, distance="euclidean", triplet_margin=2.0)(*columns_of(batches(examples())))
    torch.testing.assert_close(
        value.detach(), triplet(*vectors, distance="euclidean", margin=2.0), atol=1e-5, rtol=1e-4
    )
    batches = batches_of(tiny, data, sizes=(1, 2), padded=False)
    key = key_of("same")
    groups = [{data.anchors[row], *batches.complete(row, 0)[0]} for row in range(ANCHORS)]
    joined = []
    for group in groups:  # anchors that share a text are one class
        apart = [cluster for cluster in joined if not cluster & group]
        joined = [*apart, group.union(*(cluster for cluster in joined if cluster & group))]
    assert 1 < len(joined) < ANCHORS
    class_of = {text: number for number, group in enumerate(joined) for text in group}
    texts = []
    classes = []
    equal = 0
    for row in range(ANCHORS):
        positives, negatives = batches.complete(row, 0)
        texts += [data.anchors[row], *positives, *negatives]
        classes += [class_of[text] for text in (data.anchors[row], *positives)]
        classes += [class_of.get(text, key(text)) for text in negatives]
        equal += sum(text in class_of and text not in data.anchors for text in negatives)
    assert equal  # a negative here and a positive there is of one class
    vectors = torch.from_numpy(tiny.encode(texts))
    numbers = torch.tensor([sorted(set(classes)).index(name) for name in classes])
    batch = columns_of(batches(examples()))
    value = TupleSupCon(tiny, positives=1, temperature=0.05)(*batch)
    torch.testing.assert_close(value.detach(), sup_con(vectors, numbers, temperature=0.05), atol=1e-5, rtol=1e-4)
    value = TupleBatchTriplet(tiny, positives=1)(*batch)
    torch.testing.assert_close(value.detach(), batch_hard(vectors, numbers), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("padded", [True, False])
def test_gist_of_tuples_looks_up_the_vectors_of_the_guide_by_key(tiny, data, padded):
    batches = batches_of(tiny, data, sizes=(1, 2), padded=padded)
    texts = list(dict.fromkeys(chain(data.anchors, *data.positives, *data.negatives)))
    batches.key = texts.index
    guide_vectors = torch.randn(len(texts), 5, generator=torch.Generator().manual_seed(0))
    options = {"temperature": 0.1, "guide_margin": 0.1, "margin_strategy": "relative", "contrast_anchors": False}
    value = TupleGIST(tiny, guide=lambda rows: guide_vectors[rows], **options)(*columns_of(batches(examples())))
    tuples = [batches.complete(row, 0) for row in range(ANCHORS)]
    columns = [data.anchors, [positives[0] for positives, _ in tuples], [text for _, side in tuples for text in side]]
    expected = gist(
        *(torch.from_numpy(tiny.encode(column)) for column in columns),
        guide=[guide_vectors[[texts.index(text) for text in column]] for column in columns],
        **options,
    )
    torch.testing.assert_close(value.detach(), expected, atol=1e-5, rtol=1e-4)
    with pytest.raises(ValueError, match="one positive an anchor; received 2 places"):
        TupleGIST(tiny, guide=lambda rows: rows, positives=2)


def test_training_draws_again_each_epoch_and_goes_on_where_it_was(tiny, data, tmp_path):
    calls = []
    batches = batches_of(tiny, data)
    complete = batches.complete
    batches.complete = lambda row, epoch: (calls.append((epoch, row)), complete(row, epoch))[1]
    messages = listen()
    dataset = Dataset.from_dict({"anchor": data.anchors, "label": list(range(ANCHORS))})
    settings = TrainingSettings(batch_size=4, epochs=3, precision="float32", learning_rate=1e-3)
    before = tiny[0].auto_model.embeddings.word_embeddings.weight.detach().clone()
    outcome = fit(
        tiny,
        dataset,
        TupleMultiPositive(tiny, positives=3),
        settings,
        tmp_path,
        collator=batches,
        callbacks=[SetEpoch(batches), LogSavings(batches)],
    )
    assert outcome.steps == 9
    assert sorted(calls) == [(epoch, row) for epoch in range(3) for row in range(ANCHORS)]
    assert not torch.equal(tiny[0].auto_model.embeddings.word_embeddings.weight, before)
    saved = 1 - batches.encoded / (3 * ANCHORS * 6)
    assert messages == [f"equal sentences of a batch were encoded once, which saved {saved:.1%} of them"]
    assert saved > 0.1


@pytest.mark.parametrize(("epoch", "number"), [(None, 0), (0.0, 0), (0.4, 0), (1.0, 1), (1.9999999, 2), (2.5, 2)])
def test_a_resumed_run_goes_on_with_the_tuples_of_its_epoch(tiny, data, epoch, number):
    batches = batches_of(tiny, data)
    SetEpoch(batches).on_epoch_begin(None, TrainerState(epoch=epoch), None)
    assert batches.epoch == number


@pytest.mark.parametrize("probability", [0.0, 0.1])
def test_dropout_is_seen_wherever_it_is(probability):
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention_dropout = probability

    assert has_dropout(nn.Sequential(nn.Linear(2, 2), nn.Dropout(probability))) == (probability > 0)
    assert has_dropout(nn.Sequential(Attention())) == (probability > 0)


def test_misuse(tiny, data):
    batch = columns_of(batches_of(tiny, data)(examples()))
    with pytest.raises(ValueError, match=r"labels \(batch, 3, places\) with more than 3 places; received shape \(9,\)"):
        TupleMultiPositive(tiny, positives=3)(batch[0], batch[1][:, 0, 0])
    with pytest.raises(ValueError, match=r"received none\. Take TupleBatches as the trainer's data_collator"):
        TupleMultiPositive(tiny)(batch[0])
    with pytest.raises(ValueError, match="The labels name text 999, and the batch has"):
        TupleTriplet(tiny)(batch[0], batch[1].clamp(min=999, max=999))
    dataset = Dataset.from_dict({"anchor": ["a", "b"], "positive": ["c", "d"]})
    with pytest.raises(DataError, match="TupleMultiPositive takes one text column, put together by TupleBatches"):
        check_dataset(TupleMultiPositive(tiny), dataset)
