"""Masked language modelling: the loss equals its twin, what is held out stays out, and a stopped run ends the same."""

import json
import math
import shutil
import signal

import numpy as np
import pytest
import torch
from safetensors import safe_open
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer, LlamaConfig, LlamaModel, TrainerCallback

import samesense
from samesense.data.documents import read_documents
from samesense.encoder.assembly.build import build
from samesense.encoder.saving.card import name_on_hub
from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.losses.mlm import IGNORED, masked_lm_head
from samesense.recipes.pretrain import recipe
from samesense.recipes.pretrain.recipe import run
from samesense.recipes.pretrain.settings import PretrainSettings
from samesense.recipes.run import run_folder
from samesense.training.masked_blocks import BlockMaker, MaskedBlocks, hold_out_blocks
from samesense.training.masked_lm import MaskedLoss, open_masked_lm
from tests.command import run_command
from tests.context.worlds import some_documents

HOW = {
    "max_seq_length": 16,
    "batch_size": 4,
    "max_steps": 8,
    "eval_steps": 4,
    "precision": "float32",
    "learning_rate": 3e-3,
}


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    path = tmp_path_factory.mktemp("documents") / "some.jsonl"
    path.write_text("".join(json.dumps({"sentences": document[0]}) + "\n" for document in some_documents(30)))
    return str(path)


@pytest.fixture(scope="module")
def tiny_decoder(tiny_trunk, tmp_path_factory):
    """Folder of a bare, random, two-layer Llama with the words of the tiny encoder and neither mask nor padding."""
    folder = tmp_path_factory.mktemp("decoder")
    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk)
    size = len(tokenizer)
    tokenizer.mask_token = tokenizer.cls_token = None
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = LlamaConfig(vocab_size=size, max_position_embeddings=64, tie_word_embeddings=True, **shape)
    LlamaModel(config).save_pretrained(folder)
    return str(folder)


def batch_of(folder, length=12):
    make = BlockMaker(AutoTokenizer.from_pretrained(folder), length, 0.3)
    blocks = [block for document in some_documents(3) for block in make.cut_blocks(document)]
    return make, blocks, make.collate([MaskedBlocks(blocks, make, len(blocks), (0,))[index] for index in range(5)])


def twin_of_loss(model, batch, shift):
    """All scores over the vocabulary, and the mean over the masked tokens one by one."""
    with torch.no_grad():
        scores = model(input_ids=batch["ids"], attention_mask=batch["attention"]).logits.double().log_softmax(-1)
    losses = [
        -float(scores[row, position - shift, label])
        for row, labels in enumerate(batch["labels"].tolist())
        for position, label in enumerate(labels)
        if label != IGNORED and position >= shift
    ]
    return sum(losses) / len(losses)


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_the_loss_is_that_of_all_scores(tiny_trunk, tiny_decoder, kind):
    folder = tiny_trunk if kind == "encoder" else tiny_decoder
    model, new_head = open_masked_lm(str(folder))
    assert new_head == (kind == "encoder")  # the decoder's head is tied to its embeddings
    _, _, batch = batch_of(folder)
    model.eval()
    loss = MaskedLoss()(model, batch["ids"], batch["attention"], batch["labels"]).detach()
    assert float(loss) == pytest.approx(twin_of_loss(model, batch, kind == "decoder"), rel=1e-5)


@pytest.fixture(scope="module")
def bare_decoder(tiny_decoder, tmp_path_factory):
    """The same whose tokenizer puts nothing before or behind a text."""
    folder = tmp_path_factory.mktemp("bare") / "decoder"
    shutil.copytree(tiny_decoder, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A $B")
    tokenizer.save_pretrained(folder)
    assert AutoTokenizer.from_pretrained(folder)("a man")["input_ids"] == tokenizer.convert_tokens_to_ids(["a", "man"])
    return str(folder)


def test_a_decoder_is_not_asked_for_the_first_token_before_which_there_is_none(
    bare_decoder, documents, tmp_path, monkeypatch
):
    makers = []

    class Kept(BlockMaker):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            makers.append(self)

    monkeypatch.setattr(recipe, "BlockMaker", Kept)
    options = {**HOW, "masked": 0.01, "batch_size": 1, "max_steps": 40}  # one token of each block
    run([documents], PretrainSettings(model=bare_decoder, **options), tmp_path / "run")
    (make,) = makers
    label_sets = {tuple(make.mask_block([15, 16, 17], np.random.default_rng(seed))[1]) for seed in range(20)}
    assert label_sets == {(IGNORED, 16, IGNORED), (IGNORED, IGNORED, 17)}
    lines = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    losses = [value for line in lines for name, value in line.items() if name.endswith("loss")]
    assert losses and all(map(math.isfinite, losses))


def test_a_batch_of_which_no_token_is_told_costs_nothing(tiny_trunk):
    model, _ = open_masked_lm(str(tiny_trunk))
    ids = torch.tensor([[5, 6, 7]])
    loss = MaskedLoss()(model, ids, torch.ones_like(ids), torch.full_like(ids, IGNORED))
    loss.backward()
    assert loss.item() == 0.0
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_a_decoder_reads_in_both_directions_once_it_is_saved(tiny_decoder, documents, tmp_path):
    pretrained = run([documents], PretrainSettings(model=tiny_decoder, **HOW), tmp_path / "run")
    encoder = build(str(pretrained.model))
    tokens = encoder.tokenize(["a man eats", "a man sings"]) if hasattr(encoder, "tokenize") else None
    tokens = encoder.preprocess(["a man eats", "a man sings"]) if tokens is None else tokens
    trunk = encoder[0].model.eval()
    with torch.no_grad():
        states = trunk(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]).last_hidden_state
    assert not torch.allclose(states[0, 0], states[1, 0])  # the first token attends to the last one


def test_blocks_are_the_text_and_masks_are_the_share(tiny_trunk):
    make, blocks, batch = batch_of(tiny_trunk)
    tokenizer = make.tokenizer
    (document,) = some_documents(1)
    words = " ".join(document[0]).lower().replace(".", " [UNK]").split()
    read = [tokenizer.convert_ids_to_tokens(block)[1:-1] for block in make.cut_blocks(document)]
    joined = [token for block in read for token in block]
    assert joined == words[: len(joined)] and len(words) - len(joined) < 8
    assert all(block[0] == tokenizer.cls_token_id and block[-1] == tokenizer.sep_token_id for block in blocks)
    assert max(map(len, blocks)) == 12
    for ids, labels, attention in zip(batch["ids"], batch["labels"], batch["attention"], strict=True):
        same = labels == IGNORED
        assert not bool(same.all())
        assert not bool((labels[attention == 0] != IGNORED).any()) and bool((ids[same] != make.mask).all())
    many = MaskedBlocks(blocks, make, 4000, (0,))
    pairs = []
    specials = {*tokenizer.all_special_ids}
    for row in range(2000):
        whole = [(a, b) for a, b in zip(*many[row], strict=True)]
        predicted = [(a, b) for a, b in whole if b != IGNORED]
        free = sum(b != IGNORED or a not in specials for a, b in whole)
        assert not specials & {b for _, b in predicted} and len(predicted) == max(1, round(0.3 * free))
        pairs += predicted
    assert np.mean([a == make.mask for a, _ in pairs]) == pytest.approx(0.8, abs=0.03)
    assert np.mean([a == b for a, b in pairs]) == pytest.approx(0.1 + 0.1 / len(tokenizer), abs=0.02)
    assert many[7] == many[7] and many[7] != many[7 + len(blocks)]


def test_whole_documents_are_held_out():
    documents = [[[n] * 9, [n] * 9] for n in range(40)]
    learnt, held = hold_out_blocks(documents, 0.1, seed=1)
    assert len(held) == 8 and not {block[0] for block in held} & {block[0] for block in learnt}
    learnt, held = hold_out_blocks([[[n] * 9 for n in range(50)]], 0.1, seed=1)
    assert (len(learnt), len(held)) == (45, 5)
    with pytest.raises(DataError, match="At least two blocks"):
        hold_out_blocks([[[1] * 9]], 0.1, seed=1)


def test_no_long_document_is_held_out_as_a_whole():
    documents = [[[1] * 9] * 600, *[[[2] * 9] * 20] * 9]
    for seed in range(40):
        learnt, held = hold_out_blocks(documents, 0.05, seed=seed)
        assert 20 <= len(held) <= 39 and len(learnt) + len(held) == 780
    # every document is longer than the held-out share: one is held out, unless it is much too long
    documents = [[[number] * 9] * (50 + number) for number in range(10)]
    learnt, held = hold_out_blocks(documents, 0.05, seed=1)
    assert held in documents and len(learnt) == 545 - len(held)
    learnt, held = hold_out_blocks([[[1] * 9] * 600] * 10, 0.05, seed=1)
    assert (len(learnt), len(held)) == (5700, 300)


def test_a_run_lowers_the_loss_and_leaves_an_encoder_with_its_head(tiny_trunk, documents, tmp_path, caplog):
    caplog.set_level("INFO", "samesense")
    pretrained = samesense.pretrain(
        documents, model=str(tiny_trunk), output=tmp_path / "run", **{**HOW, "max_steps": 40}
    )
    assert pretrained.after < pretrained.before - 3 and "held-out text" in str(pretrained)
    assert "the head is new" in caplog.text and "before: perplexity" not in caplog.text
    record = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert record["status"] == "finished" and record["perplexity"] == {
        "before": pretrained.before,
        "after": pretrained.after,
    }
    encoder = build(str(pretrained.model))
    assert encoder.encode(["a man eats"]).shape == (1, 32)
    (weights,) = pretrained.model.glob("*.safetensors")
    with safe_open(weights, "np") as file:
        assert any(name.startswith("cls.predictions.transform") for name in file.keys())  # noqa: SIM118 - no mapping
    masked_lm_head(encoder)  # not refused
    again = samesense.pretrain(documents, model=str(tmp_path / "run"), output=tmp_path / "further", **HOW)
    assert f"before: perplexity {again.before:.4g} of" in caplog.text
    assert again.before == pytest.approx(pretrained.after, rel=1e-4) and "the head is new" not in str(again)
    card = (pretrained.model / "README.md").read_text()
    assert next(read_documents(documents))[0][0] not in card
    assert "to be trained for the similarity of sentences before use" in card
    assert "pipeline_tag: feature-extraction" in card and 'samesense train pairs.tsv --model "this folder"' in card
    assert f"held-out text: {pretrained.after:.4g} after." in card  # earlier the head was randomly initialised
    assert f"held-out text: {again.before:.4g} before, {again.after:.4g} after." in (
        (again.model / "README.md").read_text()
    )
    name_on_hub(pretrained.model, "me/mine")
    assert '--model "me/mine"' in (pretrained.model / "README.md").read_text()


def test_patience_stops_it_and_a_budget_of_tokens_is_refused(tiny_trunk, documents, tmp_path):
    options = {**HOW, "max_steps": 12, "eval_steps": 2, "learning_rate": 1e-12, "early_stopping_patience": 2}
    samesense.pretrain(documents, model=str(tiny_trunk), output=tmp_path / "run", **options)
    steps = json.loads((tmp_path / "run" / "manifest.json").read_text())["outcome"]["steps"]
    assert steps == 6  # the first evaluation, then two without improvement
    with pytest.raises(ConfigError, match="`mini_batch_num_tokens` is for texts of different lengths"):
        samesense.pretrain(documents, model=str(tiny_trunk), output=tmp_path / "b", **HOW, mini_batch_num_tokens=99)


def test_fewer_layers(tiny_trunk, documents, tmp_path):
    pretrained = run([documents], PretrainSettings(model=str(tiny_trunk), layers=1, **HOW), tmp_path / "run")
    assert build(str(pretrained.model))[0].model.config.num_hidden_layers == 1
    with pytest.raises(ConfigError, match="has 3 layers; received layers 9"):
        run([documents], PretrainSettings(model=str(tiny_trunk), layers=9, **HOW), tmp_path / "no")


class PressesCtrlC(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 5:
            signal.raise_signal(signal.SIGINT)


def test_a_stopped_run_ends_as_one_that_was_not(tiny_trunk, documents, tmp_path):
    settings = PretrainSettings(model=str(tiny_trunk), **HOW)
    whole = run([documents], settings, tmp_path / "whole")
    stopped = run([documents], settings, tmp_path / "run", callbacks=[PressesCtrlC()])
    assert stopped.output.interrupted and not (tmp_path / "run" / "model").exists()
    assert not stopped.conclusion()
    ended = run([documents], settings, tmp_path / "run", resume=True)
    assert (ended.before, ended.after) == (whole.before, whole.after)
    for name in ("model.safetensors", "config.json"):
        assert (ended.model / name).read_bytes() == (whole.model / name).read_bytes()


def test_a_run_killed_once_its_model_is_there_is_ended(tiny_trunk, documents, tmp_path, monkeypatch):
    settings = PretrainSettings(model=str(tiny_trunk), **HOW)
    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "end", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run([documents], settings, tmp_path / "run")
    weights = (tmp_path / "run" / "model" / "model.safetensors").read_bytes()
    ended = run([documents], settings, tmp_path / "run", resume=True)
    record = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert record["status"] == "finished" and record["perplexity"] == {"before": ended.before, "after": ended.after}
    assert (ended.model / "model.safetensors").read_bytes() == weights and (ended.model / "README.md").is_file()


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_another_process_ended_meanwhile_is_not_begun_again(
    tiny_trunk, documents, tmp_path, monkeypatch, resume
):
    settings = PretrainSettings(model=str(tiny_trunk), **HOW)
    if resume:
        run([documents], settings, tmp_path / "run", callbacks=[PressesCtrlC()])
    split_blocks = recipe._split_blocks
    ended = []

    def while_another_ends(*arguments):
        if not ended:
            ended.append(None)
            ended.append(run([documents], settings, tmp_path / "run", resume=resume))
        return split_blocks(*arguments)

    monkeypatch.setattr(recipe, "_split_blocks", while_another_ends)
    with pytest.raises(OutputError):
        run([documents], settings, tmp_path / "run", resume=resume)
    assert (ended[1].model / "README.md").is_file()


def test_the_output_may_not_lie_among_the_documents(tiny_trunk, tmp_path):
    (tmp_path / "a.txt").write_text("One is here.")
    with pytest.raises(ConfigError, match="must not lie in a folder of documents"):
        run([str(tmp_path)], PretrainSettings(model=str(tiny_trunk), **HOW), tmp_path / "runs" / "a")


def test_what_cannot_be_pretrained_is_refused(documents, tmp_path):
    with pytest.raises(ModelError, match="nowhere"):
        run([documents], PretrainSettings(model=str(tmp_path / "nowhere"), **HOW), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_blocks_are_no_longer_than_the_positions_of_the_model(tiny_trunk, documents, tmp_path):
    settings = PretrainSettings(model=str(tiny_trunk), **{**HOW, "max_seq_length": 10_000})
    with pytest.raises(ConfigError, match=r"^`max_seq_length` of .* is \d+ or less, .*; received 10000\.$"):
        run([documents], settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_command(tiny_trunk, documents, tmp_path, capsys):
    words = ["pretrain", documents, "--model", tiny_trunk, "--output", tmp_path / "run", "--max-steps", 2]
    code, out, err = run_command(capsys, *words, "--batch-size", 4, "--max-seq-length", 16)
    assert (code, out) == (0, ""), err
    assert "perplexity of the masked tokens of held-out text: " in err
    assert err.splitlines()[-1] == f"next: samesense train PAIRS --model {tmp_path / 'run'} --output FOLDER"
    code, _, err = run_command(capsys, *words)
    assert code == 2 and "is not empty" in err
