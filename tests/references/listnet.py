"""ListNet list by list."""

from tests.references.info_nce import log_sum
from tests.references.js_consistency import probabilities


def listnet(student, teacher, student_temperature, teacher_temperature, include_diagonal=False, reduction="mean"):
    total = 0.0
    for i, (scores, targets) in enumerate(zip(student, teacher, strict=True)):
        kept = [j for j in range(len(scores)) if include_diagonal or j != i]
        if kept:
            target = probabilities([targets[j] for j in kept], teacher_temperature)
            logits = [scores[j] / student_temperature for j in kept]
            partition = log_sum(logits)
            total += sum(p * (partition - logit) for p, logit in zip(target, logits, strict=True))
    return total / len(student) if reduction == "mean" else total
