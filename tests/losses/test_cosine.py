import pytest
import torch

from samesense.losses import cosine_matrix, row_cosine
from samesense.losses.cosine import reduced, without_diagonal
from tests.references.cosine import cosine
from tests.references.cosine import cosine_matrix as reference


def test_rows_equal_the_loop(vectors):
    for n in [1, 2, 31, 1024]:
        u = vectors(n)
        v = vectors(n, seed=1)
        expected = [cosine(a, b) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
        assert row_cosine(u, v).tolist() == pytest.approx(expected, abs=1e-14)


def test_matrix_equals_the_loop(vectors):
    for n, m in [(1, 1), (2, 5), (31, 31), (64, 40)]:
        u = vectors(n)
        v = vectors(m, seed=1)
        expected = torch.tensor(reference(u.tolist(), v.tolist()), dtype=torch.float64)
        torch.testing.assert_close(cosine_matrix(u, v), expected, rtol=0, atol=1e-14)


def test_no_size_overflows_or_vanishes():
    for size in [1e-30, 1e-12, 1.0, 1e12, 1e30]:
        u = torch.tensor([[3.0, 4.0]]) * size
        assert row_cosine(u, torch.tensor([[1.0, 0.0]])).item() == pytest.approx(0.6, abs=1e-6)
        assert cosine_matrix(u, u).item() == pytest.approx(1, abs=1e-6)


def test_zeros_have_cosine_zero_and_no_gradient():
    for dtype in [torch.float64, torch.float32, torch.float16]:
        u = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=dtype, requires_grad=True)
        v = torch.tensor([[1.0, 2.0], [0.0, 0.0]], dtype=dtype)
        assert row_cosine(u, v).tolist() == [0.0, 0.0]
        (row_cosine(u, v).sum() + cosine_matrix(u, u).sum()).backward()
        assert u.grad.isfinite().all()
        assert u.grad[0].tolist() == [0.0, 0.0]


def test_what_is_not_a_number_is_refused_by_its_place():
    with pytest.raises(
        ValueError, match=r"row_cosine takes finite numbers; received u\[0, 0\] of nan \(1 of 2 are not"
    ):
        row_cosine(torch.tensor([[torch.nan, 1.0]]), torch.ones(1, 2))


def test_float32_under_autocast():
    for dtype in [torch.float16, torch.bfloat16, torch.float32]:
        u = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
        plain = cosine_matrix(u, u)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            cast = cosine_matrix(u, u)
        assert plain.dtype == torch.float32
        assert torch.equal(plain, cast)


def test_without_diagonal():
    for n in [1, 2, 3, 7]:
        square = torch.arange(n * n).reshape(n, n)
        expected = [[value for j, value in enumerate(row) if j != i] for i, row in enumerate(square.tolist())]
        assert without_diagonal(square).tolist() == expected
        assert without_diagonal(square.T).tolist() == [
            [value for j, value in enumerate(row) if j != i] for i, row in enumerate(square.T.tolist())
        ]


def test_the_mean_of_none_is_zero():
    assert reduced(torch.zeros(0), "mean").item() == 0.0
    assert reduced(torch.zeros(0), "sum").item() == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: row_cosine(torch.zeros(2, 3), torch.zeros(3, 3)),
            "row_cosine takes 2 matrices of one shape (rows, dim); received (2, 3), (3, 3).",
        ),
        (
            lambda: cosine_matrix(torch.zeros(2, 3), torch.zeros(2, 4)),
            "cosine_matrix takes matrices (rows, dim) and (columns, dim) of one dim; received (2, 3) and (2, 4).",
        ),
        (lambda: reduced(torch.zeros(2), "none"), "reduction must be 'mean' or 'sum'; received 'none'."),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
