"""The files of losses are read without torch, and their modules are torch's once one is made."""

import copy
import pickle
import subprocess
import sys

import torch

from samesense.losses.registry import OTHER_MODULES, PAIR_LOSSES, TUPLE_LOSSES
from samesense.losses.triplet import TupleTriplet


def test_the_list_of_losses_is_read_without_torch():
    heavy = ("torch", "transformers", "sentence_transformers", "datasets")
    code = f"import sys, samesense.losses.registry; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_loss_is_a_module_of_torch_once_one_is_made():
    loss = TupleTriplet(torch.nn.Linear(2, 2), triplet_margin=0.25)
    assert isinstance(loss, torch.nn.Module)
    classes = {spec.module for losses in (PAIR_LOSSES, TUPLE_LOSSES) for spec in losses.specs} | set(OTHER_MODULES)
    assert all(issubclass(kind, torch.nn.Module) for kind in classes)
    assert [name for name, _ in loss.named_parameters()] == ["model.weight", "model.bias"]
    for copied in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert type(copied) is TupleTriplet
        assert copied.settings == loss.settings
        assert torch.equal(copied.model.weight, loss.model.weight)
