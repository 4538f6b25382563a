"""Masked language modelling beside a contrastive loss: which tokens are masked, and which head predicts them."""

import pytest
import torch
from torch.nn import functional as F
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, DistilBertConfig, DistilBertForMaskedLM

from samesense.encoder.assembly.build import build
from samesense.errors import ConfigError
from samesense.losses.info_nce import InfoNCE
from samesense.losses.mlm import IGNORED, InfoNCEWithMLM, Masking, masked_lm_head


@pytest.fixture
def tokenizer(tiny_trunk):
    return AutoTokenizer.from_pretrained(tiny_trunk)


@pytest.fixture(scope="module", params=["bert", "distilbert"])
def checkpoint(request, tiny_trunk, tmp_path_factory):
    """Folder of a masked language model with its head, and that model."""
    torch.manual_seed(3)
    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk)
    if request.param == "bert":
        config = BertConfig(
            vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
        )
        model = BertForMaskedLM(config)
    else:
        config = DistilBertConfig(vocab_size=len(tokenizer), dim=32, n_layers=2, n_heads=2, hidden_dim=64)
        model = DistilBertForMaskedLM(config)
    folder = tmp_path_factory.mktemp("models") / request.param
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder, model.eval()


def test_proportions(tokenizer):
    """15 % of the real tokens are chosen; of these 80 % are the mask, 10 % another token, 10 % as they were."""
    torch.manual_seed(0)
    ids = torch.randint(5, len(tokenizer), (400, 300))
    ids[:, 0], ids[:, -1] = tokenizer.cls_token_id, tokenizer.sep_token_id
    ids[7, 5] = tokenizer.unk_token_id
    attention = torch.ones_like(ids)
    attention[:100, 200:] = 0
    before = ids.clone()
    masked, targets = Masking(tokenizer)(ids, attention)
    assert torch.equal(ids, before)
    chosen = targets != IGNORED
    real = attention.bool() & (ids > 4)
    assert not (chosen & ~real).any()
    assert torch.equal(masked[~chosen], ids[~chosen])
    assert torch.equal(targets[chosen], ids[chosen])
    assert (chosen.sum() / real.sum()).item() == pytest.approx(0.15, abs=0.005)
    of_chosen = masked[chosen]
    masks = (of_chosen == tokenizer.mask_token_id).float().mean().item()
    same = (of_chosen == ids[chosen]).float().mean().item()
    assert masks == pytest.approx(0.8, abs=0.015)
    assert same == pytest.approx(0.1 + 0.1 / len(tokenizer), abs=0.015)
    twice, _ = Masking(tokenizer)(ids, attention)
    assert not torch.equal(masked, twice)
    _, third = Masking(tokenizer, share=1 / 3)(ids, attention)
    assert ((third != IGNORED).sum() / real.sum()).item() == pytest.approx(1 / 3, abs=0.01)


def test_the_head_is_the_checkpoints_own(checkpoint):
    folder, whole = checkpoint
    model = build(str(folder), device="cpu")
    head = masked_lm_head(model).eval()
    ids = torch.randint(5, 60, (3, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    with torch.no_grad():
        tokens = whole.base_model(input_ids=ids, attention_mask=mask)[0]
        torch.testing.assert_close(head(tokens.flatten(0, 1)), whole(input_ids=ids).logits.flatten(0, 1))
    model_parameters = {id(p) for p in model.parameters()}
    assert not model_parameters & {id(p) for p in head.parameters()}  # no longer tied to the embeddings
    assert sum(p.numel() for p in head.parameters()) < 4000  # and nothing below the head


def test_value_is_the_contrastive_loss_and_the_masked_models_own(checkpoint, sentences, monkeypatch):
    """Against transformers' loss on the very masked copies, each view masked by itself."""
    folder, whole = checkpoint
    model = build(str(folder), device="cpu").eval()
    drawn = []
    masking = Masking(model.tokenizer, share=0.3)

    def remember(ids, attention):
        drawn.append((attention, *masking(ids, attention)))
        return drawn[-1][1:]

    objective = InfoNCEWithMLM(model, mlm_head=masked_lm_head(model).eval(), masking=remember, mlm_weight=0.25)
    column = model.preprocess(sentences[:8])
    before = {key: value.clone() for key, value in column.items() if isinstance(value, torch.Tensor)}
    loss = objective([column])
    contrast = InfoNCE(model)([column])
    assert all(torch.equal(column[key], value) for key, value in before.items())
    assert len(drawn) == 2
    assert not torch.equal(drawn[0][1], drawn[1][1])
    logits = torch.cat([whole(input_ids=m, attention_mask=a).logits.flatten(0, 1) for a, m, _ in drawn])
    targets = torch.cat([t.flatten() for *_, t in drawn])
    expected = contrast + 0.25 * F.cross_entropy(logits, targets, ignore_index=IGNORED)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    loss.backward()
    grads = [p.grad for p in objective.mlm_head.parameters()]
    assert all(g is not None and g.isfinite().all() for g in grads)
    assert objective.get_config_dict()["mlm_weight"] == 0.25


def test_a_batch_without_a_masked_token_costs_nothing_more(checkpoint, sentences):
    model = build(str(checkpoint[0]), device="cpu").eval()
    none = lambda ids, attention: (ids.clone(), torch.full_like(ids, IGNORED))  # noqa: E731
    objective = InfoNCEWithMLM(model, mlm_head=masked_lm_head(model), masking=none)
    column = model.preprocess(sentences[:4])
    torch.testing.assert_close(objective([column]), InfoNCE(model)([column]))


def test_a_checkpoint_without_a_head_is_refused(tiny, tmp_path):
    with pytest.raises(ConfigError, match=r"tiny-bert has none \(6 of its weights are not there, such as cls\."):
        masked_lm_head(tiny)
    tiny[0].model.name_or_path = str(tmp_path)
    with pytest.raises(ConfigError, match=r"needs a checkpoint with its masked-LM head"):
        masked_lm_head(tiny)


def test_a_tokenizer_without_a_mask_is_refused(tokenizer):
    tokenizer.mask_token = None
    with pytest.raises(ConfigError, match=r"needs a tokenizer with a mask token.*Set mlm_weight to 0"):
        Masking(tokenizer)
