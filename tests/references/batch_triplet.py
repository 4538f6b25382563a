"""Batch-all and batch-hard by listing every triplet of the batch."""

from tests.references.triplet import distance_of


def _table(embeddings, distance):
    return [[distance_of(u, v, distance) for v in embeddings] for u in embeddings]


def batch_all(embeddings, labels, distance, margin):
    table, total, count = _table(embeddings, distance), 0.0, 0
    everyone = range(len(labels))
    for a in everyone:
        for p in everyone:
            if p == a or labels[p] != labels[a]:
                continue
            for n in everyone:
                if labels[n] != labels[a]:
                    loss = table[a][p] - table[a][n] + margin
                    if loss > 0:
                        total += loss
                        count += 1
    return total / count if count else 0.0


def batch_hard(embeddings, labels, distance, margin):
    table, losses = _table(embeddings, distance), []
    for a, row in enumerate(table):
        near = [d for j, d in enumerate(row) if j != a and labels[j] == labels[a]]
        far = [d for j, d in enumerate(row) if labels[j] != labels[a]]
        if near and far:
            losses.append(max(0.0, max(near) - min(far) + margin))
    return sum(losses) / len(losses) if losses else 0.0
