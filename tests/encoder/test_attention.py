import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from samesense.encoder.forward.attention import SHORT, Group, packed_attention
from samesense.encoder.forward.dropout import LEVELS, keep_mask

LENGTHS = [[9, 7, 7], [3], [2, 1]]
LONG = [[SHORT + 9, SHORT + 1], [SHORT + 1], [30, 12], [3]]
HEADS = 4
TOKENS = sum(map(sum, LENGTHS))


def groups(of=LENGTHS):
    starts = [sum(map(sum, of[:index])) for index in range(len(of))]
    return [Group(lengths, start) for lengths, start in zip(of, starts, strict=True)]


def tensors(key_heads=HEADS, tokens=TOKENS, value_dim=8, dtype=torch.float64):
    torch.manual_seed(0)
    sizes = (HEADS, 8), (key_heads, 8), (key_heads, value_dim)
    return [torch.randn(1, heads, tokens, dim, dtype=dtype, requires_grad=True) for heads, dim in sizes]


def module(causal=False):
    attention = nn.Module()
    attention.is_causal = causal
    return attention


def text_by_text(query, key, value, causal, scale=None, of=LENGTHS):
    """Return torch's attention of each text alone."""
    start = 0
    outputs = []
    for n in (n for lengths in of for n in lengths):
        tensors_of_text = [tensor[:, :, start : start + n] for tensor in (query, key, value)]
        outputs.append(F.scaled_dot_product_attention(*tensors_of_text, is_causal=causal, enable_gqa=True, scale=scale))
        start += n
    return torch.cat(outputs, dim=2).transpose(1, 2)


@pytest.mark.parametrize("key_heads", [4, 2, 1])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.7])
@pytest.mark.parametrize("of", [LENGTHS, LONG, LONG[:2]], ids=["short", "mixed", "long"])
def test_packed_texts_attend_as_each_alone(key_heads, causal, scale, of):
    inputs = tensors(key_heads, sum(map(sum, of)), value_dim=5)
    got = packed_attention(module(causal), *inputs, None, scaling=scale, packing=groups(of))[0]
    expected = text_by_text(*inputs, causal, scale, of)
    torch.testing.assert_close(got, expected)
    weights = torch.randn_like(expected)
    for gradient, expected_gradient in zip(
        torch.autograd.grad(got, inputs, weights), torch.autograd.grad(expected, inputs, weights), strict=True
    ):
        torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("key_heads", [4, 2])
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_with_dropout_are_those_of_what_was_kept(key_heads, causal):
    def attend(*inputs):
        torch.manual_seed(1)  # the same seed drops the same weights
        return packed_attention(module(causal), *inputs, None, dropout=0.4, packing=groups())[0]

    torch.autograd.gradcheck(attend, tensors(key_heads), fast_mode=True)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("key_heads", [4, 2])
def test_padded_texts_attend_in_training_as_transformers_has_it(masked, causal, key_heads):
    """With a dropout so small that it drops nothing."""
    torch.manual_seed(0)
    layer = module(causal)
    layer.num_key_value_groups = 4 // key_heads
    inputs = [torch.randn(3, heads, 7, 8, requires_grad=True) for heads in (4, key_heads, key_heads)]
    mask = (torch.arange(7) < torch.tensor([[7], [4], [1]])).view(3, 1, 1, 7).expand(3, 1, 7, 7) if masked else None
    if masked and causal:
        mask = mask & torch.ones(7, 7, dtype=torch.bool).tril()
    ways = (sdpa_attention_forward, {"dropout": 0.0}), (packed_attention, {"dropout": 1e-9})
    (expected, slopes), (got, own_slopes) = (
        (output := attend(layer, *inputs, mask, **options)[0], torch.autograd.grad(output.square().sum(), inputs))
        for attend, options in ways
    )
    torch.testing.assert_close(got, expected)
    for slope, expected_slope in zip(own_slopes, slopes, strict=True):
        torch.testing.assert_close(slope, expected_slope)


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_padded_texts_with_dropout(masked):
    torch.manual_seed(0)
    inputs = [torch.randn(3, 2, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    mask = (torch.arange(5) < torch.tensor([[5], [3], [1]])).view(3, 1, 1, 5) if masked else None

    def attend(*tensors_given):
        torch.manual_seed(1)
        return packed_attention(module(), *tensors_given, mask, dropout=0.3)[0]

    torch.autograd.gradcheck(attend, inputs, fast_mode=True)


def test_dropout_drops_weights_and_scales_up_the_others():
    """Against the formula, with the numbers that dropout draws."""
    query, key, value = tensors(dtype=torch.float32)
    group = Group([TOKENS], 0)
    torch.manual_seed(2)
    got = packed_attention(module(), query, key, value, None, dropout=0.25, packing=[group])[0]
    torch.manual_seed(2)
    left = keep_mask((HEADS, TOKENS, TOKENS), LEVELS // 4).unsqueeze(0)
    weights = (query @ key.transpose(2, 3) / 8**0.5).softmax(dim=-1) * left / 0.75
    torch.testing.assert_close(got, (weights @ value).transpose(1, 2))


def test_dropout_of_everything_leaves_nothing():
    inputs = tensors(dtype=torch.float32)
    got = packed_attention(module(), *inputs, None, dropout=1.0, packing=groups())[0]
    assert not got.any()
    assert not any(slope.any() for slope in torch.autograd.grad(got.sum(), inputs))


def test_a_keyword_says_that_it_is_causal():
    inputs = tensors()
    got = packed_attention(module(), *inputs, None, is_causal=True, packing=groups())[0]
    torch.testing.assert_close(got, text_by_text(*inputs, causal=True))


def test_texts_without_a_token_attend_to_nothing():
    inputs = tensors(tokens=5)
    got = packed_attention(module(), *inputs, None, packing=[Group([5], 0), Group([0, 0], 5)])[0]
    torch.testing.assert_close(got, text_by_text(*inputs, causal=False, of=[[5]]))


@pytest.mark.parametrize("lengths", [[SHORT + 5, 40], [7, 4]])
def test_tokens_of_no_text_are_zeros_and_have_no_gradient(lengths):
    torch.manual_seed(0)
    total = sum(lengths)
    inputs = [torch.randn(1, 2, total + 6, 4, requires_grad=True) for _ in range(3)]
    got = packed_attention(module(), *inputs, None, packing=[Group(lengths[:1], 0), Group(lengths[1:], lengths[0])])[0]
    assert got.shape == (1, total + 6, 2, 4)
    assert not got[:, total:].any() and got[:, :total].all()
    for slope in torch.autograd.grad(got.square().sum(), inputs):
        assert not slope[:, :, total:].any() and slope[:, :, :total].any()


def test_autocast_leaves_double_precision_and_casts_padded_texts():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for packing in (groups(), None):
            for dtype, expected in ((torch.float64, torch.float64), (torch.float32, torch.bfloat16)):
                inputs = tensors(dtype=dtype)
                assert packed_attention(module(), *inputs, None, dropout=1e-9, packing=packing)[0].dtype == expected


@pytest.mark.parametrize("dropout", [0.0, 1e-9])
def test_autocast_computes_in_bfloat16_what_is_given_in_float32(dropout):
    inputs = tensors(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = packed_attention(module(), *inputs, None, dropout=dropout, packing=groups())[0]
    assert got.dtype == torch.bfloat16
    expected = text_by_text(*inputs, causal=False)
    torch.testing.assert_close(got.float(), expected, atol=0.03, rtol=0.03)
    for gradient, expected_gradient in zip(
        torch.autograd.grad(got.float().sum(), inputs), torch.autograd.grad(expected.sum(), inputs), strict=True
    ):
        assert gradient.dtype == torch.float32
        torch.testing.assert_close(gradient, expected_gradient, atol=0.05, rtol=0.05)
