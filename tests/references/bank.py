"""A bank's scores in plain transformers: one sentence and one window at a time, no cache, double precision."""

import numpy as np
import torch


def token_logs(model, start, sentence, tail):
    """log p of each token of ``tail`` after ``sentence``, one forward over all of them."""
    ids = [start, *sentence, *tail]
    with torch.inference_mode():
        scores = model(input_ids=torch.tensor([ids])).logits[0].double().numpy()
    found = []
    for at, token in enumerate(tail, 1 + len(sentence)):
        row = scores[at - 1]
        found.append(row[token] - row.max() - np.log(np.exp(row - row.max()).sum()))
    return found


def own_vector(model, start, sentence, layer):
    """Mean of the hidden states of the sentence's tokens; the start token has none of it."""
    with torch.inference_mode():
        states = model(input_ids=torch.tensor([[start, *sentence]]), output_hidden_states=True).hidden_states[layer][0]
    return sum(states[at].double().numpy() for at in range(1, 1 + len(sentence))) / len(sentence)


def whitened(rows, fitted_on):
    """Deviations from the mean of ``fitted_on`` by the inverse root of its covariance, shrunk by scikit-learn."""
    from sklearn.covariance import ledoit_wolf

    mean = fitted_on.mean(axis=0)
    values, vectors = np.linalg.eigh(ledoit_wolf(fitted_on)[0])
    return (rows - mean) @ vectors @ np.diag(values**-0.5) @ vectors.T


def similarity(parts, weights):
    """Weighted mean of the cosines of some parts, each a pair of vectors."""
    cosines = [one @ other / np.sqrt((one @ one) * (other @ other)) for one, other in parts]
    return sum(weight * value for weight, value in zip(weights, cosines, strict=True)) / sum(weights)
