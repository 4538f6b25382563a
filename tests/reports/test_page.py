import re
from html.parser import HTMLParser

import numpy as np
import pytest

from samesense.evaluation.run import EvaluatedModel, Failure
from samesense.reports.content import Content
from samesense.reports.illustrate import distributions, heatmaps, model_styles, openings, planes
from samesense.reports.markup import element, markup, table
from samesense.reports.page import html_page
from samesense.reports.significance import paired_comparisons
from samesense.reports.standing import rank
from tests.reports.made import evidence, result, scored

pytest.importorskip("matplotlib")
VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Follows the tags, and keeps the text of every element of a class or kind."""

    def __init__(self, page):
        super().__init__()
        self.open, self.cells, self.text, self.attributes = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append((dict(attrs), ""))

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.cells and {"td", "th"} & set(self.open):
            attrs, before = self.cells[-1]
            self.cells[-1] = (attrs, before + data)


def content(name="<b>bold</b> & $x$"):
    results, behind = scored(200)
    comparisons, problems = paired_comparisons(behind, results)
    results[0] = result("a", results[0].value, low=results[0].value - 0.05, high=results[0].value + 0.05)
    results += [
        result(model_name, value, task="geometry", metric=metric, dataset="stsb.dev")
        for model_name, value in (("a", 0.2), ("b", 0.3))
        for metric in ("alignment", "uniformity")
    ]
    styles = model_styles("abc")
    ranking = rank(behind, [row for row in results if row.task == "sts"])
    return Content(
        models=[
            EvaluatedModel(
                name=model_name,
                spec=f"/models/{model_name}",
                protocol="cosine",
                texts=99,
                encoding=2.0,
                seconds={"sts": 1.25},
            )
            for model_name in "abc"
        ],
        results=results,
        evidence=behind,
        comparisons=comparisons,
        ranking=ranking,
        opening=openings(ranking, styles),
        failures=[Failure(model=name, task="sts", dataset="one.test", reason="NaN in <row> 3")],
        notes=["Not found: sts16.", *problems],
        general=[*planes(results, [], styles), *heatmaps({"a": behind[0].values[:4]}, [["x <1>", "y"]])],
        by_dataset=distributions(behind, styles),
        environment={"versions": "python 3"},
    )


def test_averages_of_two_languages_stand_side_by_side_behind_a_name():
    rows = [
        result(model_name, 0.2, task="geometry", metric=metric, dataset="stsb.dev")
        for model_name in "ab"
        for metric in ("alignment", "uniformity")
    ]
    means = [
        result("a", 0.8, dataset="sts-avg"),
        result("a", 0.4, dataset="sts-zh-avg"),
        result("b", 0.5, dataset="sts-avg", seed=1),
        result("b", 0.7, dataset="sts-avg", seed=2),
    ]
    [drawn] = planes(rows, means, model_styles("ab"))
    written = " ".join(text.get_text() for text in drawn.figure.axes[0].texts)
    assert "80.0 / 40.0" in written
    assert "60.0 / -" in written
    assert drawn.caption.endswith(" Behind each name: sts-avg / sts-zh-avg, Spearman x100.")
    assert "Behind" not in planes(rows, [], model_styles("ab"))[0].caption


def test_the_seed_whose_similarities_are_drawn_is_named():
    labels = np.arange(40.0) % 4
    behind = [evidence("a", labels + seed, labels, seed=seed) for seed in (7, 8)]
    [[drawn]] = distributions([evidence("raw", labels, labels), *behind], model_styles("ab")).values()
    assert drawn.caption.endswith(" Trained models: seed 7.")


@pytest.fixture(scope="module")
def page():
    return html_page(content())


def test_the_page_needs_nothing_and_runs_nothing(page):
    assert not re.search(r"https?:|//[a-z]|@import|<script|<link|<img|url\((?!#)", page)
    assert "default-src 'none'" in page
    assert not [tag for tag, name, _ in Reader(page).attributes if name.startswith("on") or name in ("src", "srcset")]
    assert all(value.startswith("#") for tag, name, value in Reader(page).attributes if name == "href")


def test_tags_match_and_identifiers_are_unique_and_links_lead_somewhere(page):
    reader = Reader(page)
    assert reader.open == []
    identifiers = [value for _, name, value in reader.attributes if name == "id"]
    assert len(set(identifiers)) == len(identifiers)
    assert {value[1:] for _, name, value in reader.attributes if name == "href"} <= set(identifiers)


def test_the_best_and_what_is_as_good_are_marked_and_explained(page):
    cells = Reader(page).cells
    marked = [(attrs, text) for attrs, text in cells if "best" in attrs.get("class", "").split()]
    assert len(marked) == 1
    alike = [attrs for attrs, text in cells if text.endswith("≈")]
    assert len(alike) == 1
    assert re.match(r"\d\.\d\d below a, 95 % interval \d\.\d\d below to \d\.\d\d above, adj", alike[0]["title"])
    assert "adjusted p = " in alike[0]["title"]
    assert any("95 % interval [" in attrs.get("title", "") for attrs, _ in cells)


def test_names_cannot_become_markup(page):
    assert "<b>bold</b> &amp;" not in page
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; $x$" in page
    assert "NaN in &lt;row&gt; 3" in page
    assert "x &lt;1&gt;" in page


def test_undefined_is_said_with_its_reason_and_what_was_left_out_too(page):
    text = "".join(Reader(page).text)
    assert "undefined" in [text for _, text in Reader(page).cells]
    assert "sts, one.test, <b>bold</b> & $x$: undefined. NaN in <row> 3" in text
    assert "Not found: sts16." in text


def test_times_add_up(page):
    cells = [text for _, text in Reader(page).cells]
    index = cells.index("together, s")
    assert cells[index + 1 : index + 6] == ["a", "99", "2.0", "1.2", "3.2"]


def test_every_figure_has_a_caption_and_a_name_for_those_who_do_not_see_it(page):
    figures = page.count('<figure tabindex="0">')
    assert figures == page.count("<figcaption>") == page.count('<svg role="img" aria-label="') == 5


def test_light_and_dark_are_both_given(page):
    assert "prefers-color-scheme: dark" in page
    used = set(re.findall(r"var\((--[\w-]+)\)", page)) - {"--share"}  # set in the style attribute of a word
    defined = re.findall(r"(--[\w-]+): #", page)
    assert used <= set(defined)
    assert all(defined.count(name) == 2 for name in used)


def test_the_page_is_the_same_each_time(page, drawn):
    assert html_page(content()) == page


def test_the_page_opens_with_the_answer_and_its_figure(page):
    answer = page.index('<p class="answer">a has the highest score of 3 models: Spearman ')
    desk = page.index('<div class="for-desk"><figure tabindex="0">')
    assert answer < desk < page.index('<div class="for-phone"><figure tabindex="0">')
    assert page.index('<div class="for-phone">') < page.index("<nav>")
    assert "It cannot be told apart from b (" in page[answer:]


def test_differences_and_distributions_stand_open_and_without_signs(page):
    folded = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    assert 'aria-label="one.test: distribution' in folded
    assert "</th><td>1.28 below a</td>" in page


def test_cases_and_every_row_are_there(page):
    text = "".join(Reader(page).text)
    assert "a against the gold" in text
    assert "a against b" in text
    assert "cosine of a" in text


def test_an_empty_report_says_so():
    text = "".join(Reader(html_page(Content(models=[], results=[]))).text)
    assert "Everything was run, and everything is defined." in text


def test_markup_is_escaped_once():
    assert element("p", "a<b", element("i", "c&d"), class_="x\"'") == (
        '<p class="x&quot;&#x27;">a&lt;b<i>c&amp;d</i></p>'
    )
    assert markup(markup("<")) == "&lt;"
    assert '<th scope="row">1</th><td>&lt;</td>' in table(["a", "b"], [[1, "<"]])
