"""InfoNCE where only some anchors have a hard negative: the same as InfoNCE with those that there are."""

import pytest
import torch
from datasets import Dataset

from samesense.errors import DataError
from samesense.losses import info_nce
from samesense.training.losses.check import check_fits
from samesense.training.losses.hard_negatives import SomeHardNegatives
from samesense.training.losses.tuples import InfoNCE


@pytest.mark.parametrize("known", [[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
def test_only_negatives_with_label_1_count(tiny, known):
    anchors, positives, negatives = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0)).unbind()
    negatives.requires_grad_()
    loss = SomeHardNegatives(tiny, temperature=0.1).compute_loss_from_embeddings(
        [anchors, positives, negatives], torch.tensor(known)
    )
    real = negatives[[at for at, counts in enumerate(known) if counts]]
    torch.testing.assert_close(loss, info_nce(anchors, positives, real, temperature=0.1))
    if any(known):
        loss.backward()
        assert [bool(row.any()) for row in negatives.grad] == [bool(counts) for counts in known]


def test_it_is_info_nce_of_the_whole_columns(tiny, sentences):
    tiny.eval()
    columns = [tiny.preprocess(sentences[at : at + 4]) for at in (0, 4, 8)]
    ours = SomeHardNegatives(tiny)([dict(column) for column in columns], torch.ones(4))
    torch.testing.assert_close(ours, InfoNCE(tiny)([dict(column) for column in columns]))


def test_data_that_do_not_fit_are_refused(tiny):
    columns = {"anchor": ["a", "b"], "positive": ["c", "d"], "negative": ["e", "f"]}
    check_fits(SomeHardNegatives(tiny), Dataset.from_dict({**columns, "label": [1, 0]}))
    for wrong in (columns, {**columns, "label": [2, 0]}):
        with pytest.raises(DataError, match=r"^SomeHardNegatives takes three text columns: anchor, positive, hard neg"):
            check_fits(SomeHardNegatives(tiny), Dataset.from_dict(wrong))
    with pytest.raises(ValueError, match="needs a label for each pair"):
        SomeHardNegatives(tiny).compute_loss_from_embeddings([torch.ones(2, 3)] * 3)
