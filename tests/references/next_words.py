"""Next words in plain transformers: one sentence at a time, no cache, every layer, double precision."""

import numpy as np
import torch


def own_vector(model, start, sentence, layer):
    """Mean of the hidden states of the sentence's tokens; the start token has no part in it."""
    with torch.inference_mode():
        states = model(input_ids=torch.tensor([[start, *sentence]]), output_hidden_states=True).hidden_states[layer][0]
    return sum(states[index].double().numpy() for index in range(1, 1 + len(sentence))) / len(sentence)


def end_of_prompt(model, ids, layer):
    """The state of the last token, and the log probability of every token as the next one."""
    with torch.inference_mode():
        output = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    scores = output.logits[0, -1].double().numpy()
    logs = scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())
    return output.hidden_states[layer][0, -1].double().numpy(), logs


def ppmi(logs, reference, kept):
    """max(0, log p(word | sentence) - log p(word)) of the ``kept`` largest, with p(word) the mean of the reference."""
    usual = np.log(np.exp(np.asarray(reference)).mean(axis=0))
    rows = []
    for row in logs:
        values = [max(0.0, value) for value in row - usual]
        least = sorted(values, reverse=True)[:kept][-1]
        rows.append([value if value >= least else 0.0 for value in values])
    return np.array(rows)


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
