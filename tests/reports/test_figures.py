import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from samesense.errors import DataError, MissingExtraError
from samesense.reports.figures import plot as module
from samesense.reports.figures.curves import Curve, learning_curves, sweep
from samesense.reports.figures.differences import Difference, difference_figure
from samesense.reports.figures.distribution import distribution, rating_groups
from samesense.reports.figures.heatmap import heatmap
from samesense.reports.figures.names import shown_name
from samesense.reports.figures.overview import NARROW, ModelScore, overview
from samesense.reports.figures.plane import ModelPoint, plane
from samesense.reports.figures.plot import inline_svg, save_plots, style_of, svg_text, variables
from tests.reports.made import evidence, scored

pytest.importorskip("matplotlib")
LOOKS = {name: style_of(index) for index, name in enumerate("abc")}


def words(svg):
    return [text for text in ElementTree.fromstring(svg).itertext() if text.strip()]


def matrix(size, seed=0):
    rows = np.random.default_rng(seed).normal(size=(size, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def all_kinds():
    return [
        distribution(scored()[1], styles=LOOKS, name="spread"),
        plane([ModelPoint("a", 0.2, -2.0, "81.0"), ModelPoint("b", 0.2, -2.01)], styles=LOOKS, dataset="stsb.dev"),
        heatmap({"a": matrix(4), "b": matrix(4, 1)}, [["p", "q"], ["r", "s"]]),
        learning_curves([Curve("one", (1, 2, 3), (0.1, 0.5, 0.4)), Curve("two", (1, 2), (0.2, 0.3))]),
        sweep({"dev": {0.05: [80.0, 81.0], 1.0: [79.0]}}, setting="temperature"),
        difference_figure(
            {"dev": [difference("a"), difference("b", published=2.0)]}, unit="points", name="d", caption=""
        ),
    ]


def difference(label, **fields):
    return Difference(label=label, value=1.0, low=-0.5, high=2.5, significant=False, **fields)


@pytest.fixture(scope="module")
def plots():
    return all_kinds()


def test_figures_are_the_same_each_time(plots):
    assert [svg_text(plot) for plot in plots] == [svg_text(plot) for plot in all_kinds()]


def test_figures_hold_words_as_text_and_no_date_and_no_bitmap(plots):
    for plot in plots:
        svg = svg_text(plot)
        assert "<text" in svg
        assert "<image" not in svg
        assert "date" not in svg.lower()
    assert {"a", "b", "c", "similarity", "label (number of pairs)"} <= set(words(svg_text(plots[0])))
    assert {"a  81.0", "b"} <= set(words(svg_text(plots[1])))
    assert {"step", "one", "two"} <= set(words(svg_text(plots[3])))
    assert {"temperature", "dev (2 seeds)", "0.05", "1"} <= set(words(svg_text(plots[4])))
    assert {"dev", "a", "b", "points"} <= set(words(svg_text(plots[5])))


def test_inline_figures_follow_the_page(plots):
    drawn = [colours[0] for colours in variables().values()]
    for number, plot in enumerate(plots):
        svg = inline_svg(plot, f"f{number}")
        ElementTree.fromstring(svg)
        assert "http" not in svg
        assert not any(colour in svg for colour in drawn)
        assert "var(--ink)" in svg
        identifiers = re.findall(r'\bid="([^"]*)"', svg)
        assert all(name.startswith(f"f{number}-") for name in identifiers)
        used = re.findall(r'(?:url\(|href=")#([^")]*)', svg)
        assert set(used) <= set(identifiers)
        assert "#000000" not in svg or plot.name == "heatmap"  # black only where a cell's own colour calls for it


PLACES = [
    ModelScore("slow and good", 86.8, 85.1, 88.2, 94.0),
    ModelScore("quick", 75.8, 73.0, 78.4, 17600.0),
    ModelScore("stored", 50.0, 48.0, 52.0),
]


def test_the_overview_names_every_model_and_leaves_none_out():
    drawn = overview(PLACES, styles={"quick": style_of(1)}, score="Spearman on x", name="overview")
    axes = drawn.figure.axes[0]
    assert axes.get_xscale() == "log"
    assert {text.get_text() for text in axes.texts} == {"slow and good", "quick"}
    ends = sorted(tuple(line.get_ydata()) for line in axes.lines if len(line.get_ydata()) == 2)
    assert ends == [(73.0, 78.4), (85.1, 88.2)]
    assert drawn.caption.endswith("Without a measured speed: stored (50.0).")


def test_speeds_are_labelled_so_that_labels_do_not_meet():
    far = [ModelScore("a", 80, 79, 81, 3.0), ModelScore("b", 60, 59, 61, 5.0e6)]
    drawn = overview(far, styles={}, score="Spearman", name="overview", size=NARROW)
    drawn.figure.draw_without_rendering()
    labels = [label for label in drawn.figure.axes[0].get_xticklabels() if label.get_text()]
    assert {"10", "1,000", "100k", "1M"} <= {label.get_text() for label in labels}
    ends = [label.get_window_extent() for label in labels]
    assert not [1 for index, label in enumerate(ends) for earlier in ends[:index] if label.overlaps(earlier)]
    near = overview(PLACES[:1], styles={}, score="Spearman", name="overview").figure.axes[0]
    near.figure.draw_without_rendering()
    minor = {label.get_text() for label in near.get_xticklabels(minor=True)}
    assert {"50", "200"} <= minor
    assert not {"30", "60", "300"} & minor


def test_where_it_is_narrow_names_stand_below():
    drawn = overview(PLACES, styles={}, score="Spearman on x", name="overview", size=NARROW)
    [legend] = drawn.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["slow and good", "quick"]
    assert list(drawn.figure.axes[0].texts) == []


def test_names_stand_inside_and_part_where_models_are_near():
    near = [ModelScore(f"model {index}", 80 + 0.1 * index, 79, 81, 200 + index) for index in range(6)]
    axes = overview(near, styles={}, score="Spearman", name="overview").figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert all(axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1 for box in boxes)
    assert not [1 for index, name_box in enumerate(boxes) for earlier in boxes[:index] if name_box.overlaps(earlier)]


def test_a_name_is_not_written_on_the_range_of_a_speed():
    wide = [
        ModelScore("paraphrase", 86, 76, 93, 200.0, (150.0, 290.0)),
        ModelScore("default", 83, 70, 92, 95.0, (80.0, 125.0)),
    ]
    axes = overview(wide, styles={}, score="Spearman", name="overview").figure.axes[0]
    assert len(axes.texts) == 2
    for point, text in zip(wide, axes.texts, strict=True):
        level = axes.transData.transform((point.speed, point.score))[1]
        box = text.get_window_extent()
        assert not box.y0 <= level <= box.y1, point.model


def test_without_speeds_the_overview_has_a_row_a_model():
    drawn = overview([replace(score, speed=None) for score in PLACES], styles={}, score="Spearman", name="overview")
    axes = drawn.figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["slow and good", "quick", "stored"]
    assert "second" not in drawn.caption
    with pytest.raises(DataError, match="one model or more"):
        overview([], styles={}, score="", name="overview")


def test_files_are_written(plots, tmp_path):
    written = save_plots(plots[:2], tmp_path / "figures")
    assert [path.name for path in written] == [
        f"{name}{kind}" for name in ("spread", "plane") for kind in (".svg", ".png", ".pdf")
    ]
    assert written[0].read_text(encoding="utf-8") == svg_text(plots[0])
    assert written[1].read_bytes().startswith(b"\x89PNG")
    pdf = written[2].read_bytes()
    assert pdf.startswith(b"%PDF") and b"CreationDate" not in pdf and b"/Type3" not in pdf


def test_names_are_never_taken_for_formulas_or_markup():
    odd = "a$b$ <i>&中文"
    svg = svg_text(plane([ModelPoint(odd, 0.2, -2.0)], styles={}, dataset="x"))
    assert odd in words(svg)
    assert odd in words(inline_svg(plane([ModelPoint(odd, 0.2, -2.0)], styles={}, dataset='"<x>'), "p"))


def test_a_caption_is_no_pattern():
    odd = r"C:\data\1 \g<0>"
    svg = inline_svg(plane([ModelPoint("a", 0.2, -2.0)], styles={}, dataset=odd), "p")
    assert odd in ElementTree.fromstring(svg).get("aria-label")


def test_groups_by_value_where_there_are_few():
    labels = np.array([1.0, 0, 1, 0, 0])
    assert [(name, rows.tolist()) for name, rows in rating_groups(labels)] == [("no", [1, 3, 4]), ("yes", [0, 2])]


def test_a_label_that_no_pair_has_is_no_group():
    assert [name for name, _ in rating_groups(np.array([1.0, 1]))] == ["yes"]


def test_groups_by_fifths_of_the_scale():
    labels = np.array([0, 0.2, 0.99, 1, 1.5, 2.2, 3.7, 4, 5, 4.99, 1])
    assert [(name, rows.tolist()) for name, rows in rating_groups(labels)] == [
        ("0-1", [0, 1, 2]),
        ("1-2", [3, 4, 10]),
        ("2-3", [5]),
        ("3-4", [6]),
        ("4-5", [7, 8, 9]),
    ]


@pytest.mark.parametrize(("low", "high"), [(1, 5), (-1, 1), (7.3, 11.9), (0, 100)])
def test_every_pair_is_in_one_group(low, high):
    labels = np.random.default_rng(0).uniform(low, high, 500)
    rows = np.concatenate([members for _, members in rating_groups(labels)])
    assert sorted(rows) == list(range(500))
    means = [labels[members].mean() for _, members in rating_groups(labels)]
    assert means == sorted(means)


def test_constant_scores_and_tiny_groups_can_be_drawn():
    labels = np.array([0.0] * 20 + [1.0] * 3)
    svg = svg_text(distribution([evidence("a", np.ones(23), labels)], styles=LOOKS, name="x"))
    assert {"(20)", "(3)"} <= set(words(svg))


def test_logits_do_not_share_an_axis_with_cosines():
    labels = np.arange(40.0) % 6
    both = [evidence("a", labels / 6, labels), evidence("b", 4 * labels - 10, labels)]
    cosines, logits = distribution(both, styles=LOOKS, name="x").figure.axes
    assert cosines.get_ylim()[1] < 2 < logits.get_ylim()[1]


def test_names_of_near_models_do_not_meet():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    points = [
        ModelPoint(f"a model with a long name {index}", 0.2 + index / 1e4, -2.0 + index / 1e4) for index in range(6)
    ]
    plot = plane(points, styles={}, dataset="x")
    renderer = FigureCanvasAgg(plot.figure).get_renderer()
    plot.figure.draw(renderer)
    boxes = [text.get_window_extent(renderer) for text in plot.figure.axes[0].texts]
    assert len(boxes) == 6
    assert not any(box.overlaps(earlier) for index, box in enumerate(boxes) for earlier in boxes[:index])


def test_seeds_become_a_mean_and_a_band():
    curves = [Curve("run", (10, 20, 30), (0.5, 0.7, 0.6)), Curve("run", (10, 20), (0.7, 0.9))]
    axes = learning_curves(curves).figure.axes[0]
    line, ring = axes.lines
    assert line.get_label() == "run (2 seeds)"
    assert line.get_xydata().tolist() == [[10, pytest.approx(60)], [20, pytest.approx(80)]]
    assert ring.get_xydata().tolist() == [[20, pytest.approx(80)]]
    [band] = axes.collections
    assert band.get_paths()[0].get_extents().ymin == pytest.approx(60 - np.std([50, 70], ddof=1))


def test_wide_sweeps_are_logarithmic_and_ordered():
    axes = sweep({"dev": {1.0: [1.0], 0.01: [3.0], 0.1: [2.0]}}, setting="t").figure.axes[0]
    assert axes.get_xscale() == "log"
    assert axes.lines[0].get_xydata().tolist() == [[0.01, 3.0], [0.1, 2.0], [1.0, 1.0]]
    assert sweep({"dev": {5: [1.0], 40: [3.0]}}, setting="t").figure.axes[0].get_xscale() == "linear"
    assert sweep({"dev": {0: [1.0], 1: [2.0], 2: [3.0]}}, setting="t").figure.axes[0].get_xscale() == "linear"
    axes = sweep({"dev": {0: [1.0], 1e-6: [2.0], 1e-4: [3.0], 0.1: [3.0]}}, setting="t").figure.axes[0]
    positions = axes.transAxes.inverted().transform(axes.transData.transform([(x, 1) for x in (0, 1e-6, 1e-4, 0.1)]))
    assert np.diff(positions[:, 0]).min() > 0.1


LONG = [
    f"cosent, learning_rate {number}e-05, weight_decay 0.01, temperature 0.05, pooling first-last"
    for number in range(18)
]


def extent(artist, figure):
    """Left, lower, right and upper end as shares of a figure."""
    figure.draw_without_rendering()
    return artist.get_window_extent().transformed(figure.transFigure.inverted()).extents


@pytest.mark.parametrize("names", [LONG, [f"{name}, {name}" for name in LONG], ["a", "_baseline"], list("abcdefgh")])
def test_every_curve_has_an_entry_and_they_leave_the_axes_their_place(names):
    figure = learning_curves([Curve(name, (1, 2), (0.1, 0.2)) for name in names]).figure
    [legend] = figure.legends
    legend_names = [text.get_text().replace("\n", " ").strip("\u200b") for text in legend.get_texts()]
    assert legend_names == names
    left, low, right, high = extent(figure.axes[0], figure)
    assert right - left > 0.85 and (high - low) * figure.get_figheight() > 3
    ends = extent(legend, figure)
    assert ends[0] >= 0 and ends[1] >= 0 and ends[2] <= 1 and ends[3] < low


def test_titles_of_panels_do_not_meet_and_names_of_a_phone_are_whole():
    many = [evidence(name, np.linspace(0, 1, 40), labels=np.arange(40) % 4) for name in LONG[:5]]
    figure = distribution(many, styles={}, name="x").figure
    figure.draw_without_rendering()
    boxes = [axes.title.get_window_extent() for axes in figure.axes]
    assert not [1 for index, box in enumerate(boxes) for earlier in boxes[:index] if box.overlaps(earlier)]
    scores = [ModelScore(name, 80, 79, 81, 10.0 + index) for index, name in enumerate([*LONG[:3], "_baseline"])]
    figure = overview(scores, styles={}, score="Spearman", name="overview", size=NARROW).figure
    [legend] = figure.legends
    assert len(legend.get_texts()) == 4
    ends = extent(legend, figure)
    assert ends[0] >= 0 and ends[2] <= 1


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: distribution([], styles={}, name="x"), "needs scores with labels"),
        (lambda: distribution([evidence("a", [1.0, 2.0])], styles={}, name="x"), "needs scores with labels"),
        (lambda: plane([], styles={}, dataset="x"), "one model or more"),
        (lambda: heatmap({"a": matrix(41)}, [["x"] * 41]), "2 to 40 sentences; got 1 and 41"),
        (lambda: learning_curves([]), "one step or more"),
        (lambda: learning_curves([Curve("a", (), ())]), "one step or more"),
        (lambda: learning_curves([Curve("a", (1,), (0.1,)), Curve("a", (2,), (0.1,))]), "'a' were never evaluated"),
        (lambda: sweep({"dev": {1.0: [1.0]}}, setting="t"), "two values of 't'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message):
    with pytest.raises(DataError, match=message):
        draw()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"samesense\[report\]"):
        plane([ModelPoint("a", 0.2, -2.0)], styles={}, dataset="x")


def test_the_users_own_style_counts_neither_inside_nor_is_it_changed():
    import matplotlib as mpl

    points = [ModelPoint("a", 0.2, -2.0)]
    usual = svg_text(plane(points, styles={}, dataset="x"))
    with mpl.rc_context({"text.color": "#ff0000", "font.size": 30}):
        assert svg_text(plane(points, styles={}, dataset="x")) == usual
        assert mpl.rcParams["font.size"] == 30


def test_the_middle_of_a_long_name_is_left_out():
    long = "/data/teams/search/models/experiments-of-november/runs/first/model"
    assert shown_name("minilm-l6") == "minilm-l6"
    assert shown_name(long) == f"{long[:14]}…{long[-28:]}"
    drawn = overview([ModelScore(long, 75.8, 73.0, 78.4)], styles={}, score="Spearman", name="overview")
    assert [label.get_text() for label in drawn.figure.axes[0].get_yticklabels()] == [shown_name(long)]
