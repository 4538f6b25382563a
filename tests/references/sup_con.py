"""The supervised contrastive loss anchor by anchor."""

from tests.references.cosine import cosine_matrix
from tests.references.info_nce import log_sum


def sup_con(embeddings, labels, temperature, reduction="mean"):
    table, losses = cosine_matrix(embeddings, embeddings), []
    for i, row in enumerate(table):
        others = [j for j in range(len(labels)) if j != i]
        positives = [j for j in others if labels[j] == labels[i]]
        if positives:
            partition = log_sum([row[j] / temperature for j in others])
            losses.append(sum(partition - row[j] / temperature for j in positives) / len(positives))
    total = sum(losses)
    return total / len(losses) if losses and reduction == "mean" else total
