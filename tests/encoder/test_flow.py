import numpy as np
import pytest
import torch

from samesense.encoder.maps.flow import Flow, fit_flow
from samesense.errors import ConfigError, ModelError


def trained_looking(dim, levels=3, seed=0):
    """A float64 flow with every parameter away from its first value."""
    flow = Flow(dim, levels=levels, depth=2, width=5, seed=seed).double()
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=draw, dtype=torch.float64))
    return flow


def undone(flow, u):
    """The inverse, written from the definition: levels and steps backwards, each solved for its input."""
    ends = [*flow.widths[1:], 0]
    sizes = [wide - end for wide, end in zip(flow.widths, ends, strict=True)]
    pieces = list(torch.split(u, sizes, dim=1))
    x = pieces.pop()
    for level in reversed(range(len(flow.widths))):
        for step in reversed(list(flow.steps[level * flow.depth : (level + 1) * flow.depth])):
            unchanged = x[:, : step.first_size]
            moved = x[:, step.first_size :]
            x = torch.cat([unchanged, moved - step.shift(unchanged, False)], dim=1)[
                :, torch.arange(x.shape[1] - 1, -1, -1)
            ]
            x = x / torch.exp(3 * step.norm.log_scale) - step.norm.shift
        if level:
            x = torch.cat([x, pieces.pop()], dim=1)
    return x


@pytest.mark.parametrize(("dim", "levels"), [(8, 3), (13, 3), (7, 2), (5, 1)])
def test_is_invertible_and_knows_its_volume(dim, levels):
    flow = trained_looking(dim, levels)
    x = torch.randn(6, dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    u, log_det = flow(x)
    assert u.shape == x.shape
    torch.testing.assert_close(undone(flow, u), x)
    for row in x:
        jacobian = torch.autograd.functional.jacobian(lambda r: flow(r[None])[0][0], row)
        assert torch.linalg.slogdet(jacobian).logabsdet.item() == pytest.approx(log_det.item(), abs=1e-9)


def test_bits_are_those_of_the_density():
    flow = trained_looking(9)
    x = torch.randn(4, 9, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    u, log_det = flow(x)
    normal = torch.distributions.MultivariateNormal(torch.zeros(9, dtype=torch.float64), torch.eye(9).double())
    expected = -(normal.log_prob(u) + log_det).mean().item() / (9 * np.log(2))
    assert flow.bits(x).item() == pytest.approx(expected, abs=1e-12)


def test_starts_by_standardising_every_dimension():
    draw = np.random.default_rng(0)
    x = torch.tensor(draw.normal(size=(500, 16)) * np.logspace(-3, 3, 16) + 100, dtype=torch.float64)
    flow = Flow(16).double()
    with torch.no_grad():
        u, _ = flow(x, starting=True)
    torch.testing.assert_close(u.mean(dim=0), torch.zeros(16).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(u.std(dim=0, correction=0), torch.ones(16).double(), atol=2e-3, rtol=0)


@pytest.fixture(scope="module")
def bent():
    """Embeddings whose second half depends on the first in a way that no linear map undoes."""
    draw = np.random.default_rng(0)
    first = draw.normal(size=(4000, 8))
    second = 2 * np.abs(first[:, ::-1]) + 0.3 * draw.normal(size=(4000, 8))
    return np.hstack([first, second]).astype(np.float32)


def test_training_lowers_the_bits_of_unseen_rows_below_those_of_a_normal_fit(bent):
    train = bent[:2000]
    test = bent[2000:]
    flow = fit_flow(train, epochs=2, learning_rate=1e-2)
    wide = test.astype(np.float64)
    covariance = np.cov(train.T.astype(np.float64))
    mean = train.mean(axis=0)
    away = wide - mean
    squared = np.einsum("ij,jk,ik->i", away, np.linalg.inv(covariance), away).mean()
    normal = (squared + np.linalg.slogdet(2 * np.pi * covariance)[1]) / (2 * 16 * np.log(2))
    with torch.no_grad():
        bits = float(flow.bits(torch.from_numpy(test)))
        before = float(fit_flow(train, epochs=0).bits(torch.from_numpy(test)))
    assert before == pytest.approx(normal, abs=0.01)  # no correlations to find: standardised is all a normal fit can do
    assert bits < normal - 0.05


def test_the_seed_decides(bent):
    first, same, other_seed = (fit_flow(bent[:320], seed=seed).apply_to(bent[:50]) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert np.abs(first - other_seed).max() > 1e-3
    assert (first.shape, first.dtype) == ((50, 16), np.float32)


def test_global_randomness_is_left_alone(bent):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    fit_flow(bent[:64])
    torch.testing.assert_close(torch.rand(2), expected)


def test_a_constant_dimension_is_no_trouble(bent):
    dead = bent[:640].copy()
    dead[:, 4] = 1.5
    assert np.isfinite(fit_flow(dead).apply_to(dead)).all()


def test_refuses_what_cannot_be_fitted(bent):
    with pytest.raises(ConfigError, match="at least 8 dimensions; received 7"):
        fit_flow(bent[:, :7])
    with pytest.raises(ModelError, match="at least two embeddings"):
        fit_flow(bent[:1])
    broken = bent.copy()
    broken[17, 2] = np.inf
    with pytest.raises(ModelError, match="row 17 holds"):
        fit_flow(broken)
    with pytest.raises(ModelError, match=r"16 dimensions; received shape \(4000, 3\)"):
        fit_flow(bent[:64]).apply_to(bent[:, :3])
    with pytest.raises(ModelError, match="The flow diverged"):
        fit_flow(bent, learning_rate=1e6, epochs=3)
