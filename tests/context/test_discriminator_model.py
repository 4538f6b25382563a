import numpy as np
import pytest
import torch

from samesense.context.discriminator.lstm import Coherence, padded, side_means
from samesense.errors import ConfigError

NUMBERS = [[5, 2, 9], [3], [7, 7, 1, 4, 8, 2], [6, 2]]


def made(interaction, **settings):
    torch.manual_seed(0)
    model = Coherence(12, dim=4, hidden=3, interaction=interaction, **settings).eval()
    with torch.no_grad():
        for value in model.parameters():
            value.add_(torch.randn_like(value) * 0.3)
    return model


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def last_state(inputs, w_input, w_state, b_input, b_state):
    """Return the last state of one direction of an LSTM, step by step (Hochreiter and Schmidhuber 1997)."""
    state = np.zeros(len(b_input) // 4)
    cell = np.zeros(len(b_input) // 4)
    for x in inputs:
        enter, forget, new, out = np.split(w_input @ x + b_input + w_state @ state + b_state, 4)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
        state = sigmoid(out) * np.tanh(cell)
    return state


def reference_vector(model, numbers):
    weights = {name: value.detach().double().numpy() for name, value in model.state_dict().items()}
    inputs = weights["embedding.weight"][numbers]
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    forward = last_state(inputs, *(weights[f"lstm.{name}"] for name in names))
    backward = last_state(inputs[::-1], *(weights[f"lstm.{name}_reverse"] for name in names))
    return np.concatenate([forward, backward])


def test_a_sentence_vector_is_the_two_last_states_with_any_neighbours():
    model = made("none")
    with torch.no_grad():
        vectors = model.encode(*padded(NUMBERS)).numpy()
    for vector, numbers in zip(vectors, NUMBERS, strict=True):
        np.testing.assert_allclose(vector, reference_vector(model, numbers), atol=1e-6)


def test_sides_are_means_and_an_empty_one_is_zero():
    vectors = torch.randn(5, 3)
    sides = torch.tensor([[[0, 3, -1], [4, 4, 1]], [[-1, -1, -1], [-1, 2, -1]]])
    means = side_means(vectors, sides)
    expected = torch.stack(
        [torch.stack([vectors[[0, 3]].mean(0), vectors[[4, 4, 1]].mean(0)]), torch.stack([torch.zeros(3), vectors[2]])]
    )
    torch.testing.assert_close(means, expected)


@pytest.mark.parametrize("interaction", ["none", "product", "bilinear"])
def test_logits_and_loss_in_plain_loops(interaction):
    model = made(interaction)
    sides = torch.tensor([[[0, 1], [2, -1]], [[3, -1], [0, 2]]])
    centres = torch.tensor([[3, 1, 0], [1, 2, 1]])
    labels = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    with torch.no_grad():
        output = model(*padded(NUMBERS), sides, centres, labels)
    vectors = [reference_vector(model, numbers) for numbers in NUMBERS]
    weights = model.last.weight.detach().double().numpy()[0]
    losses = []
    for window in range(2):
        left, right = (np.mean([vectors[row] for row in side if row >= 0], axis=0) for side in sides[window].tolist())
        for position, row in enumerate(centres[window].tolist()):
            vector = vectors[row]
            logit = weights @ np.concatenate([left, vector, right])  # Eq. 1
            if interaction != "none":
                first, second = model.meeting.detach().double().numpy()
                if interaction == "product":
                    first = np.diag(first)
                    second = np.diag(second)
                logit += vector @ first @ left + vector @ second @ right
            assert output["logits"][window, position].item() == pytest.approx(logit, abs=1e-5)
            probability = sigmoid(logit)
            losses.append(-np.log(probability if labels[window, position] else 1 - probability))
    assert output["loss"].item() == pytest.approx(np.mean(losses), abs=1e-5)


@pytest.mark.parametrize("interaction", ["product", "bilinear"])
def test_an_interaction_starts_as_likeness(interaction):
    model = Coherence(12, dim=4, hidden=3, interaction=interaction)
    sentences = torch.randn(5, 6)
    left, right, _ = model.queries(sentences)
    plain = model.last.weight.view(3, 6)
    torch.testing.assert_close(left, plain[0] + sentences)
    torch.testing.assert_close(right, plain[2] + sentences)


def test_padding_has_no_vector_and_learns_none():
    model = Coherence(12, dim=4, hidden=3)
    tokens, lengths = padded([[5, 2], [3, 4, 6, 1]])
    assert not model.embedding.weight[0].any()
    model.encode(tokens, lengths).sum().backward()
    assert not model.embedding.weight.grad[0].any()
    assert model.embedding.weight.grad[5].any()


@pytest.mark.parametrize("wrong", [{"interaction": "sum"}, {"dim": 0}, {"hidden": 0}, {"dropout": 1.0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ConfigError, match="Sizes are 1 or larger"):
        Coherence(12, **wrong)
