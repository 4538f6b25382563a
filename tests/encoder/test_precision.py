"""A precision without hardware support is warned of once."""

import pytest
import torch

from samesense.encoder.forward import precision
from samesense.encoder.forward.precision import inference_precision
from tests.messages import listen


@pytest.mark.parametrize("able", [False, True])
def test_bfloat16_is_warned_of_where_it_is_slow(monkeypatch, able):
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: able)
    precision._warn_if_slow.cache_clear()
    messages = listen()
    for _ in range(2):
        assert inference_precision("bfloat16", torch.device("cpu")) == "bfloat16"
        assert inference_precision("float32", torch.device("cpu")) == "float32"
    assert [line.partition(":")[0] for line in messages] == (
        [] if able else ["This processor does not compute in bfloat16"]
    )
    precision._warn_if_slow.cache_clear()
