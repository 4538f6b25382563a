"""LambdaLoss with the weights of NDCG-Loss2++, from the paper's formulas, in plain Python floats."""

import math


def discount(rank):
    return math.log2(1 + rank)


def lambda_loss(scores, labels, groups, temperature=1.0, mu=10.0):
    total = 0.0
    comparisons = 0
    for group in set(groups):
        rows = [row for row, number in enumerate(groups) if number == group]
        ranked = sorted(rows, key=lambda row: -scores[row])
        ideal = sorted((labels[row] for row in rows), reverse=True)
        best = sum((2**label - 1) / discount(rank) for rank, label in enumerate(ideal, 1))
        for i, a in enumerate(ranked, 1):
            for j, b in enumerate(ranked, 1):
                if labels[a] <= labels[b]:
                    continue
                steps = abs(i - j)
                delta = abs(1 / discount(steps) - 1 / discount(steps + 1))
                rho = abs(1 / discount(i) - 1 / discount(j))
                weight = (mu * delta + rho) * abs(2 ** labels[a] - 2 ** labels[b]) / best
                difference = (scores[a] - scores[b]) / temperature
                total += weight * math.log2(1 + math.exp(-difference))
                comparisons += 1
    return total / max(comparisons, 1)
