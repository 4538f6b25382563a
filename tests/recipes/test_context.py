"""From documents to a model: each stage runs once, also after stops; only what changed is repeated; a report."""

import json
import shutil
import signal

import pytest
from transformers import TrainerCallback

from samesense.cli.main import app
from samesense.context.corpus.corpus import Corpus
from samesense.data import read_pairs
from samesense.data.documents import drop_held_out, read_documents, take_held_out
from samesense.errors import ConfigError, OutputError
from samesense.inference.models.load import load
from samesense.metrics import spearman
from samesense.recipes.context import recipe as context
from samesense.recipes.context.documents import name_documents
from samesense.recipes.context.settings import ContextSettings
from samesense.recipes.methods import METHODS
from samesense.recipes.origin import paper
from samesense.recipes.run import run_folder
from samesense.recipes.run.outcome.measure import NO_START
from samesense.recipes.surrogate import recipe as surrogate
from samesense.training.fit import TrainOutput
from tests.context.worlds import some_documents
from tests.messages import listen

pytestmark = pytest.mark.usefixtures("smallest_generator")

ORIGIN = {
    "vocabulary": 300,
    "generator_max_steps": 4,
    "generator_batch_size": 8,
    "max_tokens": 16,
    "held_out_windows": 10,
    "discriminator_epochs": 1,
    "windows": 4,
    "rescored": 10,
    "reference": 4,
    "precision": "float32",
    "held_out_documents": 0.6,
}
HARVEST = {"pairs": 60, "unit": 6, "shard_size": 20, "spacings": [4]}


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    path = tmp_path_factory.mktemp("documents") / "some.jsonl"
    rows = [{"sections": sections} for sections in some_documents(12)]
    sections_flat = [sections[0] for sections in some_documents(60, seed=5)]
    rows += [{"sections": sections_flat[start : start + 3]} for start in range(0, 60, 3)]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def given(tiny_trunk):
    return {
        "model": str(tiny_trunk),
        "max_steps": 4,
        "batch_size": 8,
        "precision": "float32",
        "held_out_share": 0.2,
        "max_seq_length": 32,
        "origin_config": "scaled",
        "origin": ORIGIN,
        "harvest": HARVEST,
    }


def make(documents, output, given, **options):
    settings = ContextSettings(**given)
    lines = listen()
    trained = METHODS["context"].run(name_documents([documents], settings), settings, output, **options)
    return trained, lines


@pytest.fixture(scope="module")
def whole(documents, given, toy_pairs, tmp_path_factory, smallest_generator):
    """Return a finished folder, and the messages of the run."""
    output = tmp_path_factory.mktemp("whole") / "made"
    trained, lines = make(documents, output, given, test=read_pairs(toy_pairs / "test.tsv"))
    return trained, list(lines), output


def harvested(whole, output):
    """Reduce a finished folder to its state after the harvest."""
    for stage in ("origin", "harvest"):
        shutil.copytree(whole[2] / stage, output / stage)
    record = json.loads((whole[2] / "manifest.json").read_text())
    record |= {"status": "running", "stages": {"harvest": record["stages"]["harvest"]}}
    (output / "manifest.json").write_text(json.dumps(record))
    return output


@pytest.mark.slow
@pytest.mark.parametrize("keep_start", ["unless-better", "never"])
def test_a_start_that_the_surrogate_does_not_surpass_is_kept(
    keep_start, whole, given, toy_pairs, documents, tmp_path, monkeypatch
):
    monkeypatch.setattr("samesense.recipes.context.report.is_untuned", lambda *_: False)  # random weights are untuned
    harvested(whole, tmp_path)
    test = read_pairs(toy_pairs / "test.tsv")
    changes = {"keep_start": keep_start, "standardize": "whiten"}  # whitened, so that the two differ
    trained, lines = make(documents, tmp_path, given | changes, test=test)
    assert trained.verdict.word != "better"
    is_kept = keep_start != "never"
    start_scores, surrogate_scores, kept_scores = (
        load(str(path), precision="float32").scores(test.pairs())
        for path in (given["model"], tmp_path / "surrogate", tmp_path / "model")
    )
    assert start_scores != pytest.approx(surrogate_scores)
    assert kept_scores == pytest.approx(start_scores if is_kept else surrogate_scores, abs=1e-6)
    assert (
        ("surrogate/model" in trained.verdict.keep_reason)
        == is_kept
        == any("kept: model/ is the start" in line for line in lines)
    )
    report = (tmp_path / "report.md").read_text()
    assert ("kept: model/ is the start" in report) == is_kept
    assert not (is_kept and "recommended: take the Surrogate" in report)


def begun(lines):
    return [line.removesuffix(": begins") for line in lines if line.endswith(": begins")]


@pytest.mark.slow
def test_from_documents_to_an_evaluated_model_and_only_what_changed_again(documents, given, whole, toy_pairs, tmp_path):
    trained, lines, output = whole
    test = read_pairs(toy_pairs / "test.tsv")
    assert begun(lines) == [
        "corpus",
        "discriminator",
        "generator",
        "random pairs",
        "harvest",
        "surrogate",
        "evaluation",
    ]
    assert trained.model == output / "model" and trained.output.steps == 4
    candidate = load(str(output), precision="float32")
    values = {(row.task, row.model, row.metric): row.value for row in trained.results if row.subset == "all"}
    assert values["sts", "surrogate", "spearman"] == pytest.approx(
        spearman(candidate.scores(test.pairs()), test.labels), abs=1e-6
    )
    assert {("sections", name, "accuracy") for name in ("start", "whitened start", "surrogate")} <= {*values}
    learnt = Corpus(output / "origin" / "corpus", ContextSettings(**given).origin_settings().shape())
    held = list(take_held_out(read_documents(documents), ORIGIN["held_out_documents"]))
    assert 16 <= len(held) < 20 and not {text for document in held for section in document for text in section} & {
        *learnt
    }
    assert ("sts", "start", "spearman") in values and ("surrogate", str(output / "surrogate"), "mse") in values
    report = (output / "report.md").read_text()
    for word in (
        "recommended: ",
        "triplets by section, in documents that were held out",
        "held-out pairs: Spearman",
        "test.tsv",
        "| origin: generator |",
        "| evaluation |",
        "worker-days",
    ):
        assert word in report
    record = json.loads((output / "manifest.json").read_text())
    assert record["status"] == "finished" and record["verdict"]["verdict"] == trained.verdict.word
    assert trained.verdict.task.end == pytest.approx(values["sts", "surrogate", "spearman"])
    assert (output / "report.html").is_file()

    output = shutil.copytree(output, tmp_path / "made")
    _, lines = make(documents, output, given, test=test)
    assert begun(lines) == []
    assert (output / "report.md").read_text() == report

    changed = {**given, "max_steps": 5}
    record = (output / "manifest.json").read_text()
    with pytest.raises(OutputError, match=r"The stage surrogate .* `overwrite`"):
        make(documents, output, changed, test=test)
    assert (output / "manifest.json").read_text() == record
    trained, lines = make(documents, output, changed, test=test, overwrite=True)
    assert begun(lines) == ["surrogate", "evaluation"] and trained.output.steps == 5

    changes = {**changed, "guard": ("test.tsv",), "report": False, "license": "mit", "language": "en"}
    changes["report_to"] = "tensorboard"
    guard = read_pairs(toy_pairs / "dev.tsv")
    with pytest.raises(OutputError, match=r"The stage evaluation .* `overwrite`"):
        make(documents, output, changes, test=test, guards=[guard])
    trained, lines = make(documents, output, changes, test=test, guards=[guard], overwrite=True)
    assert begun(lines) == ["evaluation"] and len(trained.verdict.guards) == 1
    assert "license: mit" in (output / "model" / "README.md").read_text() and not (output / "report.html").exists()
    _, lines = make(documents, output, changed, test=test, overwrite=True)
    assert begun(lines) == ["evaluation"] and (output / "report.html").exists()

    changed["harvest"] = {**HARVEST, "workers": 2, "retries": 1}  # these settings do not change the result
    _, lines = make(documents, output, changed, test=test, overwrite=True)
    assert begun(lines) == []
    changed["harvest"] = HARVEST
    changed["origin"] = {**ORIGIN, "windows": 3}
    _, lines = make(documents, output, changed, test=test, overwrite=True)
    assert begun(lines) == ["random pairs", "harvest", "surrogate", "evaluation"]
    _, lines = make(documents, output, changed, dev=test, overwrite=True)
    assert begun(lines) == ["surrogate", "evaluation"]


@pytest.mark.slow
def test_a_cross_encoder_has_no_start_to_be_compared_with(documents, given, whole, toy_pairs, tmp_path):
    output = harvested(whole, tmp_path / "made")
    test = read_pairs(toy_pairs / "test.tsv")
    trained, _ = make(documents, output, {**given, "encoder": "cross"}, test=test)
    assert (trained.verdict.task, trained.verdict.reason) == (None, NO_START)
    assert "test.tsv" in (output / "report.md").read_text()


class PressesCtrlC(TrainerCallback):
    """Presses Ctrl-C at a step."""

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 2:
            signal.raise_signal(signal.SIGINT)


class Dies(TrainerCallback):
    """Ends the training at its first step."""

    def on_step_begin(self, args, state, control, **kwargs):
        raise RuntimeError("killed")


@pytest.mark.slow
def test_a_run_that_was_stopped_anywhere_goes_on(documents, given, whole, toy_pairs, tmp_path, monkeypatch):
    output = tmp_path / "made"
    test = read_pairs(toy_pairs / "test.tsv")

    def killed(*args, **kwargs):
        raise RuntimeError("killed")

    stops = (
        (paper, "_generator"),
        (context, "harvest"),
        (surrogate, "measure_kept"),
        (context, "evaluate"),
    )
    for module, name in stops:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, killed)
            with pytest.raises(RuntimeError, match="killed"):
                make(documents, output, given, test=test)
    trained, lines = make(documents, output, given, test=test)
    assert "surrogate: there already" in "\n".join(lines) and "evaluation: going on" in lines
    stops = (output, whole[2])
    pair = ("a dog eats", "a cat sleeps")
    scores = [load(str(path), precision="float32").scores([pair])[0] for path in stops]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    assert [row.value for row in trained.results] == pytest.approx([row.value for row in whole[0].results], abs=1e-5)


@pytest.mark.slow
def test_a_surrogate_that_was_interrupted_goes_on_from_its_checkpoint(documents, given, whole, tmp_path, monkeypatch):
    output = harvested(whole, tmp_path / "made")
    prepared = surrogate.TrainingInputs
    with monkeypatch.context() as patch:
        patch.setattr(surrogate, "TrainingInputs", lambda **options: prepared(callbacks=[PressesCtrlC()], **options))
        trained, lines = make(documents, output, given)
    assert trained.output.interrupted and not (output / "model").exists()
    trained, lines = make(documents, output, given)
    assert "surrogate: going on" in lines
    assert trained.output.steps == 4 and not trained.output.interrupted
    record = json.loads((output / "surrogate" / "manifest.json").read_text())
    assert len(record["resumed"]) == 1


@pytest.mark.slow
def test_a_surrogate_killed_before_a_checkpoint_or_at_its_very_end_is_trained_again(
    documents, given, whole, tmp_path, monkeypatch
):
    output = harvested(whole, tmp_path / "made")
    prepared = surrogate.TrainingInputs

    def killed(*args, **kwargs):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(surrogate, "TrainingInputs", lambda **options: prepared(callbacks=[Dies()], **options))
        with pytest.raises(RuntimeError, match="killed"):
            make(documents, output, given)
    assert (output / "surrogate" / "checkpoints").is_dir()
    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "end", killed)
        with pytest.raises(RuntimeError, match="killed"):
            make(documents, output, given)
    assert (output / "surrogate" / "model").is_dir()
    trained, lines = make(documents, output, given)
    assert "surrogate: going on" in lines and trained.output.steps == 4


def test_an_origin_that_was_interrupted_says_so(documents, given, tmp_path, monkeypatch):
    monkeypatch.setattr(context.origin_recipe, "run", lambda *args, **options: False)
    trained, _ = make(documents, tmp_path / "made", given)
    assert trained.output == TrainOutput(steps=0, seconds=0.0, precision="", interrupted=True) and not trained.results


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"origin": {"contxts": 5}}, "Did you mean 'contexts'"),
        ({"harvest": {"pairs": "many"}}, "pairs: input should be a valid integer"),
        ({"origin_config": "big"}, "`config` takes a TOML file"),
        ({"origin_config": "scaled", "origin": {"windows": 5000}}, "A context set has"),
        ({"held_out_share": 0.0001}, "0.0001 of harvest.pairs 10,000 is 1"),
        ({"harvest": {"pairs": 60}}, "`?held_out_share`? 0.01 of harvest.pairs 60 is 0.6"),
    ],
)
def test_settings_of_the_parts_are_checked_at_once(options, words):
    with pytest.raises(ConfigError, match=words):
        ContextSettings(**options)


def test_what_is_held_out_depends_on_the_document_alone():
    documents = [[[f"sentence {n}"], ["another"]] for n in range(500)]
    documents += [[[f"sentence {n}", "another"]] for n in range(500, 1000)] + [[["alone"]]] * 9
    some = list(take_held_out(documents, 0.2))
    assert 80 < sum(len(document) == 1 for document in some) < 120 and [["alone"]] not in some
    assert 150 < len(some) < 250 and list(take_held_out(reversed(documents), 0.2)) == some[::-1]
    assert list(drop_held_out(documents, 0.2)) == [document for document in documents if document not in some]
    assert not list(take_held_out(documents, 0.0))


def test_the_origin_is_by_a_bank_and_documents_are_held_out_of_it(tmp_path):
    origin = ContextSettings().origin_settings()
    assert (origin.contexts, origin.held_out_documents) == ("words", 0.1)
    assert ContextSettings(origin={"held_out_documents": 0}).origin_settings().held_out_documents == 0
    (tmp_path / "mine.toml").write_text("held_out_documents = 0.3\n")
    mine = str(tmp_path / "mine.toml")
    assert ContextSettings(origin_config=mine).origin_settings().held_out_documents == 0.3
    settings = ContextSettings(origin_config=mine, origin={"held_out_documents": 0.2})
    assert settings.origin_settings().held_out_documents == 0.2
    assert ContextSettings(origin_config="scaled").origin_settings().held_out_documents == 0.1


def test_settings_of_the_parts_are_flags_with_a_dot(documents, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(METHODS["context"].__class__, "estimate", lambda *_, **__: [])
    words = ["train", documents, "--method", "context", "--output", str(tmp_path / "m"), "--dry-run"]
    words += [
        "--origin-config",
        "scaled",
        "--origin.corpus-words",
        "1000",
        "--origin.windows=20",
        "--harvest.pairs",
        "5000",
    ]
    words += ["--harvest.spacings", "4,16"]
    app(words, exit_on_error=False, result_action="return_value")
    out, err = capsys.readouterr()
    printed = json.loads(out)
    assert printed["origin"] == {"corpus_words": "1000", "windows": "20"}
    settings = ContextSettings(**printed)
    assert (settings.origin_settings().windows, settings.harvest_settings().pairs) == (20, 5000)
    assert settings.harvest_settings().spacings == (4, 16)
    assert "data: documents of some.jsonl" in err and "selection: Spearman on pairs held out of the harvest" in err
    assert not (tmp_path / "m").exists()


def test_the_method_is_registered():
    assert METHODS["context"].choose("auto", {}, lambda: None)[1] == ContextSettings()
