"""Losses of sentence-transformers on embeddings, and gradients of twins by finite differences."""

import torch
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss


def ranking_loss(*columns, temperature, symmetric, hardness, mode="all_negatives"):
    """Return the loss of sentence-transformers with the options that are ours."""
    options = {"hardness_mode": mode, "hardness_strength": hardness} if hardness else {}
    if symmetric:
        options |= {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    loss = MultipleNegativesRankingLoss(torch.nn.Identity(), scale=1 / temperature, **options)
    return loss.compute_loss_from_embeddings(list(columns), None)


def differences(value, *columns, step=1e-5):
    """Return the gradient of a function of lists of vectors for each column, by central differences."""
    gradients = []
    for column in columns:
        gradient = torch.zeros_like(column)
        for index in range(column.numel()):
            ends = []
            for sign in (1, -1):
                moved = [other.clone() for other in columns]
                moved[[column is other for other in columns].index(True)].view(-1)[index] += sign * step
                ends.append(value(*(other.tolist() for other in moved)))
            gradient.view(-1)[index] = (ends[0] - ends[1]) / (2 * step)
        gradients.append(gradient)
    return gradients
