"""ListMLE rank by rank: who is first, who is first of the rest, and so on."""

from tests.references.info_nce import log_sum


def listmle(student, teacher, student_temperature, include_diagonal=True, reduction="mean"):
    total = 0.0
    for i, (scores, targets) in enumerate(zip(student, teacher, strict=True)):
        left = [j for j in range(len(scores)) if include_diagonal or j != i]
        while left:
            best = max(left, key=lambda j: targets[j])  # the first of equals
            total += log_sum([scores[j] / student_temperature for j in left]) - scores[best] / student_temperature
            left.remove(best)
    return total / len(student) if reduction == "mean" else total
