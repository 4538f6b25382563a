"""The losses by the data that they take. Flags, help, checks, error messages and tests are derived from these lists.

Each is described in its own file: formula, module, settings, and the data that it fits.
"""

from __future__ import annotations

from samesense.losses.angle import ANGLE_OF_PAIRS
from samesense.losses.contrastive import CONTRASTIVE_OF_PAIRS
from samesense.losses.cosent import COSENT_OF_LOGITS, COSENT_OF_PAIRS
from samesense.losses.cross_entropy import CROSS_ENTROPY_OF_LOGITS
from samesense.losses.gist import GIST_OF_TUPLES
from samesense.losses.info_nce import INFO_NCE_OF_PAIRS
from samesense.losses.lambda_loss import LAMBDA_OF_LOGITS
from samesense.losses.margin_mse import MARGIN_MSE_OF_LOGITS, MARGIN_MSE_OF_PAIRS
from samesense.losses.mse import MSE_OF_PAIRS
from samesense.losses.multi_positive import INFO_NCE_OF_TUPLES, SUPMPN_OF_TUPLES, MultiPositive
from samesense.losses.rank_cse import RankCSE
from samesense.losses.softmax import SOFTMAX_OF_PAIRS, SOFTMAX_OF_TUPLES
from samesense.losses.spec import Losses
from samesense.losses.sup_con import SUP_CON_OF_TUPLES, SupCon
from samesense.losses.triplet import BATCH_HARD_OF_TUPLES, TRIPLET_OF_PAIRS, TRIPLET_OF_TUPLES, BatchTriplet

PAIR_LOSSES = Losses(
    COSENT_OF_PAIRS,
    CONTRASTIVE_OF_PAIRS,
    MSE_OF_PAIRS,
    SOFTMAX_OF_PAIRS,
    TRIPLET_OF_PAIRS,
    INFO_NCE_OF_PAIRS,
    ANGLE_OF_PAIRS,
    MARGIN_MSE_OF_PAIRS,
    COSENT_OF_LOGITS,
    CROSS_ENTROPY_OF_LOGITS,
    LAMBDA_OF_LOGITS,
    MARGIN_MSE_OF_LOGITS,
)
"""The losses of labelled pairs: ``samesense train --loss``."""

TUPLE_LOSSES = Losses(
    SUPMPN_OF_TUPLES,
    INFO_NCE_OF_TUPLES,
    GIST_OF_TUPLES,
    TRIPLET_OF_TUPLES,
    SOFTMAX_OF_TUPLES,
    SUP_CON_OF_TUPLES,
    BATCH_HARD_OF_TUPLES,
)
"""The losses of anchors with positives and negatives: ``samesense train --method supmpn --loss``."""

OTHER_MODULES = (MultiPositive, SupCon, BatchTriplet, RankCSE)
"""Loss modules with fixed columns that no flag names; they are for custom trainers."""
