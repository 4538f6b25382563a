"""Frozen layers: training equals that with the same weights held, and their output is computed once a text."""

import pytest
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense
from torch import nn
from transformers import AutoTokenizer

import samesense
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.encode import encode
from samesense.encoder.forward.batching import embed_columns, tokenize_texts
from samesense.encoder.forward.packing import packing, takes_packed_texts
from samesense.errors import ConfigError
from samesense.training import freezing
from samesense.training.freezing import frozen_layers
from samesense.training.settings import TrainingSettings
from tests.encoder.test_packing import pad_by_token_1
from tests.training.test_fit import At, Killed, killed, run_of

SETTINGS = TrainingSettings(learning_rate=2e-3, epochs=3, eval_steps=5, precision="float32", seed=7, freeze_layers=2)


@pytest.fixture
def start(tiny_trunk, toy_pairs, tmp_path):
    return lambda name, *args, **kwargs: run_of(tiny_trunk, toy_pairs, tmp_path / name, *args, **kwargs)


@pytest.fixture
def frozen_runs(monkeypatch):
    """The number of texts of each batch that the frozen layers are run over."""
    batches = []
    keep = freezing._FrozenPart._keep
    monkeypatch.setattr(
        freezing._FrozenPart,
        "_keep",
        lambda part, texts, states: batches.append(len(texts.keys)) or keep(part, texts, states),
    )
    return batches


def without_any_dropout(model):
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def is_frozen(name, layers=2):
    return "embeddings." in name or any(f"encoder.layer.{layer}." in name for layer in range(layers))


def hold(model, layers=2):
    """Hold the same weights as an independent way to the same training."""
    for name, weight in model.named_parameters():
        weight.requires_grad_(not is_frozen(name, layers))
    return model


def test_training_equals_that_with_the_same_weights_held(start, tiny_trunk):
    frozen, _, curve = start("frozen", SETTINGS, model=without_any_dropout(build(str(tiny_trunk), device="cpu")))
    held, _, held_curve = start(
        "held",
        SETTINGS.model_copy(update={"freeze_layers": None}),
        model=hold(without_any_dropout(build(str(tiny_trunk), device="cpu"))),
    )
    assert [score for _, score in curve] == pytest.approx([score for _, score in held_curve], abs=1e-4)
    weights = dict(held.named_parameters())
    untouched = dict(build(str(tiny_trunk), device="cpu").named_parameters())
    changed = set()
    for name, weight in frozen.named_parameters():
        torch.testing.assert_close(weight, weights[name], atol=1e-4, rtol=1e-3)
        if not torch.equal(weight, untouched[name]):
            changed.add(name)
    assert changed and not any(map(is_frozen, changed))
    assert all(weight.requires_grad for weight in frozen.parameters())


def test_each_text_is_run_through_the_frozen_layers_once(tiny, sentences, frozen_runs):
    before = encode(tiny, sentences, precision="float32")
    with frozen_layers(tiny, 2):
        first = encode(tiny, sentences, precision="float32")
        runs = len(frozen_runs)
        again = encode(tiny, sentences[::-1], precision="float32")[::-1]
        assert runs == len(frozen_runs) > 0
    assert first == pytest.approx(before, abs=1e-5)
    assert again == pytest.approx(before, abs=1e-5)
    assert encode(tiny, sentences, precision="float32") == pytest.approx(before, abs=1e-6)
    assert len(frozen_runs) == runs


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("packed", [True, False])
def test_vectors_and_gradients_are_those_of_the_whole_model(tiny, sentences, packed, precision):
    columns = [tokenize_texts(without_any_dropout(tiny), sentences)]
    hold(tiny)
    results = []
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 0.05}[precision]

    def gradients():
        tiny.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
            vectors = embed_columns(tiny, columns)[0]
        vectors.float()[:, 0].sum().backward()
        return [vectors.detach().float(), *(p.grad.float() for p in tiny.parameters() if p.grad is not None)]

    def collect():
        results.append(gradients())
        with frozen_layers(tiny, 2):
            results.append(gradients())  # the frozen layers are run
            results.append(gradients())  # their output is kept

    if packed:
        with packing(tiny):
            collect()
    else:
        collect()
    for other in results[1:]:
        assert len(other) == len(results[0]) > 1
        for value, expected in zip(other, results[0], strict=True):
            torch.testing.assert_close(value, expected, atol=tolerance * float(expected.abs().max()), rtol=0)


SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize("kind", ["MPNet", "ModernBert", "Llama", "DistilBert"])
def test_layers_of_other_architectures_are_frozen_too(kind, tiny_trunk, sentences, tmp_path):
    sizes = dict(SIZES)
    if kind == "DistilBert":
        sizes = {"dim": 32, "hidden_dim": 48, "n_layers": 4, "n_heads": 4, "max_position_embeddings": 64}
    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk)
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
    config = getattr(transformers, f"{kind}Config")(vocab_size=len(tokenizer), **sizes, **special)
    torch.manual_seed(0)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    if kind == "MPNet":
        pad_by_token_1(tmp_path / "tokenizer.json")
    model = without_any_dropout(build(str(tmp_path), pooling="mean", device="cpu"))
    columns = [tokenize_texts(model, sentences)]
    results = []

    def gradients():
        model.zero_grad()
        vectors = embed_columns(model, columns)[0]
        vectors[:, 0].sum().backward()
        return vectors.detach(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}

    expected, of_all = gradients()
    with packing(model):
        with frozen_layers(model, 2):
            assert takes_packed_texts(model) or kind == "ModernBert"
            results += [gradients(), gradients()]
        torch.testing.assert_close(gradients()[0], expected, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(gradients()[0], expected, atol=1e-4, rtol=1e-3)
    for vectors, of_some in results:
        torch.testing.assert_close(vectors, expected, atol=1e-4, rtol=1e-3)
        assert of_some and len(of_some) < len(of_all)
        for name, gradient in of_some.items():
            torch.testing.assert_close(gradient, of_all[name], atol=1e-4, rtol=1e-3)


def test_later_epochs_and_evaluations_read_what_is_kept(start, frozen_runs):
    start("one", SETTINGS.model_copy(update={"epochs": 1, "eval_steps": 10}))
    runs_of_one_epoch = len(frozen_runs)
    start("three", SETTINGS)
    assert len(frozen_runs) == 2 * runs_of_one_epoch


def test_texts_beyond_the_room_are_run_each_time(tiny, sentences, frozen_runs, monkeypatch):
    before = encode(tiny, sentences, precision="float32")
    monkeypatch.setattr(freezing, "STORE_BYTES", 3000)
    with frozen_layers(tiny, 1):
        for _ in range(2):
            assert encode(tiny, sentences, precision="float32") == pytest.approx(before, abs=1e-5)
    assert len(frozen_runs) >= 2


def test_a_token_budget_changes_nothing(start):
    whole, _, _ = start("whole", SETTINGS)
    parts, _, _ = start("parts", SETTINGS.model_copy(update={"mini_batch_num_tokens": 40}))
    for weight, expected in zip(parts.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(weight, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
def test_a_resumed_run_ends_as_one_that_was_not_killed(start):
    model, _, curve = start("whole", SETTINGS)
    with pytest.raises(Killed):
        start("killed", SETTINGS, callbacks=[At(13, killed)])
    resumed, _, resumed_curve = start("killed", SETTINGS, resume=True)
    assert resumed_curve[-1] == pytest.approx(curve[-1], abs=1e-5)
    for name, weight in resumed.named_parameters():
        torch.testing.assert_close(weight, dict(model.named_parameters())[name], atol=1e-5, rtol=1e-4)


def test_a_cross_encoder_keeps_each_pair(tiny_trunk, sentences, frozen_runs):
    model = build_cross(str(tiny_trunk), device="cpu")
    assert isinstance(model, CrossEncoder)
    pairs = list(zip(sentences[:20], sentences[20:], strict=True))
    before = model.predict(pairs, show_progress_bar=False)
    with frozen_layers(model, 1):
        for _ in range(2):
            assert model.predict(pairs, show_progress_bar=False) == pytest.approx(before, abs=1e-5)
        assert model[0].model.classifier.weight.requires_grad
    assert sum(frozen_runs) == len(pairs)


def test_one_command_freezes(tiny_trunk, toy_pairs, tmp_path):
    settings = {"model": str(tiny_trunk), "max_steps": 4, "eval_steps": 2, "learning_rate": 1e-3, "seed": 1}
    run = samesense.train(
        toy_pairs / "train.tsv", dev=toy_pairs / "dev.tsv", output=tmp_path / "run", freeze_layers=1, **settings
    )
    before = dict(build(str(tiny_trunk), device="cpu").named_parameters())
    after = dict(SentenceTransformer(str(run.model), device="cpu").named_parameters())
    changed = [name for name in after if not torch.equal(after[name], before[name])]
    assert changed and not any(is_frozen(name, 1) for name in changed)


def test_a_model_with_too_few_layers_is_refused_before_a_folder_is_taken(tiny_trunk, toy_pairs, tmp_path):
    with pytest.raises(ConfigError, match="at most 2; received 3"):
        samesense.train(toy_pairs / "train.tsv", model=str(tiny_trunk), output=tmp_path / "run", freeze_layers=3)
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_frozen_is_refused(tiny, tiny_trunk):
    with (
        pytest.raises(ConfigError, match=r"at least one of the 3 layers.*at most 2; received 3"),
        frozen_layers(tiny, 3),
    ):
        pass
    dense = SentenceTransformer(modules=[Dense(2, 2)], device="cpu")
    with pytest.raises(ConfigError, match="begins with Dense"), frozen_layers(dense, 1):
        pass
    layered = build(str(tiny_trunk), pooling="first-last", device="cpu")
    with pytest.raises(ConfigError, match="pooling of the last layer"), frozen_layers(layered, 1):
        pass
    with pytest.raises(ConfigError, match="Leave out `lora` or `freeze_layers`"):
        TrainingSettings(lora=4, freeze_layers=1)
