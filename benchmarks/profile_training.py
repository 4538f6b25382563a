"""Profile a training step, and compare its matrix products with the peak of this machine.

Steps of CoSENT as ``samesense train`` takes them run under torch's profiler: self time of the operators by kind, as a
share of the wall time of the steps; the remainder is Python, collation and the profiler. The peak is measured on one
large product in the same precision.

    python benchmarks/profile_training.py --model default --data stsb.train.tsv.gz --steps 30
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from pathlib import Path

import torch
from alternate import arguments
from torch.profiler import ProfilerActivity, profile, schedule
from transformers import TrainerCallback

KINDS = {
    "optimiser": ("adam", "Optimizer", "clip_grad", "norm", "foreach"),
    "products": ("aten::mm", "addmm", "linear", "matmul", "mkldnn"),
    "attention": ("attention", "softmax", "bmm", "baddbmm"),
    "dropout": ("random_", "bernoulli", "dropout"),
    "layer norm": ("layer_norm",),
    "casts and copies": ("copy_", "_to_copy"),
    "embeddings": ("embedding", "index_"),
}
"""Operators by a part of their names; the first kind that fits."""


def kind_of(name: str) -> str:
    if "layer_norm" in name:
        return "layer norm"
    return next(
        (kind for kind, fragments in KINDS.items() if any(fragment in name for fragment in fragments)),
        "elementwise and other",
    )


def peak(dtype: torch.dtype) -> float:
    """Return the floating-point operations a second of one large product."""
    a, b = (torch.randn(2048, 2048, dtype=dtype) for _ in range(2))
    a @ b
    times = []
    for _ in range(5):
        started = time.perf_counter()
        a @ b
        times.append(time.perf_counter() - started)
    return 2 * 2048**3 / min(times)


class Profiled(TrainerCallback):
    """Profiles the steps from ``skip`` on."""

    def __init__(self, skip: int, steps: int) -> None:
        self.profiler = profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=skip - 1, warmup=1, active=steps),
            record_shapes=True,
            with_flops=True,
        )
        self.skip = skip
        self.wall = 0.0
        self.seen = 0

    def on_train_begin(self, *args: object, **kwargs: object) -> None:
        self.profiler.start()

    def on_step_end(self, *args: object, **kwargs: object) -> None:
        self.profiler.step()
        self.seen += 1
        if self.seen == self.skip:
            self.started = time.perf_counter()
        self.wall = time.perf_counter() - getattr(self, "started", time.perf_counter())

    def on_train_end(self, *args: object, **kwargs: object) -> None:
        self.profiler.stop()


def main() -> None:
    args = arguments(__doc__)
    from samesense.data import read_pairs, sample_path
    from samesense.encoder.assembly.build import build
    from samesense.losses.cosent import CoSENT
    from samesense.recipes.cosent.settings import CosentSettings
    from samesense.training.dataset import as_dataset
    from samesense.training.fit import fit

    data = read_pairs(args.data or sample_path("train"))
    dataset = as_dataset(CosentSettings().targets(data).columns)
    skip = 5
    for batch_size in (16, 64):
        model = build(args.model, max_seq_length=128)
        profiled = Profiled(skip, args.steps)
        steps = skip + args.steps
        with tempfile.TemporaryDirectory() as folder:
            settings = CosentSettings(max_steps=steps, eval_steps=steps, batch_size=batch_size)
            precision = fit(model, dataset, CoSENT(model), settings, Path(folder), callbacks=[profiled]).precision
        shares: dict[str, float] = defaultdict(float)
        operations = 0
        for event in profiled.profiler.key_averages():
            if not event.key.startswith("ProfilerStep"):
                shares[kind_of(event.key)] += event.self_cpu_time_total / 1e6
                operations += event.flops or 0
        wall = profiled.wall
        shares["Python and data"] = wall - sum(shares.values())
        best = peak(torch.bfloat16 if precision == "bfloat16" else torch.float32)
        print(f"\n{batch_size} pairs, {precision}: {1000 * wall / args.steps:.0f} ms a step, profiled")
        for kind, seconds in sorted(shares.items(), key=lambda item: -item[1]):
            print(f"  {kind:24} {1000 * seconds / args.steps:7.1f} ms  {100 * seconds / wall:5.1f} %")
        rate = operations / shares["products"]
        size = operations / args.steps
        print(f"  products: {size / 1e9:.1f} GFLOP a step, {rate / 1e9:.0f} GFLOP/s of {best / 1e9:.0f}")


if __name__ == "__main__":
    main()
