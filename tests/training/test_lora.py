"""Adapters: only they are trained, exactly under a token budget and after a resume; merged or kept on saving."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sentence_transformers import CrossEncoder, SentenceTransformer

import samesense
from samesense.data import read_pairs
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.students import make_student
from samesense.encoder.encode import encode
from samesense.errors import ConfigError, MissingExtraError, ModelError
from samesense.inference.calibration.storage import home_of
from samesense.losses.cosent import CoSENT
from samesense.recipes.compare.cost import measure_costs
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.run.model_adapters import BiEncoder
from samesense.recipes.run.training_phase import dev_score
from samesense.recipes.sweep.identity import fingerprint_of
from samesense.training.lora import WEIGHTS, add_adapters, keep, merge
from samesense.training.settings import TrainingSettings
from tests.training.bert import take_gradient
from tests.training.test_fit import At, Killed, killed, run_of, weights
from tests.training.test_large_batches import LABELS

pytest.importorskip("peft")

SETTINGS = TrainingSettings(learning_rate=5e-3, max_steps=12, eval_steps=4, precision="float32", seed=7, lora=4)


@pytest.fixture
def start(tiny_trunk, toy_pairs, tmp_path):
    return lambda name, *args, **kwargs: run_of(tiny_trunk, toy_pairs, tmp_path / name, *args, **kwargs)


def test_only_adapters_are_trained_and_merging_changes_no_vector(tiny, sentences):
    before = {name: value.clone() for name, value in tiny.state_dict().items()}
    adapters = add_adapters(tiny, 4)
    trained = [name for name, p in tiny.named_parameters() if p.requires_grad]
    assert trained and all(".lora_" in name for name in trained)
    with torch.no_grad():
        for name, p in tiny.named_parameters():
            if ".lora_B" in name:
                p.normal_(std=0.1)
    adapted = encode(tiny, sentences, precision="float32")
    merge(adapters)
    after = tiny.state_dict()
    assert list(after) == list(before)
    changed = {name for name in after if not torch.equal(after[name], before[name])}
    assert changed and all("dense.weight" in name or "self." in name for name in changed)
    torch.testing.assert_close(
        torch.tensor(encode(tiny, sentences, precision="float32")), torch.tensor(adapted), atol=1e-5, rtol=1e-4
    )


def test_it_learns_and_ends_as_its_best_checkpoint(start, toy_pairs, tmp_path):
    changes = {"learning_rate": 6e-3, "max_steps": 60, "eval_steps": 15, "lora": 16, "seed": 8}
    settings = SETTINGS.model_copy(update=changes)
    model, outcome, curve = start("run", settings)
    assert outcome.best_dev_spearman == max(score for step, score in curve if step) > curve[0][1] + 0.1
    dev = read_pairs(toy_pairs / "dev.tsv")
    assert dev_score(BiEncoder(), dev)(model) == pytest.approx(outcome.best_dev_spearman, abs=0.01)
    assert not any("lora" in name for name in model.state_dict())
    checkpoint = tmp_path / "run" / "checkpoints" / f"checkpoint-{outcome.best_step}"
    assert all(".lora_" in name for name in torch.load(checkpoint / WEIGHTS, weights_only=True))
    assert not list(checkpoint.rglob("*.safetensors"))


@pytest.mark.parametrize("budget", [1, 30, 100])
def test_a_token_budget_changes_nothing(tiny, sentences, budget):
    torch.manual_seed(0)
    add_adapters(tiny, 4)
    with torch.no_grad():
        for name, p in tiny.named_parameters():
            if ".lora_B" in name:
                p.normal_(std=0.1)
    tiny.eval()
    columns = [tiny.preprocess(sentences[:20]), tiny.preprocess(sentences[::-1][:20])]
    CoSENT(tiny)(columns, LABELS).backward()
    expected = take_gradient(tiny)
    assert expected.abs().sum() > 0
    CoSENT(tiny, mini_batch_num_tokens=budget)(columns, LABELS).backward()
    torch.testing.assert_close(take_gradient(tiny), expected, atol=2e-5, rtol=1e-3)


def test_resume_gives_the_uninterrupted_run(start, tmp_path):
    whole, _, curve = start("whole", SETTINGS)
    with pytest.raises(Killed):
        start("killed", SETTINGS, callbacks=[At(6, killed)])
    resumed, _, resumed_curve = start("killed", SETTINGS, resume=True)
    assert resumed_curve == curve
    assert torch.equal(weights(resumed), weights(whole))


def test_gradient_checkpointing_goes_with_it(start, tiny_trunk):
    plain, _, _ = start("plain", SETTINGS, selecting=False)
    checkpointed = SETTINGS.model_copy(update={"trainer": {"gradient_checkpointing": "true"}})
    with_checkpoints, _, _ = start("other", checkpointed, selecting=False)
    assert not torch.equal(weights(plain), weights(build(str(tiny_trunk), device="cpu")))
    torch.testing.assert_close(weights(with_checkpoints), weights(plain), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("encoder", ["bi", "cross"])
def test_the_folder_opens_everywhere(tiny_trunk, toy_pairs, sentences, tmp_path, encoder):
    run = samesense.train(
        str(toy_pairs / "train.tsv"),
        dev="none",
        model=str(tiny_trunk),
        encoder=encoder,
        lora=2,
        max_steps=2,
        learning_rate=1e-2,
        precision="float32",
        output=tmp_path / "run",
    )
    assert sorted(path.name for path in run.model.rglob("*adapter*")) == []
    plain = (SentenceTransformer if encoder == "bi" else CrossEncoder)(str(run.model), device="cpu")
    ours = samesense.load(str(run.model), precision="float32")
    if encoder == "bi":
        torch.testing.assert_close(
            torch.tensor(plain.encode(sentences)), torch.tensor(ours.encode(sentences)), atol=1e-5, rtol=1e-4
        )
    else:
        head = [p for name, p in plain.named_parameters() if "classifier" in name]
        assert head and ours.scores([("a dog", "a cat")]).shape == (1,)


def test_the_head_of_a_cross_encoder_is_trained_in_full_and_kept_by_checkpoints(tiny_trunk):
    from samesense.encoder.assembly.build_cross import build_cross

    model = build_cross(str(tiny_trunk), seed=1, device="cpu")
    add_adapters(model, 2)
    whole = [name for name, p in model.named_parameters() if p.requires_grad and ".lora_" not in name]
    assert whole and all("classifier" in name for name in whole)


def test_what_has_no_transformer_is_refused(tiny_trunk, sentences):
    with pytest.raises(ConfigError, match=r"^`lora` adapts a transformer, and this model begins with StaticEmbedding"):
        add_adapters(make_student("static:8", str(tiny_trunk), sentences), 2)


def test_without_the_package_it_is_said_before_anything_is_computed(tiny_trunk, toy_pairs, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"^peft is needed here .* pip install 'samesense\[lora\]'$"):
        samesense.train(
            str(toy_pairs / "train.tsv"), dev="none", model=str(tiny_trunk), lora=2, output=tmp_path / "run"
        )
    assert not (tmp_path / "run").exists()


def trained(start, toy_pairs, output, **overrides):
    options = {"max_steps": 6, "batch_size": 8, "learning_rate": 1e-2, "precision": "float32", "report": False}
    return samesense.train(
        str(toy_pairs / "train.tsv"), dev="none", model=str(start), output=output, **options | overrides
    )


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.suffix == ".safetensors")


def vectors(model, texts):
    return samesense.load(str(model), precision="float32").encode(texts)


def test_kept_adapters_open_everywhere_and_give_the_vectors_of_merged_ones(tiny_trunk, toy_pairs, sentences, tmp_path):
    merged = trained(tiny_trunk, toy_pairs, tmp_path / "merged", lora=2).model
    adapters = trained(tiny_trunk, toy_pairs, tmp_path / "kept", lora=2, keep_lora=True).model
    with safe_open(adapters / "adapter_model.safetensors", "np") as stored:
        assert all(".lora_" in name for name in stored.keys())  # noqa: SIM118 - no mapping
    assert json.loads((adapters / "adapter_config.json").read_text())["base_model_name_or_path"] == str(tiny_trunk)
    assert not list(adapters.rglob("model.safetensors"))
    assert size(adapters) < size(merged) / 4
    expected = vectors(merged, sentences)
    assert np.abs(expected - vectors(tiny_trunk, sentences)).max() > 0.02
    np.testing.assert_allclose(vectors(adapters, sentences), expected, atol=1e-5)
    plain = SentenceTransformer(str(adapters), device="cpu")
    np.testing.assert_allclose(plain.encode(sentences), expected, atol=1e-5)
    model = build(str(adapters), device="cpu")
    assert list(model.state_dict()) == list(build(str(tiny_trunk), device="cpu").state_dict())
    assert all(weight.requires_grad for weight in model.parameters())
    trained_again = trained(
        adapters, toy_pairs, tmp_path / "further"
    ).model  # kept adapters are a start model like any other
    assert size(trained_again) == size(merged)
    assert np.abs(vectors(trained_again, sentences) - expected).max() > 0.01


def test_kept_adapters_name_their_base_from_everywhere(tiny_trunk, tmp_path, monkeypatch):
    base = shutil.copytree(tiny_trunk, tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    model = build("base", device="cpu")
    adapters = add_adapters(model, 2)
    keep(adapters, model)
    assert adapters.peft_config["default"].base_model_name_or_path == str(base.resolve())


def test_what_kept_adapters_need_is_said_where_it_is_absent(tiny_trunk, toy_pairs, sentences, tmp_path, monkeypatch):
    base = shutil.copytree(tiny_trunk, tmp_path / "base")
    adapters = trained(base, toy_pairs, tmp_path / "kept", lora=2, keep_lora=True).model
    with pytest.raises(ConfigError, match=r"^`keep_lora` saves adapters with the name of the start"):
        trained(adapters, toy_pairs, tmp_path / "twice", lora=2, keep_lora=True)
    with pytest.raises(ModelError, match=r"^A cross-encoder is made of whole weights, and .*kept.model holds adapters"):
        trained(adapters, toy_pairs, tmp_path / "cross", encoder="cross")
    base.rename(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match=r"kept.model holds adapters for the model in .*base, which is not there\."):
        samesense.load(str(adapters))
    about = json.loads((adapters / "adapter_config.json").read_text())
    config = about | {"base_model_name_or_path": str(tmp_path / "elsewhere")}
    (adapters / "adapter_config.json").write_text(json.dumps(config))
    assert vectors(adapters, sentences).shape == (40, 32)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"^peft is needed here .* pip install 'samesense\[lora\]'$"):
        build(str(adapters))


def test_the_base_of_kept_adapters_counts_as_part_of_the_model(tiny_trunk, toy_pairs, tmp_path):
    base = shutil.copytree(tiny_trunk, tmp_path / "base")
    adapters = trained(base, toy_pairs, tmp_path / "kept", lora=2, keep_lora=True).model
    models = [(str(folder), samesense.load(str(folder), precision="float32")) for folder in (adapters, base)]
    cost, of_base = measure_costs(models, ["a cat"])
    assert cost.parameters == of_base.parameters
    assert cost.megabytes == pytest.approx((size(base) + size(adapters)) / 1e6)
    before = home_of(str(adapters)).fingerprint(), fingerprint_of(str(adapters), {})
    assert before == (home_of(str(adapters)).fingerprint(), fingerprint_of(str(adapters), {}))
    weights = load_file(base / "model.safetensors")
    save_file({name: weight + 0.01 for name, weight in weights.items()}, base / "model.safetensors")
    for was, now in zip(before, (home_of(str(adapters)).fingerprint(), fingerprint_of(str(adapters), {})), strict=True):
        assert (now != was, now.split()[0]) == (True, was.split()[0])


def test_adapters_are_kept_only_beside_a_start_that_can_be_named(tiny_trunk, toy_pairs, tmp_path):
    for wrong in ({}, {"lora": 2, "merge": True}, {"lora": 2, "encoder": "cross"}):
        with pytest.raises(ConfigError, match=r"^`keep_lora` saves the adapters of a bi-encoder by themselves"):
            CosentSettings(keep_lora=True, **wrong)
    with pytest.raises(ConfigError, match=r"no cut student, no adapters, no pooling over layers"):
        trained(tiny_trunk, toy_pairs, tmp_path / "run", lora=2, keep_lora=True, pooling="first-last")


@pytest.mark.parametrize(
    "wrong", [{"lora": 2}, {"lora": 2, "keep_lora": True}, {"matryoshka": 8}, {"freeze_layers": 1}]
)
def test_a_start_that_the_settings_do_not_fit_is_refused_before_the_folder_is_taken(
    wrong, tiny_trunk, sentences, toy_pairs, tmp_path
):
    make_student("static:8", str(tiny_trunk), sentences).save(str(tmp_path / "static"))
    with pytest.raises(ConfigError, match="lora" if "lora" in wrong else next(iter(wrong))):
        trained(tmp_path / "static", toy_pairs, tmp_path / "run", **wrong)
    assert not (tmp_path / "run").exists()
