"""Memory of training whole weights against adapters: state of the optimiser, gradients, and the process at its peak.

    python benchmarks/lora_memory.py --model HuggingFaceTB/SmolLM2-135M

Three steps of CoSENT on four made-up pairs each, in float32. Each row is a separate process, as the peak is that of the
whole process, including torch, loading the model, and activations. Rank 0 trains whole weights. On a CPU the optimiser
keeps state only for rows of the word embeddings that occurred in a text, so whole weights are also measured with
torch's own AdamW, which keeps it for all rows (--trainer optim=adamw_torch).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = ((0, {}), (0, {"optim": "adamw_torch"}), (8, {}), (64, {}))
"""Rank of the adapters, and fields of the trainer."""
MIB = 2**20


def measure_run(name: str, rank: int, trainer: dict[str, str]) -> dict[str, float]:
    import torch
    from transformers import TrainerCallback

    from samesense.encoder.assembly.build import build
    from samesense.losses.cosent import CoSENT
    from samesense.training.dataset import as_dataset
    from samesense.training.fit import fit
    from samesense.training.settings import TrainingSettings

    figures: dict[str, float] = {}

    class Measure(TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
            figures["gradients"] = sum(bytes_of(gradient) for gradient in gradients) / MIB

        def on_step_end(self, args, state, control, optimizer=None, **kwargs):  # before anything is saved
            states = [value for state_of_weight in optimizer.state.values() for value in state_of_weight.values()]
            figures["state"] = sum(bytes_of(tensor) for tensor in states if torch.is_tensor(tensor)) / MIB
            figures["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def bytes_of(tensor):
        dense = tensor.coalesce().values() if tensor.is_sparse else tensor
        return dense.numel() * dense.element_size()

    model = build(name, pooling="lasttoken", max_seq_length=64, device="cpu")
    texts = [f"The {animal} {verb} in the garden." for verb in ("sleeps", "runs") for animal in ("cat", "dog", "hen")]
    pairs = [(first, second) for first in texts for second in texts if first < second][:12]
    columns = {"a": [first for first, _ in pairs], "b": [second for _, second in pairs]}
    data = as_dataset({**columns, "label": [float(row % 3) for row in range(12)]})
    settings = TrainingSettings(max_steps=3, batch_size=4, precision="float32", lora=rank or None, trainer=trainer)
    with tempfile.TemporaryDirectory() as folder:
        fit(model, data, CoSENT(model), settings, Path(folder), callbacks=[Measure()])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--row", type=int, default=None)
    args = parser.parse_args()
    if args.row is not None:
        print(json.dumps(measure_run(args.model, *RUNS[args.row])))
        return
    print("| trained | state of the optimiser, MiB | gradients, MiB | peak of the process, MiB |\n|---|---:|---:|---:|")
    for row, (rank, trainer) in enumerate(RUNS):
        command = [sys.executable, __file__, "--model", args.model, "--row", str(row)]
        figures = json.loads(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
        )
        what = ", ".join([f"adapters of rank {rank}" if rank else "whole weights", *trainer.values()])
        print(f"| {what} | {figures['state']:.1f} | {figures['gradients']:.1f} | {figures['peak']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
