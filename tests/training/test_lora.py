"""Adapters: trained alone, exact under a token budget and over a stop, and gone from the model that is saved."""

import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

import samesense
from samesense.data import read_pairs
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.students import make_student
from samesense.encoder.encode import encode
from samesense.errors import ConfigError, MissingExtraError
from samesense.recipes.model_adapters import BiEncoder
from samesense.recipes.runner import dev_score
from samesense.training.lora import WEIGHTS, add_adapters, merge
from samesense.training.losses.pairs import CoSENT
from samesense.training.settings import TrainingSettings
from tests.training.test_fit import At, Killed, killed, run_of, weights
from tests.training.test_large_batches import LABELS, gradient

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
    how = {"learning_rate": 6e-3, "max_steps": 60, "eval_steps": 15, "lora": 16, "seed": 8}
    settings = SETTINGS.model_copy(update=how)
    model, outcome, curve = start("run", settings)
    assert outcome.best_dev_spearman == max(score for step, score in curve if step) > curve[0][1] + 0.1
    dev = read_pairs(toy_pairs / "dev.tsv")
    assert dev_score(BiEncoder(), dev)(model) == pytest.approx(outcome.best_dev_spearman, abs=0.01)
    assert not any("lora" in name for name in model.state_dict())
    kept = tmp_path / "run" / "checkpoints" / f"checkpoint-{outcome.best_step}"
    assert all(".lora_" in name for name in torch.load(kept / WEIGHTS, weights_only=True))
    assert not list(kept.rglob("*.safetensors"))


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
    wanted = gradient(tiny)
    assert wanted.abs().sum() > 0
    CoSENT(tiny, mini_batch_num_tokens=budget)(columns, LABELS).backward()
    torch.testing.assert_close(gradient(tiny), wanted, atol=2e-5, rtol=1e-3)


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
    other, _, _ = start("other", checkpointed, selecting=False)
    assert not torch.equal(weights(plain), weights(build(str(tiny_trunk), device="cpu")))
    torch.testing.assert_close(weights(other), weights(plain), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("encoder", ["bi", "cross"])
def test_the_folder_opens_everywhere(tiny_trunk, toy_pairs, sentences, tmp_path, encoder):
    run = samesense.train(
        str(toy_pairs / "train.tsv"), dev="none", model=str(tiny_trunk), encoder=encoder, lora=2, max_steps=2,
        learning_rate=1e-2, precision="float32", output=tmp_path / "run",
    )  # fmt: skip
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
