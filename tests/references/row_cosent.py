"""CoSENT of each row, as the double sum over the row's couples."""

from tests.references.info_nce import log_sum


def row_cosent(student, teacher, temperature, include_diagonal=False, reduction="mean"):
    total = 0.0
    for i, (scores, targets) in enumerate(zip(student, teacher, strict=True)):
        kept = [j for j in range(len(scores)) if include_diagonal or j != i]
        exponents = [0.0]
        for j in kept:
            for k in kept:
                if targets[j] < targets[k]:
                    exponents.append((scores[j] - scores[k]) / temperature)
        total += log_sum(exponents)
    return total / len(student) if reduction == "mean" else total
