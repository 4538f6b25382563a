from dataclasses import replace

import numpy as np
import pytest
import torch

from samesense.context.corpus.corpus import Window
from samesense.context.generator import language_models as generator_infill
from samesense.context.generator import pretrained
from samesense.context.generator.base import KINDS
from samesense.context.generator.language_models import open_language_model
from samesense.context.generator.pretrained import as_it_stands
from samesense.errors import DataError, ModelError
from tests.context.worlds import livened, log_probability, small_causal, some_sentences, some_windows, tokenizer_of


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return small_causal(tmp_path_factory.mktemp("causal"))


@pytest.fixture(scope="module")
def infill(tmp_path_factory):
    from transformers import T5Config, T5ForConditionalGeneration

    folder = tmp_path_factory.mktemp("infill")
    config = T5Config(
        vocab_size=259,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    livened(T5ForConditionalGeneration(config)).save_pretrained(folder)
    tokenizer_of(["<extra_id_0>"]).save_pretrained(folder)
    return folder


def log_p(model, ids):
    """Return log p of each token after the first, by one forward and a softmax in double precision."""
    with torch.inference_mode():
        scores = model(input_ids=torch.tensor([ids])).logits[0].double().numpy()
    return [scores[index, token] - np.log(np.exp(scores[index]).sum()) for index, token in enumerate(ids[1:])]


def test_a_model_without_a_head_or_that_reads_both_ways_is_refused(causal, tiny_trunk, tmp_path):
    from transformers import AutoTokenizer, BertConfig, BertLMHeadModel, LlamaModel

    LlamaModel.from_pretrained(causal).save_pretrained(tmp_path / "headless")
    AutoTokenizer.from_pretrained(causal).save_pretrained(tmp_path / "headless")
    with pytest.raises(ModelError, match=r"has no output head \(lm_head"):
        open_language_model(str(tmp_path / "headless"))
    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk)
    sizes = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48}
    livened(BertLMHeadModel(BertConfig(vocab_size=len(tokenizer), **sizes))).save_pretrained(tmp_path / "both")
    tokenizer.save_pretrained(tmp_path / "both")
    with pytest.raises(ModelError, match="reads in both directions, and is no causal language model"):
        open_language_model(str(tmp_path / "both"))


def test_causal_probabilities_are_bayes_rule_over_the_running_text(causal):
    generator = open_language_model(str(causal))
    sentences = some_sentences(3)
    windows = some_windows(3)
    by_kind = {kind: log_probability(generator, kind, sentences, windows) for kind in KINDS}

    def ids(text):
        return generator.tokenizer(text, add_special_tokens=False)["input_ids"]

    for row, sentence in enumerate(sentences):
        for column, window in enumerate(windows):
            left = ids(f"{window.left[0]} {window.left[1]}")
            middle = ids(f" {sentence}")
            right = ids(f" {window.right[0]} {window.right[1]}")
            whole = log_p(generator.model, [1, *left, *middle, *right])
            end_of_middle = len(left) + len(middle)
            p_left = sum(whole[: len(left)])
            p_middle = sum(whole[len(left) : end_of_middle])
            p_right = sum(whole[end_of_middle:])
            skipping = sum(log_p(generator.model, [1, *left, *right])[len(left) :])
            alone = sum(log_p(generator.model, [1, *middle, *right]))
            expected = {
                "right": p_right,
                "sentence": p_middle + p_right - skipping,
                "left": p_left + p_middle + p_right - alone,
            }
            lengths = {"right": len(right), "sentence": len(middle), "left": len(left)}
            for kind, (values, tokens) in by_kind.items():
                assert tokens[row, column] == lengths[kind]
                assert values[row, column] * lengths[kind] == pytest.approx(expected[kind], abs=5e-4), kind


@pytest.mark.parametrize("form", ["causal", "infill"])
def test_a_continuation_is_the_text_after_the_sentence_with_any_text_before(causal, infill, form):
    generator = open_language_model(str({"causal": causal, "infill": infill}[form]))
    sentences = some_sentences(3)
    windows = some_windows(3)
    values, tokens = log_probability(generator, "continuation", sentences, windows)
    other_windows = [
        replace(window, left=other_window.right) for window, other_window in zip(windows, windows[::-1], strict=True)
    ]
    np.testing.assert_allclose(
        log_probability(generator, "continuation", sentences, other_windows)[0], values, atol=1e-6
    )
    assert np.abs(log_probability(generator, "right", sentences, other_windows)[0] - values).min() > 1e-5
    if form == "causal":
        for row, sentence in enumerate(sentences):
            for column, window in enumerate(windows):
                ids = [
                    generator.tokenizer(text, add_special_tokens=False)["input_ids"]
                    for text in (f" {sentence}", f" {window.right[0]} {window.right[1]}")
                ]
                expected = sum(log_p(generator.model, [1, *ids[0], *ids[1]])[len(ids[0]) :])
                assert tokens[row, column] == len(ids[1])
                assert values[row, column] * len(ids[1]) == pytest.approx(expected, abs=5e-4)


def test_gaps_are_filled_token_by_token(infill):
    generator = open_language_model(str(infill))
    sentences = some_sentences(2)
    windows = some_windows(2)
    by_kind = {kind: log_probability(generator, kind, sentences, windows) for kind in KINDS}

    def ids(text):
        return generator.tokenizer(text, add_special_tokens=False)["input_ids"]

    for row, sentence in enumerate(sentences):
        for column, window in enumerate(windows):
            left, right = (" ".join(side) for side in (window.left, window.right))
            prompts = {
                "sentence": ([*ids(left), 2, *ids(f" {right}"), 1], ids(sentence)),
                "left": ([2, *ids(f" {sentence} {right}"), 1], ids(left)),
                "right": ([*ids(f"{left} {sentence}"), 2, 1], ids(right)),
            }
            for kind, (source, target) in prompts.items():
                total = 0.0
                for index, token in enumerate(target):
                    with torch.inference_mode():
                        scores = (
                            generator.model(
                                input_ids=torch.tensor([source]),
                                decoder_input_ids=torch.tensor([[0, 2, *target[:index]]]),
                            )
                            .logits[0, -1]
                            .double()
                        )
                    total += float(scores[token] - scores.exp().sum().log())
                values, tokens = by_kind[kind]
                assert tokens[row, column] == len(target)
                assert values[row, column] * len(target) == pytest.approx(total, abs=5e-4), kind


@pytest.mark.parametrize("which", ["causal", "infill"])
def test_neighbours_in_a_batch_change_nothing(which, request, monkeypatch):
    folder = str(request.getfixturevalue(which))
    sentences = some_sentences(5, most=15)
    windows = some_windows(3)
    whole = [log_probability(open_language_model(folder), kind, sentences, windows)[0] for kind in KINDS]
    monkeypatch.setattr(pretrained, "CPU_TOKENS", 1)
    for kind, expected in zip(KINDS, whole, strict=True):
        np.testing.assert_allclose(
            log_probability(open_language_model(folder), kind, sentences, windows)[0], expected, atol=1e-5
        )
        assert expected.std() > 1e-3


def test_identity_tells_models_precisions_and_lengths_apart(causal, infill):
    identities = [
        open_language_model(str(causal)).identity,
        open_language_model(str(causal), precision="bfloat16").identity,
        open_language_model(str(causal), max_tokens=8).identity,
        open_language_model(str(infill)).identity,
    ]
    assert len(set(identities)) == 4
    assert open_language_model(str(causal)).identity == identities[0]


def test_long_sentences_are_cut(causal):
    generator = open_language_model(str(causal), max_tokens=8)
    _, lengths = log_probability(generator, "sentence", ["a very long sentence.", "a dog."], some_windows(1))
    assert lengths[:, 0].tolist() == [8, 7]


@pytest.mark.parametrize(
    ("text", "inside", "expected"),
    [
        ("A dog.", True, " A dog."),
        (" A dog. ", False, "A dog."),
        ("天气很好。", True, "天气很好。"),
        ("안녕하세요.", True, " 안녕하세요."),
        ("😀 ok", True, " 😀 ok"),
        ("「好」", True, "「好」"),
        (" ", True, ""),
    ],
)
def test_spaces_between_sentences_are_those_of_the_script(text, inside, expected):
    assert as_it_stands(text, inside=inside) == expected


def test_no_more_than_so_many_texts_are_kept(causal, monkeypatch):
    monkeypatch.setattr(pretrained, "KNOWN_TEXTS", 3)
    generator = open_language_model(str(causal))
    tokenized = []
    tokenizer = generator.tokenizer
    monkeypatch.setattr(generator, "tokenizer", lambda *a, **k: tokenized.append(a[0]) or tokenizer(*a, **k))
    for text in ("a", "b", "a", "c", "d", "d", "a", "b"):
        assert generator.ids(text, inside=False) == tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenized == ["a", "b", "c", "d", "b"]  # the oldest entries are evicted


def test_refusals(causal, infill, tmp_path):
    edge = Window((), "a cat.", ("a dog.",), id=7)
    with pytest.raises(DataError, match="both sides; context 7 has 0 sentences before"):
        log_probability(open_language_model(str(causal)), "sentence", ["a man."], [edge])
    for folder in (causal, infill):
        with pytest.raises(DataError, match="has none for this model"):
            log_probability(open_language_model(str(folder)), "sentence", [" "], some_windows(1))
    with pytest.raises(ModelError, match="Cannot open"):
        open_language_model(str(tmp_path / "nothing"))
    from transformers import T5ForConditionalGeneration

    with pytest.raises(ModelError, match="<extra_id_0>"):
        generator_infill.InfillGenerator(T5ForConditionalGeneration.from_pretrained(infill), tokenizer_of())
