from types import SimpleNamespace

import pytest

from samesense.encoder.assembly.vocabulary import unknown_share


def test_unknown_tokens_are_counted_without_special_ones(tiny):
    ids = tiny.tokenizer("the dog runs", add_special_tokens=False)["input_ids"]
    assert tiny.tokenizer.unk_token_id not in ids
    assert unknown_share(tiny, ["the dog runs", "a cat"]) == 0
    assert unknown_share(tiny, ["the dog runs", "狗"]) == pytest.approx(1 / 4)
    assert unknown_share(tiny, ["狗"]) == 1
    assert unknown_share(tiny, []) == 0


def test_a_tokenizer_of_bytes_knows_everything():
    assert unknown_share(SimpleNamespace(tokenizer=SimpleNamespace(unk_token_id=None)), ["狗"]) == 0
