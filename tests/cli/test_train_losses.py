"""The train command with its other losses: what a user sees of them, and what is refused."""

import json
from functools import partial

import pytest

from samesense.losses.registry import PAIR_LOSSES


@pytest.fixture
def run(run):
    """Trains by the command line; else as the one of all commands."""
    return partial(run, "train")


@pytest.fixture(scope="module")
def binary(tmp_path_factory):
    path = tmp_path_factory.mktemp("binary") / "pairs.tsv"
    rows = [f"{int(number % 4 == 0)}\tthe dog {number // 2}\ta cat {number}" for number in range(80)]
    path.write_text("\n".join(["label\tsentence1\tsentence2", *rows]) + "\n")
    return path


def test_flags_of_a_loss_reach_its_settings(run, binary, tiny_trunk, tmp_path):
    flags = ["--model", tiny_trunk, "--loss", "contrastive", "--threshold", "-0.5", "--literal"]
    code, out, err = run(binary, "-o", tmp_path / "run", "--dry-run", *flags)
    assert code == 0, err
    plan = json.loads(out)
    assert (plan["loss"], plan["threshold"], plan["literal"]) == ("contrastive", -0.5, True)
    assert ", loss = contrastive, threshold = -0.5, literal = True\n" in err
    assert "contrastive: labels 0 and 1 as they are\n" in err


def test_both_directions_and_the_hardness_of_info_nce(run, binary, tiny_trunk, tmp_path):
    flags = ["--model", tiny_trunk, "--loss", "info-nce", "--symmetric", "--hardness", 5]
    code, out, err = run(binary, "-o", tmp_path / "run", "--dry-run", *flags)
    assert code == 0, err
    plan = json.loads(out)
    assert (plan["loss"], plan["symmetric"], plan["hardness"]) == ("info-nce", True, 5.0)
    assert ", loss = info-nce, symmetric = True, hardness = 5.0\n" in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--loss", "mse", "--symmetric"], "symmetric belongs to loss info-nce, and this is loss mse"),
        (["--loss", "info-nce", "--hardness", -1], "hardness: input should be greater than or equal to 0"),
        (["--loss", "mse", "--threshold", 0], "threshold belongs to loss contrastive, and this is loss mse"),
        (["--threshold", 0.5], "threshold belongs to loss contrastive, and this is loss cosent"),
        (["--loss", "mse", "--no-hard-negatives"], "hard_negatives belongs to loss info-nce"),
        (["--loss", "cross-entropy"], "The losses of encoder bi are cosent, contrastive"),
        (["--loss", "hinge"], "error: loss: input should be 'cosent', 'contrastive'"),
        (
            ["--epochs", "x"],
            "error: epochs: input should be a valid number, unable to parse string as a number; received 'x'.",
        ),
        (["--loss", "triplet", "--batches", "label-aware"], "batches label-aware are made for loss cosent or"),
        (["--groups", "first", "--batches", "label-aware"], "Groups are dealt into batches as wholes"),
        (["--loss", "mse", "--groups", "first"], "groups belongs to loss cosent, and this is loss mse"),
    ],
)
def test_flags_that_do_not_belong_are_refused(run, binary, tmp_path, flags, message):
    code, out, err = run(binary, "-o", tmp_path / "run", "--dry-run", *flags)
    assert (code, out) == (2, "")
    assert (err.splitlines()[-1].startswith("samesense: error: "), err.count("error")) == (True, 1)
    assert message in err


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Queries with four graded candidates each, and one without."""
    path = tmp_path_factory.mktemp("graded") / "candidates.tsv"
    rows = [f"{number % 4}\tthe dog {number // 4}\ta cat {number}" for number in range(80)]
    path.write_text("\n".join(["score\tsentence1\tsentence2", *rows, "2\talone\ta cat"]) + "\n")
    return path


@pytest.mark.parametrize(
    ("encoder", "loss"), [("bi", "cosent"), ("cross", "cosent"), ("cross", "lambda"), ("bi", "margin-mse")]
)
def test_groups_are_compared_and_fill_batches(run, graded, tiny_trunk, tmp_path, encoder, loss, monkeypatch):
    batches = []
    kind = PAIR_LOSSES.spec(loss, encoder).module
    real = kind.loss
    monkeypatch.setattr(kind, "loss", lambda self, x, rows: (batches.append(rows.tolist()), real(self, x, rows))[1])
    flags = ["--groups", "first"] if loss == "cosent" else ["--loss", loss]
    flags += ["--encoder", encoder, "--batch-size", 8, "--max-steps", 4, "--dev", "none"]
    flags += ["--label-range", 0, 3, "--precision", "float32", "--model", tiny_trunk, "--keep-start", "never"]
    code, _, err = run(graded, "-o", tmp_path / "run", *flags)
    assert code == 0, err
    assert "21 groups of one first text with 1 to 4 pairs, 20 of them with two labels" in err
    assert "batches: of whole groups" in err
    groups = [{group: sum(row[1] == group for row in batch) for _, group in batch} for batch in batches]
    assert len(groups) == 4
    assert all(set(sizes.values()) == {4} for sizes in groups if 20 not in sizes)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["settings"]["groups"] == ("first" if loss == "cosent" else None)


@pytest.mark.parametrize(("encoder", "mentioned"), [("cross", True), ("bi", False)])
def test_training_a_reranker_on_graded_lists_mentions_groups(run, graded, tiny_trunk, tmp_path, encoder, mentioned):
    flags = ["--encoder", encoder, "--dev", "none", "--max-steps", 2, "--model", tiny_trunk]
    code, _, err = run(graded, "-o", tmp_path / "run", *flags)
    assert code == 0, err
    assert ("groups: 80 of 81 pairs have one with the same first text" in err) == mentioned


def test_pairs_without_groups_are_refused(run, tmp_path):
    path = tmp_path / "pairs.tsv"
    rows = [f"{number % 2}\tthe dog {number}\ta cat {number}" for number in range(80)]
    path.write_text("\n".join(["label\tsentence1\tsentence2", *rows]) + "\n")
    code, _, err = run(path, "-o", tmp_path / "run", "--dry-run", "--groups", "first")
    assert code == 2
    assert "only pairs with the same first text are compared, and 0 of" in err.splitlines()[-1]


def test_only_dev_can_be_auto(run, binary, tiny_trunk, tmp_path):
    options = (binary, "-o", tmp_path / "run", "--dry-run", "--model", tiny_trunk)
    code, out, err = run(*options, "--test", "auto")
    assert (code, out) == (2, "")
    assert "auto" in err.splitlines()[-1]
    for option in ("--dev", "--test"):
        assert run(*options, option, "none")[0] == 0


def test_labels_that_do_not_fit_are_refused_in_a_dry_run_too(run, toy_pairs, tmp_path):
    for options in (["--dry-run"], []):
        code, _, err = run(toy_pairs / "train.tsv", "-o", tmp_path / "run", "--loss", "softmax", *options)
        assert code == 2
        assert "Give --bins, the number of classes of equal width on their scale" in err
        assert "a loss that reads scores as they are: cosent, mse" in err
    assert not (tmp_path / "run").exists()


def test_a_run_says_what_it_made_of_the_labels(run, binary, tiny_trunk, tmp_path):
    code, _, err = run(
        binary,
        "-o",
        tmp_path / "run",
        "--loss",
        "triplet",
        "--model",
        tiny_trunk,
        "--max-steps",
        2,
        "--dev",
        "none",
        "--precision",
        "float32",
    )
    assert code == 0, err
    assert "triplet: 20 triplets, 40 of 80 pairs not used\n" in err
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["summary"][0].startswith("triplet: 20 triplets")


def test_the_cross_encoder_is_trained_by_the_same_method(run, binary, tmp_path, monkeypatch):
    from samesense.recipes.run import runner
    from samesense.recipes.run.training_run import TrainingRun
    from samesense.training.fit import TrainOutput

    jobs = []

    def fake(job, prepare, *, resume, overwrite):
        jobs.append((len(job.data), job.settings.encoder, job.settings.loss, job.output, job.dev, resume, overwrite))
        return TrainingRun(job.output, TrainOutput(steps=1, seconds=1.0, precision="float32"), [])

    monkeypatch.setattr(runner, "run", fake)
    code, _, err = run(binary, "-o", tmp_path / "run", "--encoder", "cross", "--loss", "cross-entropy", "--dev", "none")
    assert code == 0, err
    assert jobs == [(80, "cross", "cross-entropy", tmp_path / "run", None, False, False)]
