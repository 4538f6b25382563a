"""Forward and backward of the losses alone, against the quadratic way and sentence-transformers' own, alternating.

    python benchmarks/losses.py

"quadratic" writes the formula down by broadcasting, as the public codes of the papers do. ``saved`` is what autograd
holds between forward and backward.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from alternate import alternate, arguments, report
from torch import Tensor

from samesense.losses import cosent, listmle, listnet, row_cosent


def quadratic_cosent(scores: Tensor, labels: Tensor) -> Tensor:
    differences = (scores[:, None] - scores[None, :]) * 20
    differences = differences.masked_fill(labels[:, None] >= labels[None, :], -torch.inf)
    return torch.logsumexp(torch.cat([torch.zeros(1), differences.flatten()]), dim=0)


def quadratic_rows(student: Tensor, teacher: Tensor) -> Tensor:
    differences = (student[:, :, None] - student[:, None, :]) * 20
    differences = differences.masked_fill(teacher[:, :, None] >= teacher[:, None, :], -torch.inf).flatten(1)
    return torch.logsumexp(torch.cat([torch.zeros(len(student), 1), differences], dim=1), dim=1).mean()


def looped_listmle(student: Tensor, teacher: Tensor) -> Tensor:
    ranked = (student / 0.05).gather(1, teacher.argsort(dim=1, descending=True))
    steps = range(ranked.shape[1])
    return sum((ranked[:, k:].logsumexp(dim=1) - ranked[:, k]).mean() for k in steps)


def saved_mib(function: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> float:
    sizes: dict[int, int] = {}
    keep = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: (keep.append(t), sizes.__setitem__(t.data_ptr(), t.numel() * t.element_size()), t)[-1], lambda t: t
    ):
        function(*inputs)
    return sum(sizes.values()) / 2**20


def backward(function: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> None:
    inputs[0].grad = None
    function(*inputs).backward()


def compare(name: str, ways: dict[str, Callable[..., Tensor]], inputs: tuple[Tensor, ...], rounds: int) -> None:
    with torch.no_grad():
        values = {way: function(*inputs).item() for way, function in ways.items()}
    reference = next(iter(values.values()))
    for way, value in values.items():
        if not math.isclose(value, reference, rel_tol=1e-4):
            raise SystemExit(f"{name}: {way} gives {value}, {next(iter(values))} gives {reference}")
    saved = {way: round(saved_mib(function, inputs), 2) for way, function in ways.items()}
    seconds = alternate({way: partial(backward, function, inputs) for way, function in ways.items()}, rounds)
    report(name, seconds, 1, "steps", next(iter(ways)), saved_mib=saved)
    print("saved MiB:", saved, "\n")


def main() -> None:
    args = arguments(__doc__)
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss

    theirs = CoSENTLoss(torch.nn.Identity(), similarity_fct=lambda u, v: u)

    def library(scores: Tensor, labels: Tensor) -> Tensor:
        return theirs.compute_loss_from_embeddings([scores, scores], labels)

    torch.manual_seed(0)
    for n in (4096, 65536):
        inputs = (torch.rand(n).requires_grad_(), torch.randint(26, (n,)) / 5)
        ways = {"sentence-transformers 6.2": library, "samesense": cosent}
        if n == 4096:
            ways = {"quadratic": quadratic_cosent, **ways}
        compare(f"CoSENT, {n} pairs", ways, inputs, args.rounds)
    student = torch.rand(256, 256).requires_grad_()
    teacher = torch.rand(256, 256)
    rows = {"quadratic": quadratic_rows, "samesense": lambda s, t: row_cosent(s, t, include_diagonal=True)}
    compare("row-wise CoSENT, 256 x 256", rows, (student, teacher), args.rounds)
    student = torch.rand(1024, 1024).requires_grad_()
    teacher = torch.rand(1024, 1024)
    lists = {
        "position by position": looped_listmle,
        "samesense": lambda s, t: listmle(s, t, student_temperature=0.05),
    }
    compare("ListMLE, 1024 x 1024", lists, (student, teacher), args.rounds)
    for n in (256, 512, 1024, 2048):
        lists_of_n = torch.rand(n, n).requires_grad_(), torch.rand(n, n)
        curve = {
            "ListNet": lambda s, t: listnet(s, t, student_temperature=0.05, teacher_temperature=0.025),
            "ListMLE": lambda s, t: listmle(s, t, student_temperature=0.05),
            "row-wise CoSENT": row_cosent,
        }
        spent = alternate({way: partial(backward, f, lists_of_n) for way, f in curve.items()}, args.rounds)
        each = {way: f"{1e9 * sorted(values)[len(values) // 2] / n**2:.1f}" for way, values in spent.items()}
        print(f"{n} x {n}: nanoseconds an entry {each}")


if __name__ == "__main__":
    main()
