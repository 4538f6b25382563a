"""What a change of the model changes, against plain loops."""

import json

import numpy as np
import pytest

import samesense
from samesense.errors import ConfigError, DataError
from samesense.inference.drift import drift
from tests.command import run_command
from tests.inference.made_vectors import cosines

TEXTS = [f"t{i}" for i in range(60)]
DRAW = np.random.default_rng(0)
OLD = {text: DRAW.normal(size=6) for text in TEXTS}
NEW = {text: row + 0.5 * DRAW.normal(size=6) for text, row in OLD.items()}


def model_of(rows):
    return samesense.load(lambda texts: np.array([rows[text] for text in texts], dtype=np.float32))


def nearest(rows, text, top):
    scores = {candidate: cosines(rows[text], [rows[candidate]])[0] for candidate in TEXTS if candidate != text}
    return sorted(scores, key=scores.__getitem__, reverse=True)[:top]


def test_neighbours_scores_and_texts_that_changed():
    result, _ = drift(model_of(OLD), model_of(NEW), TEXTS, top=5)
    overlap, moved = {}, []
    for text in TEXTS:
        before, after = nearest(OLD, text, 5), nearest(NEW, text, 5)
        overlap[text] = len({*before} & {*after}) / 5
        moved += [(cosines(OLD[text], [OLD[o]])[0], cosines(NEW[text], [NEW[o]])[0]) for o in {*before} | {*after}]
    assert result.overlap == pytest.approx(np.mean(list(overlap.values())))
    assert result.moved == pytest.approx(np.mean([abs(b - a) for a, b in moved]), abs=1e-6)
    assert result.shift == pytest.approx(np.mean([b - a for a, b in moved]), abs=1e-6)
    assert (result.texts, result.queries) == (60, 60)
    assert [change.overlap for change in result.changed] == sorted(overlap.values())[:10]
    worst = result.changed[0]
    assert overlap[worst.text] == worst.overlap
    assert (worst.before, worst.after) == (nearest(OLD, worst.text, 1)[0], nearest(NEW, worst.text, 1)[0])


def test_the_same_model_has_not_drifted_and_repeated_texts_count_once():
    result, _ = drift(model_of(OLD), model_of(OLD), [*TEXTS, "t1"], top=5, queries=20)
    assert (result.overlap, result.moved, result.texts, result.queries) == (1.0, 0.0, 60, 20)
    assert result.changed == ()


ANGLES = {"a": 0.0, **{f"x{i}": 0.1 * i for i in range(1, 9)}}
WIDE = {text: [np.cos(angle), np.sin(angle)] for text, angle in ANGLES.items()}
NARROW = {text: [np.cos(angle / 2), np.sin(angle / 2)] for text, angle in ANGLES.items()}


def moved(old, new, threshold, pairs=None):
    return drift(model_of(old), model_of(new), list(ANGLES), top=3, pairs=pairs, threshold=threshold)[0].threshold


def labelled(*positives):
    return samesense.read([("a", f"x{i}", int(i in positives)) for i in range(1, 9)])


def test_a_threshold_moves_to_where_as_many_pairs_reach_it():
    result = moved(WIDE, NARROW, np.cos(0.55), labelled(1, 2, 3, 5))
    assert (result.old, result.of, result.share) == (np.cos(0.55), "pairs", 5 / 8)
    assert np.cos(0.3) < result.new < np.cos(0.25)
    assert result.precision == pytest.approx((4 / 5, 4 / 5)) and result.recall == (1.0, 1.0)
    # A model that ranks better has fewer errors among as many pairs.
    worse = WIDE | {"x4": WIDE["x5"], "x5": WIDE["x4"]}
    result = moved(worse, NARROW, np.cos(0.45), labelled(1, 2, 3, 4))
    assert result.precision == (3 / 4, 1.0) and result.recall == (3 / 4, 1.0)
    # without labels: as many of the pairs of neighbours
    result = moved(WIDE, NARROW, np.cos(0.15))
    assert (result.of, result.precision, result.recall) == ("neighbours", None, None)
    assert np.cos(0.1) < result.new <= np.cos(0.05)


@pytest.mark.parametrize("threshold", [-1.0, 0.5, np.cos(0.55), np.cos(0.3), 0.97, 1.0])
@pytest.mark.parametrize("positives", [(), (1, 2, 3, 5), (7, 8)])
def test_a_threshold_stays_where_no_score_changes(threshold, positives):
    assert moved(WIDE, WIDE, threshold, labelled(*positives) if positives else None).new == threshold


@pytest.mark.parametrize("positives", [(), (1, 2, 3, 5), (1,)])
def test_a_threshold_hardly_moves_where_scores_hardly_change(positives):
    draw = np.random.default_rng(0)
    alike = {text: np.array(row) + 1e-5 * draw.normal(size=2) for text, row in WIDE.items()}
    pairs = labelled(*positives) if positives else None
    for threshold in (np.cos(0.25), np.cos(0.22), np.cos(0.12)):
        assert moved(WIDE, alike, threshold, pairs).new == pytest.approx(threshold, abs=1e-3)


@pytest.mark.parametrize(("threshold", "count"), [(1.0, "none"), (0.0, "every one")])
@pytest.mark.parametrize("positives", [(), (1, 2)])
def test_a_threshold_beyond_all_scores_is_not_guessed(threshold, count, positives):
    pairs = labelled(*positives) if positives else None
    report, _ = drift(model_of(WIDE), model_of(NARROW), list(ANGLES), top=3, pairs=pairs, threshold=threshold)
    assert (report.threshold.new, report.threshold.precision) == (None, None)
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["threshold"]["new"] is None
    kind = "labelled pairs" if positives else "pairs of neighbours"
    assert f"threshold moved   {threshold:.4f} -> unknown, as {count} of the {kind} reaches it" in str(report)


def test_refusals():
    with pytest.raises(DataError, match="at least 3 different texts"):
        drift(model_of(OLD), model_of(OLD), ["t1", "t2", "t1"])
    with pytest.raises(ConfigError, match="`top`"):
        drift(model_of(OLD), model_of(OLD), TEXTS, top=0)
    with pytest.raises(ConfigError, match="graded"):
        drift(model_of(OLD), model_of(OLD), TEXTS, pairs=samesense.read([("t1", "t2", 0.5), ("t1", "t3", 0.2)]))


def test_a_release_is_gated_by_the_exit_code(tiny_trunk, sentences, tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in sentences))
    same = ("drift", tiny_trunk, tiny_trunk, "--texts", tmp_path / "texts.txt", "--precision", "float32")
    code, out, _ = run_command(capsys, *same, "--limit", "0")
    assert (code, out.splitlines()[0].split()) == (0, ["neighbours", "kept", "100.0", "%"])
    command = ("drift", tiny_trunk, f"{tiny_trunk}?cls", "--texts", tmp_path / "texts.txt", "--precision", "float32")
    code, out, err = run_command(capsys, *command, "--limit", "0.05", "--json")
    content = json.loads(out)
    assert (code, content["drift"]) == (1, pytest.approx(1 - content["overlap"]))
    assert content["drift"] > 0.05
    assert f"drift {content['drift']:.4f} is above the limit 0.05" in err
    assert run_command(capsys, *command)[0] == 0
    assert samesense.drift(str(tiny_trunk), str(tiny_trunk), sentences, precision="float32").drift == 0
    code, _, err = run_command(capsys, *same, "--limit", "2")
    assert (code, "A limit is a share" in err) == (2, True)
