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


def test_a_threshold_moves_to_where_the_precision_is_the_same():
    rows = {"a": 0.0, **{f"x{i}": 0.1 * i for i in range(1, 9)}}
    old = {text: [np.cos(angle), np.sin(angle)] for text, angle in rows.items()}
    new = {text: [np.cos(angle / 2), np.sin(angle / 2)] for text, angle in rows.items()}
    pairs = samesense.read([("a", f"x{i}", int(i in (1, 2, 3, 5))) for i in range(1, 9)])
    result, _ = drift(model_of(old), model_of(new), list(rows), top=3, pairs=pairs, threshold=np.cos(0.55))
    assert result.threshold.precision == pytest.approx(4 / 5)
    assert np.cos(0.3) < result.threshold.new < np.cos(0.25)
    assert (result.threshold.old, result.threshold.of) == (np.cos(0.55), "precision")
    # no pair is called the same, or none rightly: nowhere in the new model
    for threshold, wrong in ((1.5, pairs), (np.cos(0.45), samesense.read([("a", "x4", 0), ("a", "x8", 1)]))):
        result, _ = drift(model_of(old), model_of(new), list(rows), top=3, pairs=wrong, threshold=min(threshold, 1.0))
        assert (result.threshold.new, result.threshold.precision) == (float("inf"), 0.0)
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["threshold"]["new"] is None
    # without labels: as many of the pairs of neighbours
    result, _ = drift(model_of(old), model_of(new), list(rows), top=3, threshold=np.cos(0.15))
    assert result.threshold.of == "share"
    assert np.cos(0.1) < result.threshold.new <= np.cos(0.05)


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
