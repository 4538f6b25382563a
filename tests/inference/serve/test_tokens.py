from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from samesense.errors import DataError, ModelError
from samesense.inference.serve.tokens import FastTokens, tokens_of

VOCABULARY = {word: i for i, word in enumerate("[UNK] [CLS] [SEP] the train is late".split())}


@pytest.fixture
def tokenizer():
    built = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    built.normalizer = normalizers.Lowercase()
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    built.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    built.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    return built


def test_counts_do_not_depend_on_the_tokenizers_own_cut(tokenizer):
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=9)
    tokens = FastTokens(tokenizer, 4)
    assert tokens.count(["the train", "The train is late", "late " * 50]) == [4, 6, 52]
    assert tokenizer.truncation["max_length"] == 4, "the model's own tokenizer is left alone"


def test_ids_become_the_text_that_has_them(tokenizer):
    tokens = FastTokens(tokenizer, 16)
    assert tokens.text([3, 4, 5, 6]) == tokens.text([1, 3, 4, 5, 6, 2]) == "the train is late"
    for ids in ([0], [99], [3, 99], [1, 2, 3]):
        with pytest.raises(DataError, match="must be those of the served model's tokenizer"):
            tokens.text(ids)


def test_of_a_model(tokenizer):
    attributes = {"max_seq_length": 7, "prompts": {"query": "the late "}, "default_prompt_name": "query"}
    tokens = tokens_of(SimpleNamespace(tokenizer=SimpleNamespace(backend_tokenizer=tokenizer), **attributes))
    assert (tokens.longest, tokens.count(["train", ""])) == (7, [5, 4])
    static = tokens_of(SimpleNamespace(tokenizer=tokenizer, **attributes | {"default_prompt_name": None}))
    assert (static.longest, static.count(["the train"])) == (7, [2])
    with pytest.raises(ModelError, match=r"needs a fast tokenizer .* this model has a object"):
        tokens_of(SimpleNamespace(tokenizer=object(), max_seq_length=7))
