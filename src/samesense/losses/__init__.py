"""Losses, one a file: formula, loss module for sentence-transformers, settings, and the data that it fits."""

from samesense.losses.contrastive import contrastive
from samesense.losses.cosent import cosent, row_cosent
from samesense.losses.cosine import angle_scores, cosine_matrix, row_cosine
from samesense.losses.gist import gist
from samesense.losses.info_nce import info_nce, info_nce_scores
from samesense.losses.js_consistency import js_consistency, js_divergence, minus_entropy
from samesense.losses.lambda_loss import lambda_loss
from samesense.losses.listwise import listmle, listnet
from samesense.losses.margin_mse import margin_mse
from samesense.losses.mse import mse
from samesense.losses.multi_positive import multi_positive
from samesense.losses.rank_cse import RankDistillation, rank_cse, teacher_scores
from samesense.losses.softmax import softmax, softmax_features
from samesense.losses.sup_con import sup_con
from samesense.losses.triplet import batch_all, batch_hard, triplet

__all__ = [
    "RankDistillation",
    "angle_scores",
    "batch_all",
    "batch_hard",
    "contrastive",
    "cosent",
    "cosine_matrix",
    "gist",
    "info_nce",
    "info_nce_scores",
    "js_consistency",
    "js_divergence",
    "lambda_loss",
    "listmle",
    "listnet",
    "margin_mse",
    "minus_entropy",
    "mse",
    "multi_positive",
    "rank_cse",
    "row_cosent",
    "row_cosine",
    "softmax",
    "softmax_features",
    "sup_con",
    "teacher_scores",
    "triplet",
]
