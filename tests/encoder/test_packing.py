import json

import pytest
import torch
from torch.nn import functional as F

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.forward import attention
from samesense.encoder.forward.attention import NAME
from samesense.encoder.forward.batching import embed_columns
from samesense.encoder.forward.dropout import CheapDropout
from samesense.encoder.forward.packing import cheap_dropout_on_cpu, packing, round_up_tokens, takes_packed_texts


def folder_of(kind, tiny_trunk, folder):
    """A bare, random model with the tokenizer of the tiny one."""
    from transformers import (
        AutoTokenizer,
        LlamaConfig,
        LlamaModel,
        MPNetConfig,
        MPNetModel,
        T5Config,
        T5EncoderModel,
        XLMRobertaConfig,
    )
    from transformers import XLMRobertaModel as Roberta

    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk)
    sizes = {"vocab_size": len(tokenizer), "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4}
    fields = {"intermediate_size": 48, "max_position_embeddings": 64, "pad_token_id": tokenizer.pad_token_id}
    torch.manual_seed(0)
    if kind == "roberta":
        model = Roberta(XLMRobertaConfig(**sizes, **fields))
    elif kind == "mpnet":
        model = MPNetModel(MPNetConfig(**sizes, **fields))
        model.encoder.relative_attention_bias.weight.data.normal_()
    elif kind == "llama":
        model = LlamaModel(LlamaConfig(**sizes, **fields, num_key_value_heads=2))
        tokenizer.padding_side = "left"
    else:
        model = T5EncoderModel(
            T5Config(vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
        )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if kind == "mpnet":
        pad_by_token_1(folder / "tokenizer.json")
    return str(folder)


def pad_by_token_1(file):
    """Swap the tokens 0 and 1 of a tokenizer that pads by 0: MPNet's padding is 1 in its code."""
    swapped = {0: 1, 1: 0}
    content = json.loads(file.read_text())
    content["model"]["vocab"] = {
        token: swapped.get(number, number) for token, number in content["model"]["vocab"].items()
    }
    for token in content["added_tokens"]:
        token["id"] = swapped.get(token["id"], token["id"])
    file.write_text(json.dumps(content))


def gradient(model, embeddings):
    model.zero_grad()
    F.cosine_similarity(*embeddings).sum().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize(
    ("kind", "pooling"),
    [
        ("bert", "mean"),
        ("bert", "cls"),
        ("bert", "first-last"),
        ("roberta", "mean"),
        ("roberta", "max"),
        ("mpnet", "mean"),
        ("llama", "lasttoken"),
        ("llama", "mean"),
    ],
)
@pytest.mark.parametrize("budget", [None, 40])
def test_packed_texts_have_the_embeddings_and_gradients_of_padded_ones(
    kind, pooling, budget, tiny_trunk, tmp_path, sentences
):
    folder = str(tiny_trunk) if kind == "bert" else folder_of(kind, tiny_trunk, tmp_path / kind)
    model = build(folder, pooling=pooling, device="cpu").eval()
    columns = [model.preprocess(sentences[:13]), model.preprocess(sentences[13:26])]
    expected = embed_columns(model, columns, mini_batch_num_tokens=budget)
    slope = gradient(model, expected)
    with packing(model):
        assert takes_packed_texts(model)
        got = embed_columns(model, columns, chunk_cost=3, mini_batch_num_tokens=budget)
        own_slope = gradient(model, got)
        padded = model(dict(columns[0]))["sentence_embedding"]
    assert not takes_packed_texts(model)
    for embedding, expected_embedding in zip(got, expected, strict=True):
        torch.testing.assert_close(embedding, expected_embedding, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(own_slope, slope, atol=5e-5, rtol=1e-3)
    torch.testing.assert_close(padded, expected[0], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_packing_within_packing_ends_with_the_outer_one(kind, tiny_trunk, tmp_path):
    model = build(str(tiny_trunk) if kind == "bert" else folder_of(kind, tiny_trunk, tmp_path / kind), device="cpu")
    with packing(model):
        with packing(model):
            assert takes_packed_texts(model)
        assert takes_packed_texts(model)
    assert not takes_packed_texts(model)


def test_long_texts_have_the_relative_positions_of_padded_ones(tiny_trunk, tmp_path, sentences, monkeypatch):
    model = build(folder_of("mpnet", tiny_trunk, tmp_path / "mpnet"), device="cpu").eval()
    columns = [model.preprocess(sentences[:13]), model.preprocess(sentences[13:26])]
    expected = embed_columns(model, columns)
    slope = gradient(model, expected)
    monkeypatch.setattr(attention, "SHORT", 0)
    with packing(model):
        got = embed_columns(model, columns)
        own_slope = gradient(model, got)
    torch.testing.assert_close(got, expected, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(own_slope, slope, atol=5e-5, rtol=1e-3)


@pytest.mark.parametrize(("kind", "taken"), [("bert", True), ("roberta", True), ("llama", False)])
@pytest.mark.parametrize("budget", [None, 60])
def test_packed_pairs_have_the_scores_and_gradients_of_padded_ones(
    kind, taken, budget, tiny_trunk, tmp_path, sentences
):
    folder = str(tiny_trunk) if kind == "bert" else folder_of(kind, tiny_trunk, tmp_path / kind)
    model = build_cross(folder, device="cpu").eval()
    pairs = list(zip(sentences[:13], sentences[13:26], strict=True))
    columns = [model.preprocess(pairs)]

    def slope(scores):
        model.zero_grad()
        scores.square().sum().backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    expected = embed_columns(model, columns, mini_batch_num_tokens=budget)[0]
    gradients = slope(expected)
    with packing(model):
        assert takes_packed_texts(model) == taken
        got = embed_columns(model, columns, chunk_cost=3, mini_batch_num_tokens=budget)[0]
        slopes = slope(got)
        padded = model(dict(columns[0]))["scores"].view(-1, 1)
    assert not takes_packed_texts(model) and not model[0].model.base_model._forward_hooks
    torch.testing.assert_close(got, expected, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(padded, expected, atol=2e-5, rtol=1e-4)
    assert slopes.keys() == gradients.keys()
    for name, expected_slope in gradients.items():
        torch.testing.assert_close(slopes[name], expected_slope, atol=5e-5, rtol=1e-3)


@pytest.mark.parametrize("pairs", [False, True])
def test_packed_in_bfloat16_is_as_exact_as_its_numbers(pairs, tiny_trunk, sentences):
    """Compares embeddings, or scores, and the gradients of all weights, including layer norms."""
    model = (build_cross if pairs else build)(str(tiny_trunk), device="cpu").eval()
    texts = list(zip(sentences[:16], sentences[16:32], strict=True)) if pairs else sentences[:32] * 8
    columns = [model.preprocess(texts)]
    toward = torch.randn(len(texts), 1 if pairs else model.get_embedding_dimension())

    def step():
        model.zero_grad()
        embeddings = embed_columns(model, columns)[0]
        (embeddings.float() * toward).sum().backward()
        return embeddings.float(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    exact, gradients = step()
    with torch.autocast("cpu", dtype=torch.bfloat16), packing(model):
        assert takes_packed_texts(model)
        got, slopes = step()
    assert not torch.equal(got, exact)
    near = 0.1 if pairs else 0.01  # seven bits of fraction; a score here is a small difference of large numbers
    assert (got - exact).norm() < near * exact.norm()
    whole = torch.stack([expected.norm() for expected in gradients.values()]).norm()
    for name, expected in gradients.items():
        assert (slopes[name] - expected).norm() < 0.03 * expected.norm() + 1e-4 * whole, name


def test_layers_under_autocast_read_bfloat16_and_give_float32_embeddings(tiny, sentences):
    read = []
    tiny[0].model.encoder.layer[-1].register_forward_pre_hook(lambda layer, inputs: read.append(inputs[0].dtype))
    columns = [tiny.preprocess(sentences[:4])]
    with packing(tiny):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            read.clear()
            assert embed_columns(tiny, columns)[0].dtype == torch.float32
        assert embed_columns(tiny.double(), columns)[0].dtype == torch.float64
    embed_columns(tiny, columns)
    assert read == [torch.bfloat16, torch.float64, torch.float64]


def test_a_text_is_dropped_from_as_if_alone(tiny, sentences):
    """With dropout, packed texts keep to themselves: a change of one changes no other."""
    tiny.train()
    texts = sorted(sentences[:6], key=len, reverse=True)
    with packing(tiny):

        def embed(words):
            torch.manual_seed(0)
            return embed_columns(tiny, [tiny.preprocess(words)])[0]

        first = embed(texts)
        again = embed(texts)
        changed = embed([*texts[:-1], " ".join(reversed(texts[-1].split()))])
    assert torch.equal(first, again)
    assert torch.equal(first[:-1], changed[:-1]) and not torch.equal(first[-1], changed[-1])


@pytest.mark.parametrize(
    "embed",
    [
        lambda model, features: embed_columns(model, [features])[0],
        lambda model, features: model(dict(features))["sentence_embedding"],
    ],
    ids=["packed", "padded"],
)
def test_dropout_falls_on_the_weights_of_attention(embed, tiny, sentences):
    for module in tiny.modules():
        if hasattr(module, "p"):
            module.p = 0.0
    tiny.train()
    features = tiny.preprocess(sentences[:6])
    with packing(tiny):
        whole = embed(tiny, features)
        for layer in tiny[0].model.encoder.layer:
            layer.attention.self.dropout.p = 0.2
        draws = torch.stack([embed(tiny, features) for _ in range(200)])
    assert draws.std(dim=0).max() > 1e-3
    torch.testing.assert_close(draws.mean(dim=0), whole, atol=0.05, rtol=0.1)


def test_a_model_with_biases_of_attention_is_padded(tiny_trunk, tmp_path, sentences):
    model = build(folder_of("t5", tiny_trunk, tmp_path / "t5"), device="cpu").eval()
    columns = [model.preprocess(sentences[:5])]
    expected = embed_columns(model, columns)[0]
    with packing(model):
        assert not takes_packed_texts(model)
        assert torch.equal(embed_columns(model, columns)[0], expected)


def test_dropout_is_cheap_only_while_a_transformer_trains(tiny):
    trunk = tiny[0].model
    with cheap_dropout_on_cpu(trunk):
        assert trunk.config._attn_implementation == NAME
        assert any(isinstance(module, CheapDropout) for module in trunk.modules())
    assert trunk.config._attn_implementation == "sdpa"


def test_a_saved_model_knows_nothing_of_it(tiny, tmp_path):
    with packing(tiny):
        tiny.save(str(tmp_path / "saved"))
    assert all("packed" not in path.read_text() for path in (tmp_path / "saved").rglob("*.json"))


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("budget", [None, 60])
def test_bfloat16_sees_few_numbers_of_tokens(pairs, budget, tiny_trunk, sentences):
    """The tokens that are added are of no text: the embeddings and gradients are those without them."""
    model = (build_cross if pairs else build)(str(tiny_trunk), device="cpu").eval()
    texts = list(zip(sentences[:11], sentences[11:22], strict=True)) if pairs else sentences[:11]
    columns = [model.preprocess(texts)]
    widths = []
    table = model[0].model.base_model.embeddings.word_embeddings.weight
    model[0].model.base_model.embeddings.register_forward_hook(lambda *got: widths.append(got[-1].shape[1]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        padded = embed_columns(model, columns)[0]
        slope = torch.autograd.grad(padded.square().sum(), table)
        with packing(model):
            widths.clear()
            packed = embed_columns(model, columns, mini_batch_num_tokens=budget)[0]
            own_slope = torch.autograd.grad(packed.square().sum(), table)
    total = int(columns[0]["attention_mask"].sum())
    if budget is None:
        assert widths == [round_up_tokens(total)] and round_up_tokens(total) > total
    assert all(round_up_tokens(n) == n for n in widths)
    assert packed.shape == padded.shape
    torch.testing.assert_close(packed, padded, atol=0.02, rtol=0.05)
    torch.testing.assert_close(own_slope[0], slope[0], atol=0.05 * slope[0].abs().max().item(), rtol=0.1)


def test_few_numbers_of_tokens_and_little_more():
    numbers = range(1, 5000)
    assert all(
        n <= round_up_tokens(n) <= 17 / 16 * n and round_up_tokens(round_up_tokens(n)) == round_up_tokens(n)
        for n in numbers
    )
    assert len({round_up_tokens(n) for n in range(1024, 2049)}) == 17
