import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from samesense.training import optimizer
from samesense.training.optimizer import RowAdamW, clip_all, clip_gradients, sparse_embeddings

ROWS = 3000
DIM = 8


class Model(nn.Module):
    """Words and one more layer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.last = nn.Embedding(ROWS, DIM, padding_idx=0), nn.Linear(DIM, 1)

    def forward(self, ids):
        return self.last(self.words(ids).tanh()).square().mean()


def trained(batches, decay=0.0, rows=True, kind=RowAdamW, stop=None, max_norm=1e9, betas=(0.9, 0.999)):
    """Return weights after some steps; with ``stop``, the optimiser's state is saved and loaded after that step."""
    model = Model()
    with sparse_embeddings(model, allowed=rows) as sparse:
        assert sparse == rows
        words, last = ({"params": module.parameters()} for module in (model.words, model.last))
        groups = [words | {"betas": betas}, last | {"lr": 5e-3}]
        adamw = kind(groups, lr=1e-2, weight_decay=decay, fused=True)
        for n, ids in enumerate(batches):
            if n == stop:
                state = copy.deepcopy(adamw.state_dict())
                adamw = kind([{"params": module.parameters()} for module in (model.words, model.last)], fused=True)
                adamw.load_state_dict(state)
            adamw.zero_grad()
            for chunk in ids:  # gradients of several backwards are summed
                model(chunk).backward()
            clip_gradients(model.parameters(), max_norm, adamw)
            adamw.step()
    assert not model.words.sparse
    return model


def some_batches(n=12):
    draw = torch.Generator().manual_seed(1)
    return [[torch.randint(0, 200 + 60 * step, (9,), generator=draw) for _ in range(2)] for step in range(n)]


@pytest.mark.parametrize(("stop", "max_norm", "chunk"), [(None, 1e9, 512), (5, 1e9, 7), (None, 1e-3, 1)])
def test_it_is_adamw(stop, max_norm, chunk, monkeypatch):
    monkeypatch.setattr(optimizer, "_CHUNK_ROWS", chunk)
    batches = some_batches()
    trained_model = trained(batches, stop=stop, max_norm=max_norm, betas=(0.8, 0.9))
    reference = trained(batches, rows=False, kind=torch.optim.AdamW, max_norm=max_norm, betas=(0.8, 0.9))
    for parameter, expected in zip(trained_model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected, atol=1e-6, rtol=1e-6)
    assert not torch.equal(trained_model.words.weight, Model().words.weight)


def test_weight_decay_begins_with_the_first_gradient():
    batches = some_batches()
    met = torch.cat([chunk for ids in batches for chunk in ids]).unique()
    first = torch.cat(batches[0]).unique()
    first = first[first != 0]
    met = met[met != 0]
    trained_model = trained(batches, decay=0.1)
    reference = trained(batches, decay=0.1, rows=False, kind=torch.optim.AdamW)
    torch.testing.assert_close(trained_model.words.weight[first], reference.words.weight[first], atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(trained_model.last.weight, reference.last.weight, atol=1e-4, rtol=1e-3)
    unmet = torch.ones(ROWS, dtype=torch.bool).index_fill_(0, met, False)
    assert torch.equal(trained_model.words.weight[unmet], Model().words.weight[unmet])


def test_clipping_is_that_of_torch():
    ids = some_batches(1)[0][0]
    model_sparse = Model()
    model_dense = Model()
    model_sparse.words.sparse = True
    for model in (model_sparse, model_dense):
        model(ids).backward()
    norm = clip_gradients(model_sparse.parameters(), 1e-3, torch.optim.SGD(model_sparse.parameters()))
    torch.testing.assert_close(norm, nn.utils.clip_grad_norm_(model_dense.parameters(), 1e-3))
    torch.testing.assert_close(model_sparse.words.weight.grad.to_dense(), model_dense.words.weight.grad)
    torch.testing.assert_close(model_sparse.last.weight.grad, model_dense.last.weight.grad)


def test_embeddings_that_a_head_shares_are_dense():
    model = Model()
    model.head = nn.Linear(DIM, ROWS, bias=False)
    model.head.weight = model.words.weight
    with sparse_embeddings(model, allowed=True) as sparse:
        assert not sparse and not model.words.sparse


def test_embeddings_in_half_precision_are_dense():
    model = Model().to(torch.bfloat16)
    with sparse_embeddings(model, allowed=True) as sparse:
        assert not sparse and not model.words.sparse


def test_gradients_of_float16_are_unscaled_before_they_are_clipped():
    model = Model()
    model.last.weight.grad = torch.full((1, DIM), 1024.0)

    class Accelerator:
        scaler = object()  # the loss scaler of float16

        def unscale_gradients(self):
            model.last.weight.grad /= 1024

    accelerator = Accelerator()
    clip_all(SimpleNamespace(accelerator=accelerator, optimizer=torch.optim.SGD(model.parameters())), model)
    assert accelerator.clip_grad_norm_(model.parameters(), 100.0).item() == pytest.approx(DIM**0.5)
    assert model.last.weight.grad.tolist() == [[1.0] * DIM]


def test_gradients_without_a_norm_are_shown_and_not_hidden():
    model = Model()
    model.last.weight.grad, model.last.bias.grad = torch.ones(1, DIM), torch.tensor([torch.nan])
    assert clip_gradients(model.parameters(), 1.0, torch.optim.SGD(model.parameters())).isnan()
    assert model.last.weight.grad.isnan().all()
    model.last.weight.grad = torch.ones(1, DIM)
    adamw = RowAdamW(model.parameters(), fused=True)
    clip_gradients(model.parameters(), 1.0, adamw)
    adamw.step()
    assert model.last.weight.isnan().all()


def test_a_clip_is_of_one_step_and_is_done_by_the_wrapped_optimiser():
    model = Model()
    ids = some_batches(1)[0][0]
    adamw = RowAdamW(model.parameters(), lr=1e-2, fused=True)
    trainer = SimpleNamespace(
        accelerator=SimpleNamespace(unscale_gradients=lambda: None, scaler=None),
        optimizer=SimpleNamespace(optimizer=adamw),
    )
    clip_all(trainer, model)
    model(ids).backward()
    before = model.last.weight.grad.clone()
    norm = trainer.accelerator.clip_grad_norm_(model.parameters(), 1e-3)
    assert adamw.grad_scale == pytest.approx(norm.item() / 1e-3, rel=1e-2)
    assert torch.equal(model.last.weight.grad, before)  # the pass that updates the weights does it
    adamw.step()
    assert adamw.grad_scale is None
