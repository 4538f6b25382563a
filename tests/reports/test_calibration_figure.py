from xml.etree import ElementTree

import numpy as np
import pytest

from samesense.errors import ConfigError, DataError, OutputError
from samesense.metrics.guarantee import share_lower_bound
from samesense.reports.figures.calibration import Fitted, calibration
from samesense.reports.figures.plot import check_figure, inline_svg, save_plot, svg_text

pytest.importorskip("matplotlib")


def fitted(**changes):
    random = np.random.default_rng(0)
    scores = random.uniform(0, 1, 400)
    labels = (random.uniform(size=400) < scores).astype(float)
    defaults = {
        "scores": scores,
        "labels": labels,
        "predicted": {"calibrated": scores, "as it is": scores**2},
        "scale": (0, 1),
        "map": (np.sort(scores), np.sort(scores)),
        "thresholds": {"accuracy": 0.4871, "f1": 0.3},
        "yes": 1.0,
        "data": "made.tsv",
    }
    return Fitted(**(defaults | changes))


def words(plot):
    return {text.strip() for text in ElementTree.fromstring(svg_text(plot)).itertext() if text.strip()}


def test_yes_and_no_are_drawn_with_both_thresholds():
    calibrated = fitted()
    plot = calibration(calibrated)
    yes = int(calibrated.labels.sum())
    assert {
        "predicted",
        "share of yes",
        "probability",
        "calibrated",
        "as it is",
        f"yes ({yes})",
        f"no ({400 - yes})",
        "best accuracy from 0.487",
        "best f1 from 0.3",
        "pairs",
        "score of the model",
    } <= words(plot)
    assert "made.tsv: reliability of calibrated and as it is" in plot.caption
    assert svg_text(plot) == svg_text(calibration(fitted()))
    ElementTree.fromstring(inline_svg(plot, "f"))


def test_graded_labels_are_drawn_on_their_scale():
    labels = 5 * fitted().scores
    plot = calibration(fitted(labels=labels, scale=(0, 5), yes=None, thresholds={}, predicted={"one": labels}))
    words_shown = words(plot)
    assert {"mean label", "value", "5"} <= words_shown
    assert not any(text.startswith(("yes", "best", "threshold", "precision")) for text in words_shown)
    bins = plot.figure.axes[0]
    assert bins.get_xlim() == bins.get_ylim() == pytest.approx((-0.2, 5.2))
    points = bins.containers[0].lines[0].get_xydata()
    assert len(points) == 10
    np.testing.assert_allclose(points[:, 0], points[:, 1])


def test_each_threshold_has_its_precision_with_a_bound_its_recall_and_its_share():
    scores = np.array([0.2, 0.4, 0.4, 0.8])
    labels = np.array([0.0, 1, 0, 1])
    plot = calibration(fitted(scores=scores, labels=labels, predicted={"one": scores}, used=0.4))
    axes = plot.figure.axes[-1]
    curves = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    # Equal scores are above a threshold together.
    assert [x for x, _ in curves["precision: right, of the pairs called a yes"]] == [0.2, 0.4, 0.8]
    assert [y for _, y in curves["precision: right, of the pairs called a yes"]] == pytest.approx([1 / 2, 2 / 3, 1])
    assert [y for _, y in curves["recall: found, of the pairs that are a yes"]] == [1, 1, 1 / 2]
    assert [y for _, y in curves["share of the pairs called a yes"]] == [1, 3 / 4, 1 / 4]
    assert curves["threshold used: 0.4"][0][0] == 0.4
    ends = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert ends.min() == pytest.approx(share_lower_bound([1], [1])[0])  # one pair shows little
    assert "with 95 % confidence for each threshold by itself" in plot.caption


def test_the_histogram_counts_every_pair_once():
    calibrated = fitted()
    plot = calibration(calibrated)
    axes = plot.figure.axes[2]
    heights = [patch.get_path().vertices[:, 1].max() for patch in axes.patches]
    edges = np.histogram_bin_edges(calibrated.scores, 40)
    for height, label in zip(heights, (1, 0), strict=True):
        assert height == np.histogram(calibrated.scores[calibrated.labels == label], edges)[0].max()


def test_a_figure_is_written_as_its_suffix_says(tmp_path):
    plot = calibration(fitted())
    assert save_plot(plot, tmp_path / "a" / "one.png").read_bytes().startswith(b"\x89PNG")
    assert save_plot(plot, tmp_path / "two.svg").read_text(encoding="utf-8") == svg_text(plot)
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["one.png", "two.svg"]
    with pytest.raises(ConfigError, match=r"ends in \.svg or \.png or \.pdf; received 'three.jpg'"):
        save_plot(plot, tmp_path / "three.jpg")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        check_figure(tmp_path / "folder.png")


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(DataError, match=r"scores\[0\] is nan"):
        calibration(fitted(predicted={"one": np.full(400, np.nan)}))
    with pytest.raises(DataError, match="at least one pair"):
        calibration(fitted(scores=np.zeros(0), labels=np.zeros(0), predicted={"one": np.zeros(0)}))
