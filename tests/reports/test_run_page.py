"""The page of a run: the verdict first, escaped texts, every figure, and a note in place of a missing one."""

import re
from dataclasses import replace

import numpy as np
import pytest

from samesense.errors import MissingExtraError
from samesense.reports.figures import plot
from samesense.reports.figures.curves import Curve
from samesense.reports.run_page import RunPage, run_page, title_of
from samesense.reports.run_verdict import Curve as LearningCurve
from samesense.reports.run_verdict import Finding, Verdict
from samesense.reports.store import Run
from samesense.types import Evidence
from tests.inference.serve.browser import CHROMIUM, browser

pytestmark = pytest.mark.usefixtures("drawn")

LABELS = np.tile([0.0, 1.0, 2.0], 20)
PAIRS = [(f"<b>text</b> {row}", f"other & {row}") for row in range(60)]
FINDING = Finding(
    role="test",
    dataset="test.tsv",
    n=60,
    metric="spearman",
    start=0.5,
    end=0.4,
    low=-0.2,
    high=-0.05,
    p_value=0.001,
    start_low=0.45,
    start_high=0.55,
    end_low=0.3,
    end_high=0.5,
)
RECORD = {
    "method": "cosent",
    "data": {"train": {"source": "train.tsv", "rows": 9}},
    "settings": {"seed": 1, "dev": None, "model": "models/small"},
    "versions": {"samesense": "1.2", "torch": "3.4", "numpy": "5"},
    "started": "2026-02-03T04:05:06Z",
}


def evidence(model, seed):
    values = LABELS / 3 + 0.3 * np.random.default_rng(seed).normal(size=60)
    return Evidence(
        task="sts",
        dataset="test.tsv",
        metric="spearman",
        model=model,
        statistic="spearman",
        values=values,
        labels=LABELS,
        examples=PAIRS,
    )


@pytest.fixture
def page():
    band = [(rows, 0.5, 0.4, 0.6) for rows in (30.0, 60.0, 240.0)]
    points = [(240, 0.5), (30, 0.4), (60, 0.45)]
    learning_curve = LearningCurve(
        rows=240, points=points, gain=0.01, low=-0.01, high=0.03, band=band, dataset="test.tsv"
    )
    history = Run("run", {}, Curve("run", (0, 5, 10), (0.5, 0.6, 0.4)), [], Curve("run", (5, 10), (2.0, 1.0)))
    cosines = np.random.default_rng(0).uniform(-1, 1, size=(2, 300))
    return RunPage(
        name="a <run>",
        verdict=Verdict(task=FINDING, advice=("take <less>",), curve=learning_curve),
        history=history,
        before=[evidence("start", 0)],
        after=[evidence("trained", 1)],
        cones=(cosines[0], cosines[1]),
        record=RECORD,
    )


def words(html):
    return re.sub(r"\s+", " ", re.sub(r"<svg.*?</svg>|<style.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL))


def test_the_verdict_comes_first_and_every_part_is_there(page):
    html = run_page(page)
    page_words = words(html)
    order = [
        "a &lt;run&gt;: small trained on train.tsv by cosent",
        "2026-02-03, samesense 1.2, torch 3.4",
        "Training did harm on test.tsv: Spearman 50.00 to 40.00, -10.00 (95 % interval -20.00 to -5.00)",
        "take &lt;less&gt;",
        "Paired bootstrap",
        "Worst errors",
        "Spearman on dev",
        "Scores by label",
        "How close random texts are, before and after",
        "Learning curve: twice the data (480)",
        "train.tsv",
    ]
    assert sorted(order, key=page_words.rindex) == order
    assert html.count("<svg") == 7 and "<b>" not in html and "&lt;b&gt;text&lt;/b&gt;" in html
    assert html == run_page(page)


def opening(html):
    return html[html.index('<section id="answer">') : html.index("<nav>")]


def lines_of(svg):
    return [re.sub(r"\s+", " ", text).strip() for text in re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)]


def test_the_page_opens_with_the_start_and_the_trained_model_on_every_set(page):
    guard = replace(FINDING, role="guard", dataset="guard of 中文.tsv", start_low=None, start_high=None)
    top = opening(run_page(replace(page, verdict=replace(page.verdict, guards=(guard,)))))
    answer, desk, phone, rows = (top.index(mark) for mark in ('"answer"', '"for-desk"', '"for-phone"', "<table"))
    assert answer < desk < phone < rows and top.count("<svg") == 2
    written = lines_of(top[desk:phone])
    assert {"test.tsv: worse, -10.00 (-20.00 to -5.00)", "Spearman x100"} <= {*written}
    assert [written.count(name) for name in ("start", "trained")] == [2, 2]
    assert "test.tsv:" in lines_of(top[phone:rows]) and "worse, -10.00 (-20.00 to -5.00)" in lines_of(top[phone:rows])
    assert '<td title="95 % interval 45.00 to 55.00">50.00</td>' in top  # and for readers who cannot see the figure
    assert top.count("95 % interval 30.00 to 50.00") == 2 and "<td>50.00</td>" in top


def test_without_a_verdict_the_page_opens_with_the_dev_curve_and_has_it_once(page):
    html = run_page(replace(page, verdict=Verdict(reason="nothing to compare on")))
    assert opening(html).count("<svg") == 1 and 'aria-label="Spearman on dev.' in opening(html)
    assert html.count('aria-label="Spearman on dev.') == html.count('aria-label="Training loss') == 1
    blank = replace(page, verdict=Verdict(reason="none"), history=Run("run", {}, None, []))
    assert "<svg" not in opening(run_page(blank))


def test_a_page_holds_what_there_is(page):
    blank = Run("run", {}, None, [])
    verdict = Verdict(reason="nothing to compare on")
    empty = replace(page, verdict=verdict, history=blank, before=(), after=(), cones=(None, None))
    page_words = words(run_page(empty))
    assert "No verdict: nothing to compare on." in page_words and "The run" in page_words
    assert not any(heading in page_words for heading in ("Training", "Scores by label", "Worst errors", "How close"))


def test_without_matplotlib_there_are_words(page, monkeypatch):
    def lacks():
        raise MissingExtraError("matplotlib", "report")

    monkeypatch.setattr(plot, "need_matplotlib", lacks)
    html = run_page(page)
    assert "<svg" not in html and "No figure: " in html and "samesense[report]" in html
    assert "Training did harm" in html and "&lt;b&gt;text" in html


def test_words_are_shaded_by_what_they_add_to_the_score(page):
    pair = PAIRS[0]
    marked = ([("<b>", 0.0), ("text", 0.5), ("</b> 0", 0.0)], [("other", -0.25), (" ", 0.0), ("&", 0.01), (" 0", 0.0)])
    values = np.r_[9.0, evidence("trained", 1).values[1:]]  # the first pair, of label 0, is placed highest
    html = run_page(replace(page, after=[replace(page.after[0], values=values)], marked={pair: marked}))
    assert '<span>&lt;b&gt;<mark style="--share:1.00">text</mark>&lt;/b&gt; 0</span>' in html
    assert '<span><mark style="--share:0.50" class="less">other</mark> &amp; 0</span>' in html
    assert "The stronger the colour of a word" in words(html) and "The stronger the colour of a word" not in words(
        run_page(page)
    )


def test_terms_of_the_loss_are_drawn_and_the_ranking_beside_what_equal_scores_cost(page):
    terms = {
        "contrast": Curve("run", (5, 10), (0.1, 0.02)),
        "rank": Curve("run", (5, 10), (210.0, 190.0)),
        "rank_if_equal": Curve("run", (5, 10), (205.2, 205.2)),
    }
    page_words = words(run_page(replace(page, history=replace(page.history, terms=terms))))
    assert "The term contrast of the loss." in page_words
    assert "The term rank of the loss. The dashed line is its cost if all scores are equal" in page_words
    assert page_words.count("The term ") == 2


NEEDED = """
[...document.querySelectorAll("*")].filter(
  (part) => part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflowX === "auto" && part.tabIndex < 0
).length
"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1300, 390])
def test_the_page_fits_its_window_and_a_keyboard_scrolls_what_does_not(page, width, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(run_page(page), encoding="utf-8")
    with browser() as tab:
        tab.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        tab.open(path.as_uri(), "document.querySelector('#run') !== null")
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.run(NEEDED) == 0
        shown = "getComputedStyle(document.querySelector('.cases thead')).display"
        assert (tab.run(shown) == "none") == (width == 390)
        assert tab.complaints() == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/data/of/mine/pairs.tsv", "pairs.tsv"),
        ("a/first.tsv + b/second.csv", "first.tsv + second.csv"),
        ("owner/set", "owner/set"),
    ],
)
def test_the_title_names_data_without_their_folders(page, source, name):
    record = RECORD | {"data": {"train": {"source": source, "rows": 9}}}
    title = title_of(replace(page, record=record))
    assert title == f"a <run>: small trained on {name} by cosent"
