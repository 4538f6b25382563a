"""The part of two_ranks.py with whole trainings: one to its end, one stopped and resumed, under a token budget."""

import signal
from pathlib import Path

import torch
from transformers import TrainerCallback

from samesense.encoder.assembly.build import build
from samesense.execution.ranks import is_main
from samesense.losses.cosent import CoSENT
from samesense.training.dataset import as_dataset
from samesense.training.fit import fit
from samesense.training.settings import TrainingSettings
from tests.conftest import WORDS

SETTINGS = TrainingSettings(max_steps=6, batch_size=4, eval_steps=10, precision="float32", learning_rate=1e-3)


class Steps(TrainerCallback):
    """Notes every step, and in one of them presses Ctrl-C once, which reaches the second process alone."""

    def __init__(self, stop):
        self.stop, self.seen = stop, []

    def on_step_end(self, args, state, control, **kwargs):
        self.seen.append(state.global_step)
        if state.global_step == self.stop and not is_main():
            signal.raise_signal(signal.SIGINT)


def trained(trunk, folder, *, stop=None, resume=False):
    """The steps that were taken, and the weights at the end."""
    model = build(trunk, device="cpu")
    steps = Steps(stop)
    texts = [" ".join(WORDS[index : index + 2 + index % 5]) for index in range(40)]
    data = as_dataset({"a": texts, "b": texts[::-1], "label": [float(index % 3) for index in range(40)]})
    fit(model, data, CoSENT(model, mini_batch_num_tokens=16), SETTINGS, folder, resume=resume, callbacks=[steps])
    return steps.seen, torch.cat([p.detach().flatten() for p in model.parameters()])


def shared_out(trunk, folder):
    whole = trained(trunk, Path(folder) / "whole")
    stopped = trained(trunk, Path(folder) / "stopped", stop=3)
    resumed = trained(trunk, Path(folder) / "stopped", resume=True)
    same = torch.equal(whole[1], resumed[1]) and not torch.equal(whole[1], stopped[1])
    return {"steps": [whole[0], stopped[0], resumed[0]], "same": same}
