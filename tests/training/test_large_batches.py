"""Any batch size: cutting a batch into parts changes neither loss nor gradient, with dropout on."""

import pytest
import torch

from samesense.encoder.forward.dropout import use_cheap_dropout
from samesense.encoder.forward.grad_cache import _replay, embed_with_cached_gradients, forward, used_parameters
from samesense.errors import ModelError
from samesense.losses.cosent import CoSENT
from tests.training.bert import take_gradient

LABELS = torch.arange(20) % 4


@pytest.fixture
def columns(tiny, sentences):
    use_cheap_dropout(tiny)
    for module in tiny.modules():
        if hasattr(module, "p"):
            module.p = 0.3
    tiny.train()
    return lambda offset=0: [tiny.preprocess(sentences[offset : offset + 20]), tiny.preprocess(sentences[::-1][:20])]


def test_replay_gives_the_loss_and_gradient_of_the_masks_that_were_drawn(tiny, columns, monkeypatch):
    """The same cut with and without replay draws the same masks, so the results must be equal, not just close."""
    from samesense.encoder.forward import batching

    def run(*, replay):
        torch.manual_seed(5)
        with monkeypatch.context() as patch:
            if not replay:
                patch.setattr(
                    batching,
                    "embed_with_cached_gradients",
                    lambda model, columns_of_batch: torch.cat([batching.forward(model, p) for p in columns_of_batch]),
                )
            loss = CoSENT(tiny, mini_batch_num_tokens=40)(columns(), LABELS)
        torch.rand(7)  # another draw from the generator between forward and backward
        loss.backward()
        return loss.detach(), take_gradient(tiny)

    (loss, with_replay), (plain, without) = run(replay=True), run(replay=False)
    assert torch.equal(loss, plain)
    torch.testing.assert_close(with_replay, without, atol=1e-6, rtol=1e-5)
    assert with_replay.abs().sum() > 0


@pytest.mark.parametrize("budget", [1, 30, 100, 10**6, None])
def test_budget_changes_nothing_without_dropout(tiny, columns, budget):
    tiny.eval()
    expected = CoSENT(tiny)(columns(), LABELS)
    expected.backward()
    gradient_whole = take_gradient(tiny)
    loss = CoSENT(tiny, mini_batch_num_tokens=budget)(columns(), LABELS)
    loss.backward()
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(take_gradient(tiny), gradient_whole, atol=2e-5, rtol=1e-3)


def test_two_forwards_before_one_backward(tiny, columns):
    def losses():
        torch.manual_seed(2)
        objective = CoSENT(tiny, mini_batch_num_tokens=40)
        return objective(columns(), LABELS), objective(columns(10), LABELS)

    first, second = losses()
    (first + second).backward()
    together = take_gradient(tiny)
    first, second = losses()
    second.backward()
    first.backward()
    torch.testing.assert_close(take_gradient(tiny), together, atol=1e-6, rtol=1e-5)


def test_a_batch_within_the_budget_is_not_computed_twice(tiny, columns, monkeypatch):
    calls = []
    forward = tiny.forward
    monkeypatch.setattr(tiny, "forward", lambda *a, **k: (calls.append(1), forward(*a, **k))[1])
    CoSENT(tiny, mini_batch_num_tokens=10**6)(columns(), LABELS).backward()
    within = len(calls)
    calls.clear()
    CoSENT(tiny, mini_batch_num_tokens=60)(columns(), LABELS).backward()
    assert within < 10
    assert len(calls) > within


def test_activations_held_are_those_of_one_part(tiny, columns):
    """What autograd keeps for the backward is counted: with a budget it is a small share."""

    def held(budget):
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (sizes.append(t.numel()), t)[1], lambda t: t):
            CoSENT(tiny, mini_batch_num_tokens=budget)(columns(), LABELS)
        return sum(sizes)

    assert held(40) < 0.2 * held(None)


def test_loss_scale_passes_through(tiny, columns):
    tiny.eval()
    CoSENT(tiny, mini_batch_num_tokens=40)(columns(), LABELS).backward()
    once = take_gradient(tiny)
    (CoSENT(tiny, mini_batch_num_tokens=40)(columns(), LABELS) * 1024).backward()
    torch.testing.assert_close(take_gradient(tiny) / 1024, once, atol=1e-6, rtol=1e-4)


def test_gradients_of_many_parts_are_added_up_in_float32(tiny, columns):
    """Under autocast, one cast of a weight shared by all parts would add their gradients in bfloat16."""
    tiny.eval()

    def run(budget, *, half):
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            loss = CoSENT(tiny, mini_batch_num_tokens=budget)(columns(), LABELS)
        loss.backward()
        return take_gradient(tiny)

    exact = run(None, half=False)
    whole, chunked = ((run(budget, half=True) - exact).norm() / exact.norm() for budget in (None, 8))
    assert chunked < 2 * whole  # 1.3 here; 3.1 with a shared cast


def test_parameters_that_share_a_gradient_are_not_added_up_twice():
    """The gradient of a sum is one tensor for both of its terms; adding in place gives each the other's as well."""

    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = (torch.nn.Parameter(torch.full((3,), value)) for value in (0.2, 0.7))

        def forward(self, features):
            return {"sentence_embedding": features["rows"] * (self.one + self.other)}

    rows = torch.arange(12.0).reshape(4, 3)
    embed_with_cached_gradients(model := Sum(), [{"rows": chunk} for chunk in rows.split(1)]).square().sum().backward()
    plain = Sum()
    plain({"rows": rows})["sentence_embedding"].square().sum().backward()
    for parameter, expected in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, expected.grad)


def test_a_part_may_not_use_what_the_part_of_ddp_did_not(tiny, sentences):
    """Its gradient would be lost: DDP takes a parameter that its own forward did not use for done."""
    used = used_parameters(forward(tiny, tiny.preprocess(sentences[:2])))
    assert {id(p) for p in used} == {id(p) for name, p in tiny.named_parameters() if "pooler" not in name}
    replayed_part = _replay(tiny, [tiny.preprocess(sentences[:2])], used)
    replayed_part.sum().backward()
    assert tiny[0].model.pooler.dense.weight.grad is None
    used = used - {tiny[0].model.encoder.layer[0].output.dense.bias}
    with pytest.raises(ModelError, match="all parts of a batch must use the same parameters"):
        _replay(tiny, [tiny.preprocess(sentences[:2])], used).sum().backward()
