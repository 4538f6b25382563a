"""Vectors and score matrices with the cases that break losses: ties, duplicates, zeros."""

import pytest
import torch


@pytest.fixture
def vectors():
    def make(n, dim=6, seed=0):
        g = torch.Generator().manual_seed(1000 * seed + n)
        rows = torch.randn(n, dim, generator=g, dtype=torch.float64)
        if n > 4:
            rows[1] = rows[0]
            rows[2] = 0
            rows[3] *= 1e-6
            rows[4] *= 1e6
        return rows

    return make


@pytest.fixture
def matrix():
    """Scores in [-1, 1]; rounded ones hold many ties, and exact values of -1, 0 and 1."""

    def make(n, m=None, seed=0, *, rounded=False):
        g = torch.Generator().manual_seed(1000 * seed + n)
        scores = torch.rand(n, m or n, generator=g, dtype=torch.float64) * 2.2 - 1.1
        scores = scores.clamp(-1, 1)
        return (scores * 5).round() / 5 if rounded else scores

    return make


@pytest.fixture
def value_and_gradients():
    """Call a loss on fresh leaves; return its value, then the gradient of each."""

    def run(loss, *tensors):
        leaves = [x.clone().requires_grad_() for x in tensors]
        value = loss(*leaves)
        value.backward()
        return [value.detach(), *(x.grad for x in leaves)]

    return run
