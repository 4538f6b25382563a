import json
import os
import signal
from functools import partial

import pytest
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer import losses
from transformers import TrainerCallback

from samesense.data import read_pairs
from samesense.encoder.assembly.build import build
from samesense.encoder.encode import encode
from samesense.encoder.forward.packing import round_up_tokens, takes_packed_texts
from samesense.errors import ConfigError
from samesense.execution.threads import TOKENIZERS
from samesense.execution.trainer import newest_checkpoint
from samesense.losses.cosent import CoSENT
from samesense.losses.softmax import Softmax
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.run.model_adapters import BiEncoder
from samesense.recipes.run.training_phase import dev_score
from samesense.training.callbacks import LOSS_WEIGHTS
from samesense.training.dataset import as_dataset
from samesense.training.fit import fit
from samesense.training.settings import TrainingSettings
from tests.conftest import WORDS
from tests.encoder.test_packing import folder_of

SETTINGS = TrainingSettings(learning_rate=2e-3, epochs=3, eval_steps=5, precision="float32", seed=7)  # 30 steps


class Killed(BaseException):
    pass


class At(TrainerCallback):
    """Calls a function right after a step."""

    def __init__(self, step, action):
        self.step, self.action = step, action

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            self.action()


def killed():
    raise Killed


def run_of(trunk, pairs, folder, settings=SETTINGS, selecting=True, model=None, **kwargs):
    """Run or resume one training; return the model, the outcome, and the written dev curve."""
    train = read_pairs(pairs / "train.tsv")
    dev = read_pairs(pairs / "dev.tsv")
    model = model or build(str(trunk), device="cpu")
    outcome = fit(
        model,
        as_dataset(CosentSettings().targets(train).columns),
        CoSENT(model),
        settings,
        folder,
        dev_score=dev_score(BiEncoder(), dev) if selecting else None,
        **kwargs,
    )
    path = folder / "history.jsonl"
    lines = [json.loads(line) for line in (path.read_text().splitlines() if path.exists() else [])]
    curve = [(line["step"], line["eval_dev_spearman"]) for line in lines if "eval_dev_spearman" in line]
    return model, outcome, curve


@pytest.fixture
def start(tiny_trunk, toy_pairs, tmp_path):
    return lambda name, *args, **kwargs: run_of(tiny_trunk, toy_pairs, tmp_path / name, *args, **kwargs)


@pytest.mark.parametrize("frozen", [None, 1])
@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_steps_take_packed_texts(start, kind, frozen, tiny_trunk, tmp_path):
    folder = tiny_trunk if kind == "bert" else folder_of(kind, tiny_trunk, tmp_path / kind)
    model = build(str(folder), device="cpu")
    packed = []
    step = At(1, lambda: packed.append(takes_packed_texts(model)))
    start("run", SETTINGS.model_copy(update={"max_steps": 2, "freeze_layers": frozen}), model=model, callbacks=[step])
    assert packed == [True]
    assert not takes_packed_texts(model)
    assert "forward" not in vars(model[0].model)


def weights(model: SentenceTransformer):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_training_helps_and_ends_as_the_best_checkpoint(start, tiny_trunk, toy_pairs, tmp_path):
    dev = read_pairs(toy_pairs / "dev.tsv")
    model, outcome, curve = start("run")
    assert outcome.steps == 30
    assert [step for step, _ in curve] == [0, 5, 10, 15, 20, 25, 30]
    assert (
        curve[0][1] == outcome.start_dev_spearman == dev_score(BiEncoder(), dev)(build(str(tiny_trunk), device="cpu"))
    )
    best = max(score for _, score in curve)
    assert outcome.best_dev_spearman == best
    assert best > curve[0][1] + 0.2
    assert dev_score(BiEncoder(), dev)(model) == pytest.approx(best, abs=1e-6)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["checkpoints", "history.jsonl"]


@pytest.mark.slow
def test_same_seed_same_model_other_seed_another(start):
    first, _, curve = start("one")
    same, _, same_curve = start("same")
    other_seed, _, _ = start("other", SETTINGS.model_copy(update={"seed": 8}))
    assert curve == same_curve
    assert torch.equal(weights(first), weights(same))
    assert not torch.allclose(weights(first), weights(other_seed))


@pytest.mark.slow
def test_resume_after_a_kill_gives_the_uninterrupted_run(start, tmp_path):
    whole, outcome, curve = start("whole")
    with pytest.raises(Killed):
        start("killed", callbacks=[At(13, killed)])
    assert newest_checkpoint(tmp_path / "killed" / "checkpoints").name == "checkpoint-10"
    resumed, again, resumed_curve = start("killed", resume=True)
    assert resumed_curve == curve  # to the last digit: order, dropout and optimiser all continue
    assert torch.equal(weights(resumed), weights(whole))
    assert (again.best_step, again.steps) == (outcome.best_step, outcome.steps)
    assert again.start_dev_spearman == outcome.start_dev_spearman is not None


def test_half_written_checkpoint_is_passed_over(start, tmp_path):
    with pytest.raises(Killed):
        start("killed", callbacks=[At(13, killed)])
    broken = tmp_path / "killed" / "checkpoints" / "checkpoint-10"
    (broken / "trainer_state.json").write_text('{"global_step": 1')
    assert newest_checkpoint(tmp_path / "killed" / "checkpoints").name == "checkpoint-5"
    assert not broken.exists()


SHORT = SETTINGS.model_copy(update={"max_steps": 12, "eval_steps": 4})


class Press(TrainerCallback):
    """Presses Ctrl-C once, where it is told to."""

    def __init__(self, event, step):
        self.event, self.step = event, step

    def on_event(self, event, args=None, state=None, control=None, **kwargs):
        if (event, state.global_step) == (self.event, self.step):
            self.event = None
            signal.raise_signal(signal.SIGINT)

    def __getattribute__(self, name):
        if name in ("on_pre_optimizer_step", "on_optimizer_step", "on_step_end", "on_log", "on_save"):
            return partial(self.on_event, name)
        return super().__getattribute__(name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny_trunk, toy_pairs):
    """A run that is not stopped: its weights, outcome and dev curve."""
    model, outcome, curve = run_of(tiny_trunk, toy_pairs, tmp_path_factory.mktemp("whole"), SHORT)
    return weights(model), outcome, curve


@pytest.mark.parametrize(
    ("event", "step", "stops", "checkpoint"),
    [
        ("on_pre_optimizer_step", 7, 7, 7),  # before weights change: the step is broken off
        ("on_optimizer_step", 7, 8, 8),  # as they change: it is finished
        ("on_optimizer_step", 11, 12, 8),  # a run cannot go on from its last step
        ("on_step_end", 8, 8, 8),  # before an evaluation, which the resumed run makes up for
        ("on_log", 8, 8, 8),  # before it too: the loss is logged first
        ("on_save", 8, 8, 8),  # as a checkpoint is written: no step is added
        ("on_pre_optimizer_step", 0, 0, None),  # nothing to keep yet
    ],
)
def test_ctrl_c_keeps_what_is_done_and_the_resumed_run_ends_as_the_whole_one(
    start, whole, tmp_path, event, step, stops, checkpoint
):
    before = signal.getsignal(signal.SIGINT)
    _, outcome, _ = start("stopped", SHORT, callbacks=[Press(event, step)])
    assert (outcome.interrupted, outcome.steps) == (True, stops)
    assert signal.getsignal(signal.SIGINT) is before
    newest = newest_checkpoint(tmp_path / "stopped" / "checkpoints")
    assert (newest and newest.name) == (checkpoint and f"checkpoint-{checkpoint}")
    model, outcome, curve = start("stopped", SHORT, resume=True)
    assert not outcome.interrupted and curve == whole[2] and torch.equal(weights(model), whole[0])
    assert (outcome.best_step, outcome.best_dev_spearman) == (whole[1].best_step, whole[1].best_dev_spearman)


@pytest.mark.parametrize(("evaluation", "checkpoint"), [(0, None), (2, 8), (3, 8)])
def test_ctrl_c_breaks_an_evaluation_off_and_the_resumed_run_makes_up_for_it(
    start, whole, tmp_path, monkeypatch, evaluation, checkpoint
):
    calls = []

    def scores(model, texts, **options):
        calls.append(1)
        if len(calls) == evaluation + 1:
            signal.raise_signal(signal.SIGINT)
        return encode(model, texts, **options)

    monkeypatch.setattr("samesense.encoder.encode.encode", scores)
    _, outcome, _ = start("stopped", SHORT)
    assert outcome.interrupted
    newest = newest_checkpoint(tmp_path / "stopped" / "checkpoints")
    assert (newest and newest.name) == (checkpoint and f"checkpoint-{checkpoint}")
    model, outcome, curve = start("stopped", SHORT, resume=True)
    assert curve == whole[2] and torch.equal(weights(model), whole[0])
    assert outcome.best_step == whole[1].best_step


def test_early_stopping(start):
    frozen = SETTINGS.model_copy(update={"learning_rate": 1e-12, "early_stopping_patience": 2})
    _, outcome, curve = start("run", frozen)
    assert outcome.steps == 15  # first evaluation, then two without improvement
    assert [step for step, _ in curve] == [0, 5, 10, 15]
    assert not outcome.interrupted
    _, again, resumed = start("run", frozen, resume=True)  # as if it was killed before its model was saved
    assert (again.steps, again.best_step, resumed) == (15, outcome.best_step, curve)


def test_a_resumed_run_stops_where_an_uninterrupted_one_does(start):
    frozen = SETTINGS.model_copy(update={"learning_rate": 1e-12, "early_stopping_patience": 3})
    _, whole, curve = start("whole", frozen)
    with pytest.raises(Killed):
        start("run", frozen, callbacks=[At(11, killed)])  # one evaluation of the three counts already
    _, outcome, again = start("run", frozen, resume=True)
    assert (outcome.steps, again) == (whole.steps, curve)
    assert whole.steps == 20


def test_seconds_of_a_resumed_run_are_those_of_it_all(start, tmp_path):
    with pytest.raises(Killed):
        start("run", SHORT, callbacks=[At(9, killed)])
    times = tmp_path / "run" / "checkpoints" / "checkpoint-8" / "times.json"
    before = json.loads(times.read_text())
    assert before["training"] > 0
    times.write_text(json.dumps(before | {"training": 1000.0}))
    _, outcome, _ = start("run", SHORT, resume=True)
    assert outcome.spent["training"] > 1000 and outcome.seconds > 1000


def test_a_run_goes_on_from_the_newest_checkpoint_with_the_weights_of_the_loss(tiny_trunk, sentences, tmp_path):
    data = as_dataset({"a": sentences[:8], "b": sentences[8:16], "label": [0, 1] * 4})
    settings = TrainingSettings(max_steps=6, eval_steps=2, batch_size=8, precision="float32")

    def run(**options):
        model = build(str(tiny_trunk), device="cpu")
        loss = Softmax(model, classes=2)
        return fit(model, data, loss, settings, tmp_path, dev_score=lambda model: 0.5, **options)

    with pytest.raises(Killed):
        run(callbacks=[At(5, killed)])
    (tmp_path / "checkpoints" / "checkpoint-4" / LOSS_WEIGHTS).unlink()
    assert run(resume=True).steps == 6


def test_training_texts_are_not_read_for_a_card_of_sentence_transformers(start):
    model, *_ = start("run", selecting=False)
    assert not model.model_card_data.widget and not model.model_card_data.train_datasets


def test_without_a_dev_set(start):
    _, outcome, curve = start("run", SETTINGS.model_copy(update={"max_steps": 6}), selecting=False)
    assert (outcome.steps, outcome.start_dev_spearman, outcome.best_dev_spearman, curve) == (6, None, None, [])


def test_the_start_is_never_what_is_kept(tiny, sentences, tmp_path):
    scores = iter([1.0, 0.25, 0.5])
    data = as_dataset({"a": sentences[:8], "b": sentences[8:16], "label": [float(i) for i in range(8)]})
    settings = TrainingSettings(max_steps=2, eval_steps=1, precision="float32")
    outcome = fit(tiny, data, CoSENT(tiny), settings, tmp_path, dev_score=lambda model: next(scores))
    assert (outcome.start_dev_spearman, outcome.best_dev_spearman, outcome.best_step) == (1.0, 0.5, 2)


def test_gradients_are_clipped_with_those_of_what_the_loss_itself_learns(tiny, sentences, tmp_path):
    norms = []

    class Look(TrainerCallback):
        def on_optimizer_step(self, args, state, control, **kwargs):
            norms.append(torch.stack([p.grad.norm() for p in loss.parameters() if p.grad is not None]).norm().item())

    loss = Softmax(tiny, dim=32, classes=2)
    loss.head.weight.data *= 50
    data = as_dataset({"a": sentences[:8], "b": sentences[8:16], "label": [0, 1] * 4})
    settings = TrainingSettings(max_steps=2, batch_size=8, precision="float32", max_grad_norm=0.01)
    fit(tiny, data, loss, settings, tmp_path, callbacks=[Look()])
    assert norms == pytest.approx([0.01, 0.01], rel=1e-3)


def test_batches_on_a_cpu_are_tokenised_on_one_thread(tiny, sentences, tmp_path, monkeypatch):
    monkeypatch.setenv(TOKENIZERS, "true")
    values = []

    class Look(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            values.append(os.environ[TOKENIZERS])

    data = as_dataset({"a": sentences[:8], "b": sentences[8:16], "label": [float(index) for index in range(8)]})
    settings = TrainingSettings(max_steps=1, batch_size=8, precision="float32")
    fit(tiny, data, CoSENT(tiny), settings, tmp_path, callbacks=[Look()])
    assert values == ["false"] and os.environ[TOKENIZERS] == "true"


def test_patience_needs_a_dev_set(start):
    with pytest.raises(ConfigError) as error:
        start("run", SETTINGS.model_copy(update={"early_stopping_patience": 2}), selecting=False)
    assert str(error.value) == (
        "`early_stopping_patience` counts evaluations on a dev set, and there is none. Give `dev`, or leave it out."
    )


@pytest.mark.parametrize("steps", [4, 8])
def test_resume_without_a_checkpoint_and_with_that_of_the_last_step(start, tmp_path, steps):
    short = SETTINGS.model_copy(update={"max_steps": steps})  # looks at 5: the first has none before its end
    whole, outcome, curve = start("run", short)
    assert (tmp_path / "run" / "checkpoints" / f"checkpoint-{steps}").is_dir()
    again, resumed, resumed_curve = start("run", short, resume=True)
    assert resumed.steps == outcome.steps == steps
    assert resumed_curve == curve
    assert torch.equal(weights(again), weights(whole))


def test_bfloat16_trains(start):
    _, outcome, curve = start("run", SETTINGS.model_copy(update={"precision": "bfloat16"}))
    assert outcome.precision == "bfloat16"
    assert max(score for _, score in curve) > curve[0][1]


def test_a_trainer_of_the_users_own_may_follow_in_another_precision(start, tiny, tmp_path):
    arguments = SentenceTransformerTrainingArguments(str(tmp_path / "own"), use_cpu=True, report_to="none")
    assert arguments.device.type == "cpu"  # from here on the arguments do not set up the device again
    start("run", SETTINGS.model_copy(update={"precision": "bfloat16", "max_steps": 1, "eval_steps": 1}))
    columns = {"first": ["a dog", "a cat"], "second": ["the dog", "the sun"], "score": [1.0, 0.0]}
    trainer = SentenceTransformerTrainer(
        model=tiny, args=arguments, train_dataset=Dataset.from_dict(columns), loss=losses.CoSENTLoss(tiny)
    )
    assert trainer.accelerator.mixed_precision == "no"


def test_examples_that_fill_no_step_of_all_processes_are_refused(tiny, sentences, tmp_path, monkeypatch):
    """Each process would drop its short batch, and nothing be trained."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    data = as_dataset({"a": sentences[:8], "b": sentences[8:16], "label": [float(i) for i in range(8)]})
    settings = TrainingSettings(max_steps=2, batch_size=5, precision="float32")
    with pytest.raises(ConfigError) as error:
        fit(tiny, data, CoSENT(tiny), settings, tmp_path)
    assert str(error.value) == (
        "A step of 2 processes with batch_size 5 each takes 10 examples; received 8. Lower batch_size, or take fewer "
        "processes."
    )
    labels = [0.0] * 15 + [1.0]  # the label that occurs once makes one batch of two labels, for one process
    data = as_dataset({"a": sentences[:16], "b": sentences[16:32], "label": labels})
    with pytest.raises(ConfigError, match=r"takes 10 examples; received 5\."):
        fit(tiny, data, CoSENT(tiny), settings, tmp_path, batches="label-aware")


@pytest.mark.parametrize(("ranks", "examples", "steps"), [(1, 17, 10), (2, 17, 4), (2, 15, 2), (2, 23, 4), (3, 7, 1)])
def test_steps_are_those_of_whole_batches_where_several_processes_train(monkeypatch, ranks, examples, steps):
    monkeypatch.setenv("WORLD_SIZE", str(ranks))
    assert TrainingSettings(batch_size=4, epochs=2).steps(examples) == steps


def test_objective_is_a_plain_loss_of_sentence_transformers(tiny, sentences, tmp_path):
    """A user's own script: our loss in their trainer, and the value of theirs."""
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss

    labels = [float(i % 3) for i in range(10)]
    data = Dataset.from_dict({"sentence1": sentences[:10], "sentence2": sentences[10:20], "label": labels})
    tiny.eval()
    columns = [tiny.preprocess(sentences[:10]), tiny.preprocess(sentences[10:20])]
    ours = CoSENT(tiny)(columns, torch.tensor(labels))
    theirs = CoSENTLoss(tiny)(columns, torch.tensor(labels))
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-5)
    before = encode(tiny, sentences)
    arguments = SentenceTransformerTrainingArguments(str(tmp_path), max_steps=2, report_to="none", use_cpu=True)
    SentenceTransformerTrainer(model=tiny, args=arguments, train_dataset=data, loss=CoSENT(tiny)).train()
    assert abs(encode(tiny, sentences) - before).max() > 0


def static_model():
    """A model that averages vectors of words."""
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(["[UNK]", *WORDS])}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    torch.manual_seed(0)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=6)], device="cpu")


@pytest.mark.parametrize("static", [False, True])
def test_sparse_gradients_of_words_train_the_same_model(static, tiny_trunk, toy_pairs, tmp_path, monkeypatch):
    """With clipping, evaluations and a stop: as with dense ones."""
    settings = SETTINGS.model_copy(update={"weight_decay": 0.0})

    def trained(rows, **options):
        monkeypatch.setattr("samesense.training.optimizer._MIN_ROWS", rows)
        model = static_model() if static else build(str(tiny_trunk), device="cpu")
        return run_of(tiny_trunk, toy_pairs, tmp_path / str(rows), settings, model=model, **options)[0]

    expected = trained(10**9)
    with pytest.raises(Killed):
        trained(1, callbacks=[At(17, killed)])
    resumed = trained(1, resume=True)
    assert not any(getattr(module, "sparse", False) for module in resumed.modules())
    for parameter, expected_parameter in zip(resumed.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected_parameter, atol=2e-4, rtol=1e-3)


def test_in_bfloat16_a_model_sees_few_numbers_of_tokens(tiny_trunk, toy_pairs, tmp_path):
    """So that kernels are made for few sizes; the trainer has autocast within the model's forward alone."""
    shapes = []

    class Watch(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, **kwargs):
            model[0].model.embeddings.register_forward_hook(lambda module, inputs, got: shapes.append(got.shape[:2]))

    settings = SETTINGS.model_copy(update={"max_steps": 8, "eval_steps": 8, "precision": "bfloat16"})
    run_of(tiny_trunk, toy_pairs, tmp_path, settings, callbacks=[Watch()])
    packed = [width for rows, width in shapes if rows == 1]
    assert len(packed) >= 8 and all(width == round_up_tokens(width) for width in packed)
