"""The RankCSE objective as a sum of the other twins, and the teachers' weighted cosines."""

from tests.references.cosine import cosine
from tests.references.info_nce import info_nce_scores
from tests.references.js_consistency import js_consistency, minus_entropy
from tests.references.listmle import listmle
from tests.references.listnet import listnet
from tests.references.row_cosent import row_cosent


def rank_cse(scores, teacher, rank, beta, gamma, tau1, tau2, tau3, reduction="mean", contrast=1.0, consistency="js"):
    ranking = {
        "listnet": lambda: listnet(scores, teacher, tau2, tau3, False, reduction),
        "listmle": lambda: listmle(scores, teacher, tau2, True, reduction),
        "cosent": lambda: row_cosent(scores, teacher, tau2, False, reduction),
    }[rank]()
    picked = info_nce_scores(scores, tau1, reduction=reduction)
    alike = {"js": js_consistency, "community": minus_entropy}[consistency](scores, tau1, reduction)
    return contrast * picked + beta * alike + gamma * ranking


def teacher_scores(embeddings, weights):
    n = len(embeddings[0])
    result = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            for rows, weight in zip(embeddings, weights, strict=True):
                result[i][j] += weight * cosine(rows[i], rows[j]) / sum(weights)
    return result
