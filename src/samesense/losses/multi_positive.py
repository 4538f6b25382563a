"""InfoNCE with several positives and several hard negatives per anchor.

    L_i = mean over own positives p of  -log( exp(s_ip) / (exp(s_ip) + sum over c of exp(s_ic)) )

``s`` is the cosine over the temperature. ``c`` runs over the positives of all other anchors and the negatives of all
anchors, so an anchor's positives never compete with each other. ``exclude`` takes further candidates out of the sum.
With ``hardness``, each rival has a weight exp(hardness * cosine) in the sum, which receives no gradient. ``symmetric``
averages with the opposite direction, where each positive picks its anchor among the anchors:

    L'_i = mean over own positives p of  -log( exp(s_ip) / (exp(s_ip) + sum over anchors j other than i of exp(s_jp)) )
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from samesense.data.tuples.completion import Guard
from samesense.losses.base import EmbeddingLoss
from samesense.losses.cosine import check_finite, check_number, rowwise, tempered, unit
from samesense.losses.lazy import F, torch
from samesense.losses.settings import InfoNCESettings
from samesense.losses.spec import LossSpec
from samesense.losses.tuples import TAKES, DrawnSettings, Filter, PlacesSettings, unfold

if TYPE_CHECKING:
    from torch import Tensor, nn


def multi_positive(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    *,
    positive_owner: Tensor,
    temperature: float = 0.05,
    exclude: Tensor | None = None,
    symmetric: bool = False,
    hardness: float = 0.0,
    exclude_anchors: Tensor | None = None,
) -> Tensor:
    """Return the multiple-positives loss of one batch under cosine similarity, a scalar.

    Args:
        anchors: ``(n, dim)`` embeddings.
        positives: ``(p, dim)`` embeddings, one or more per anchor.
        negatives: ``(q, dim)`` hard negatives, possibly none; in Eq. 7 each counts against every anchor.
        positive_owner: ``(p,)`` index of the anchor each positive belongs to.
        temperature: divides the cosines; the paper does not give one, 0.05 is the scale of 20 in the released code.
        exclude: ``(n, p + q)`` bool over positives, then negatives: true where a candidate must not count against the
            anchor (the same text as one of its positives). It has no effect on an anchor's own positives.
        symmetric: average with the opposite direction, where each positive picks its anchor among the anchors. An
            anchor does not count against a positive that ``exclude`` takes out of the anchor's own sum.
        hardness: each rival of an anchor counts exp(hardness * cosine) times, without a gradient through this weight;
            0 counts all once. It has no effect on the opposite direction.
        exclude_anchors: ``(n, n)`` bool, for ``symmetric``: true in row i and column j where anchor j must not count
            against the positives of anchor i (the same text as anchor i or one of its positives).

    Returns:
        Scalar in float32 (float64 for float64 embeddings): the mean over anchors, each the mean over its positives.

    Raises:
        ValueError: if shapes do not fit, an owner is no anchor, an anchor has no positive, the temperature is not
            positive, the hardness is negative, a mask is not bool, or anchors are excluded without ``symmetric``.

    Source: Dehghan and Amasyali 2022 (SupMPN), Eq. 7. ``hardness``: Lan et al. 2025 (LLaVE), Eq. 5, as cited by
        sentence-transformers.
    Differs: none in value, and the numbers of positives and negatives may vary from anchor to anchor; the masks,
        ``symmetric`` and ``hardness`` are additions. With one positive per anchor and no mask, both are those of
        :func:`~samesense.losses.info_nce`. The released code leaves an anchor's other positives in the denominator
        with logit 0; here, as in Eq. 7, they are not in it.

    Example:
        >>> x = torch.eye(2)
        >>> multi_positive(x, x, x[:0], positive_owner=torch.arange(2), temperature=1.0)  # log(1 + exp(-1))
        tensor(0.3133)
    """
    n = len(anchors)
    check_finite("multi_positive", anchors=anchors, positives=positives, negatives=negatives)
    check_number("hardness", hardness, least=0)
    _check_owners(positives, positive_owner, n)
    count = torch.bincount(positive_owner, minlength=n)
    if (count == 0).any():
        raise ValueError(f"multi_positive needs a positive for every anchor; anchor {int(count.argmin())} has none.")
    # Normalized once, and not again in each block of anchors.
    candidates = unit(torch.cat([positives, negatives]))
    directions = tempered(unit(anchors), temperature)
    _check_mask("exclude", exclude, (n, len(candidates)))
    _check_mask("exclude_anchors", exclude_anchors, (n, n))
    if exclude_anchors is not None and not symmetric:
        raise ValueError("exclude_anchors belongs to symmetric, which is False. Leave it out.")
    # A weight of exp(hardness * cosine) adds a multiple of the logit.
    rivals = _rivals(directions, candidates, positive_owner, exclude, hardness * temperature)
    own_logits = (directions[positive_owner] * candidates[: len(positives)]).sum(dim=1)
    losses = _log_loss(rivals[positive_owner] - own_logits)
    if symmetric:
        rivals = _rival_anchors(candidates[: len(positives)], directions, positive_owner, exclude, exclude_anchors)
        losses = (losses + _log_loss(rivals - own_logits)) / 2
    return (losses / count[positive_owner]).sum() / max(n, 1)  # a batch without anchors costs 0


def _log_loss(excess: Tensor) -> Tensor:
    """Return ``(p,)`` -log of the share of each positive, of log-sum-exp of its rivals minus its own logit."""
    # log(1 + exp(excess)), without overflow.
    return torch.logaddexp(excess, torch.zeros_like(excess))


def _check_mask(name: str, mask: Tensor | None, shape: tuple[int, int]) -> None:
    if mask is not None and (mask.shape != shape or mask.dtype != torch.bool):
        raise ValueError(f"{name} must be bool of shape {shape}; received {mask.dtype} {tuple(mask.shape)}.")


def _rivals(
    anchors: Tensor, candidates: Tensor, positive_owner: Tensor, exclude: Tensor | None, hardness: float
) -> Tensor:
    """Return ``(n,)`` log-sum-exp of each anchor's logits for its rival candidates, -inf for none.

    ``hardness`` times the logit, without its gradient, is added to each.
    """

    def block(anchors: Tensor, numbers: Tensor, *excluded: Tensor) -> Tensor:
        # Own positives are no rivals; the padding covers the negatives, which are.
        out = F.pad(positive_owner == numbers, (0, len(candidates) - len(positive_owner)))
        for mask in excluded:
            out = out | mask
        with torch.autocast(anchors.device.type, enabled=False):  # autocast would round the product to half precision
            logits = anchors @ candidates.T
            if hardness:
                logits = logits + hardness * logits.detach()
            return logits.masked_fill(out, -torch.inf).logsumexp(dim=1)

    numbers = torch.arange(len(anchors), device=positive_owner.device)[:, None]
    masks = () if exclude is None else (exclude,)
    return rowwise(block, anchors, numbers, *masks, width=len(candidates))


def _rival_anchors(
    positives: Tensor, anchors: Tensor, positive_owner: Tensor, exclude: Tensor | None, exclude_anchors: Tensor | None
) -> Tensor:
    """Return ``(p,)`` log-sum-exp of the logits of each positive for the anchors that are not its own."""
    numbers = torch.arange(len(anchors), device=positive_owner.device)

    def block(positives: Tensor, owners: Tensor, *excluded: Tensor) -> Tensor:
        out = owners[:, None] == numbers
        if exclude_anchors is not None:
            out = out | exclude_anchors[owners]
        for mask in excluded:
            out = out | mask
        with torch.autocast(anchors.device.type, enabled=False):
            return (positives @ anchors.T).masked_fill(out, -torch.inf).logsumexp(dim=1)

    # A positive that is no negative of an anchor does not have this anchor as a negative.
    masks = () if exclude is None else (exclude[:, : len(positives)].T,)
    return rowwise(block, positives, positive_owner, *masks, width=len(anchors))


def _check_owners(positives: Tensor, owner: Tensor, anchors: int) -> None:
    if owner.shape != positives.shape[:1] or owner.is_floating_point():
        raise ValueError(
            f"positive_owner must name the anchor of each of the {len(positives)} positives by whole number; "
            f"received {owner.dtype} of shape {tuple(owner.shape)}."
        )
    outside = owner[(owner < 0) | (owner >= anchors)]
    if len(outside):
        raise ValueError(
            f"positive_owner must be 0 to {anchors - 1} for {anchors} anchors; received {int(outside[0])}."
        )


class MultiPositive(EmbeddingLoss):
    """SupMPN's loss: an anchor, several positives, and several negatives, in equal numbers for all anchors.

    For varying numbers see :class:`~samesense.losses.multi_positive.TupleMultiPositive`.

    Args:
        positives: number of positive columns after the anchor; all later columns are negatives.
        temperature: divides the cosines.
        symmetric: average with the opposite direction, where each positive picks its anchor.
        hardness: each rival counts exp(hardness * cosine) times.
    """

    takes = "an anchor column, the given number of positive columns, then negative columns"
    columns: tuple[int, int | None] = (2, None)

    def __init__(
        self,
        model: nn.Module,
        *,
        positives: int = 5,
        temperature: float = 0.05,
        symmetric: bool = False,
        hardness: float = 0.0,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.columns = (1 + positives, None)
        self.settings = {
            "positives": positives,
            "temperature": temperature,
            "symmetric": symmetric,
            "hardness": hardness,
        }

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return anchors, all positives and all negatives, and the numbers of both for each anchor."""
        anchors, *columns = embeddings
        positives = self.settings["positives"]
        sides = [_interleaved(side, anchors) for side in (columns[:positives], columns[positives:])]
        counts = torch.tensor([[positives, len(columns) - positives]], device=anchors.device)
        return [anchors, *sides], counts.expand(len(anchors), 2)

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.multi_positive` of anchors with any number of positives and negatives each.

        Args:
            tensors: embeddings of the anchors, of all positives, and of all negatives, in the order of their anchors;
                then, if false negatives are filtered, the keys of the texts of each of the three, and the keys of
                additional positives. A candidate with the key of an anchor, or of one of its positives, is not a
                negative of that anchor, nor is an anchor with such a key a negative of the positives.
            labels: ``(anchors, 2)`` numbers of positives and negatives, ``(anchors, 3)`` with those of additional ones.
        """
        anchors, positives, negatives, *keys = tensors
        owners = torch.arange(len(anchors), device=anchors.device)
        positive_owner = owners.repeat_interleave(labels[:, 0])
        options = {name: self.settings[name] for name in ("temperature", "symmetric", "hardness")}
        if keys:
            exclude, exclude_anchors = _exclusion_masks(keys, positive_owner, owners.repeat_interleave(labels[:, 2]))
            options["exclude"] = exclude
            if self.settings["symmetric"]:
                options["exclude_anchors"] = exclude_anchors
        return multi_positive(anchors, positives, negatives, positive_owner=positive_owner, **options)


def _interleaved(columns: list[Tensor], anchors: Tensor) -> Tensor:
    """Return the rows of columns ordered by anchor, and within an anchor by column; no rows for no columns."""
    if not columns:
        return anchors[:0]  # of the device and width of the others
    return torch.stack(columns, dim=1).flatten(0, 1)


def _exclusion_masks(keys: list[Tensor], positive_owner: Tensor, extra_owner: Tensor) -> tuple[Tensor, Tensor]:
    """Return masks of the texts with the key of an anchor or of its positives, a row for each anchor.

    The first is ``(anchors, positives + negatives)``, the second ``(anchors, anchors)``.

    Keys are renumbered first, so that the intermediate mask has one column per distinct key of the batch.
    """
    numbers = torch.unique(torch.cat(keys), return_inverse=True)[1]
    anchors, positives, negatives, extra = torch.split(numbers, [len(column) for column in keys])
    same = torch.zeros(len(anchors), int(numbers.max()) + 1, dtype=torch.bool, device=numbers.device)
    same[torch.arange(len(anchors), device=numbers.device), anchors] = True
    same[positive_owner, positives] = True
    same[extra_owner, extra] = True
    # The row of an anchor marks its keys; the columns of candidates and of anchors are looked up in it.
    return same[:, torch.cat([positives, negatives])], same[:, anchors]


class FilteredInfoNCESettings(InfoNCESettings, Filter):
    """Settings of SupMPN's loss."""


class TupleMultiPositive(MultiPositive):
    """SupMPN's loss on tuples of any size.

    Args:
        positives: places for positives.
        false_negative_filter: unless ``"off"``, texts that count as the same as the anchor or one of its positives are
            not used as its negatives.
        settings: further settings of :class:`MultiPositive`, and the model.
    """

    takes = TAKES
    labels = "class"

    def __init__(self, *model: Any, positives: int = 5, false_negative_filter: Guard = "same", **settings: Any) -> None:
        super().__init__(*model, positives=positives, **settings)
        self.columns = (1, 1)
        self.settings["false_negative_filter"] = false_negative_filter

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return the tuples as :meth:`MultiPositive.loss` takes them."""
        batch = unfold(embeddings[0], labels, self.settings["positives"])
        if self.settings["false_negative_filter"] == "off":
            return [*batch.columns], batch.counts
        keys = [*torch.split(batch.keys, [len(column) for column in batch.columns]), batch.extra_keys]
        return [*batch.columns, *keys], batch.counts


SUPMPN_OF_TUPLES = LossSpec(
    name="supmpn",
    module=TupleMultiPositive,
    settings=FilteredInfoNCESettings,
    target_settings=PlacesSettings,
)

INFO_NCE_OF_TUPLES = replace(SUPMPN_OF_TUPLES, name="info-nce", target_settings=DrawnSettings)
