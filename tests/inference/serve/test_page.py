import re

import numpy as np
import pytest

from samesense.inference.collection.collection import Collection
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import Entry
from samesense.inference.labelling.file import open_labels
from samesense.inference.serve.http.labels import BY
from samesense.inference.serve.http.pages import page_of
from tests.inference.serve.browser import CHROMIUM, browser
from tests.inference.serve.toy import STORE, Toy, calibrated, running, served, store_search, vector

PAGE = page_of("index.html")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
READY = "document.querySelector('#facts')?.textContent.includes('dimensions')"


def test_the_page_needs_nothing_from_elsewhere():
    assert re.findall(r"https?://|//cdn|@import|<link[^>]+href=\"(?!data:)", PAGE) == []


def test_every_field_has_a_label():
    fields = set(re.findall(r"<(?:input|textarea) id=\"(\w+)\"", PAGE))
    assert fields == set(re.findall(r"<label[^>]*? for=\"(\w+)\"", PAGE))
    assert len(fields) == 7


def test_it_is_served_with_a_policy_that_lets_only_its_own_script_run(server):
    status, page, headers = server.call("GET", "/", parsed=False)
    assert (status, page) == (200, PAGE)
    assert re.search(r"script-src 'sha256-[\w+/=]{44}'; style-src 'sha256-", headers["content-security-policy"])
    assert "unsafe" not in headers["content-security-policy"]


@needs_chromium
def test_compare_heatmap_and_search_by_keyboard_in_a_real_browser():
    with running(served(search=store_search), keys=("a key",)) as server, browser() as page:
        page.open(f"http://127.0.0.1:{server.port}/", READY)
        assert page.run("document.querySelector('#facts').textContent") == "toy, 16 dimensions"

        page.run("document.querySelector('#one').focus()")
        page.press("Enter", 13)
        message = page.wait("document.querySelector('#compare .bad')?.textContent")
        assert message == "This server wants a key; send the header 'Authorization: Bearer KEY', or 'api-key: KEY'."
        assert [c.get("text", "") for c in page.complaints()] == [
            "Failed to load resource: the server responded with a status of 401 (Unauthorized)"
        ]
        page.messages.clear()

        page.run("document.querySelector('#key').value = 'a key'; document.querySelector('#other').select()")
        page.run("document.querySelector('#other').focus()")
        page.type("<img src=x onerror=alert(1)>")
        page.press("Enter", 13)
        score = page.wait("document.querySelector('#compare .big')?.textContent")
        expected = float(vector("A man is eating.").astype(float) @ vector("<img src=x onerror=alert(1)>"))
        assert float(score) == pytest.approx(expected, abs=6e-4)

        page.run("document.querySelector('#explain').requestSubmit()")
        page.wait("document.querySelectorAll('#explain p').length == 2")
        words = page.run(
            "[...document.querySelectorAll('#explain p:first-child mark')].map((word) => word.textContent)"
        )
        assert words == ["A", "man", "is", "eating", "."]

        page.run("document.querySelector('#many').focus(); document.querySelector('#many').select()")
        page.type("one\n<b>two</b>\nthree")
        page.press("Enter", 13, modifiers=2)
        page.wait("document.querySelectorAll('#heatmap tbody td').length == 9")
        cells = page.run("[...document.querySelectorAll('#heatmap tbody td')].map((cell) => Number(cell.textContent))")
        rows = [vector(text).astype(float) for text in ("one", "<b>two</b>", "three")]
        assert cells == pytest.approx([float(a @ b) for a in rows for b in rows], abs=6e-3)
        assert page.run("document.querySelectorAll('#heatmap tbody th')[1].textContent") == "2  <b>two</b>"
        colour = "getComputedStyle(document.querySelectorAll('#heatmap tbody td')[{}]).backgroundColor"
        assert page.run(colour.format(0)) != page.run(colour.format(1)), "the policy lets cells be coloured"

        page.run("document.querySelector('#query').focus()")
        page.type(STORE[2])
        page.press("Enter", 13)
        page.wait("document.querySelectorAll('#search li').length == 3")
        assert page.run("document.querySelector('#search li').textContent") == f"{STORE[2]} 1.000"
        assert page.complaints() == []


@needs_chromium
def test_a_calibrated_model_shows_what_its_cosine_means():
    with running(served(calibration=calibrated())) as server, browser() as page:
        page.open(f"http://127.0.0.1:{server.port}/", READY)
        page.run("document.querySelector('#compare').requestSubmit()")
        score = page.wait("document.querySelector('#compare .answer').innerText.match(/calibrated: (.*)/)?.[1]")
        cosine = float(vector("A man is eating.").astype(float) @ vector("Someone has a meal."))
        assert float(score) == pytest.approx(2.5 * (cosine + 1), abs=6e-4)


@needs_chromium
@pytest.mark.parametrize(
    ("served_with", "expected"),
    [
        (
            {"calibration": calibrated(thresholds={"accuracy": -1.0})},
            "the same: from -1.000 on, 90 % of such pairs are right",
        ),
        ({"threshold": 0.999}, "not the same: below 0.999"),
    ],
)
def test_the_page_says_whether_two_sentences_are_the_same_and_how_sure_that_is(served_with, expected):
    with running(served(**served_with)) as server, browser() as page:
        page.open(f"http://127.0.0.1:{server.port}/", READY)
        page.run("document.querySelector('#compare').requestSubmit()")
        assert page.wait("document.querySelector('#compare .answer div:last-child')?.textContent") == expected


@needs_chromium
def test_the_bar_of_a_cosine_begins_at_its_zero_and_a_cross_encoder_has_none():
    cosine = float(vector("A man is eating.").astype(float) @ vector("Someone has a meal."))
    assert cosine < 0
    cross = served(name="cross", score=lambda pairs: np.full(len(pairs), 3.2))
    with running(served(), cross) as server, browser() as page:
        page.open(f"http://127.0.0.1:{server.port}/", "document.querySelectorAll('#models input').length == 2")
        page.run("document.querySelector('#compare').requestSubmit()")
        page.wait("document.querySelectorAll('#compare .big').length == 2")
        assert page.run("document.querySelector('#compare .ends').innerText.split(/\\s+/)") == ["-1", "0", "1"]
        style = "getComputedStyle(document.querySelector('#compare .bar')).getPropertyValue('--{}')"
        start, end = (float(page.run(style.format(name)).strip("%")) for name in ("start", "end"))
        assert (start, end) == pytest.approx((50 + 50 * cosine, 50), abs=0.05)
        assert page.run("document.querySelectorAll('#compare .bar').length") == 1


@needs_chromium
def test_the_heatmap_fits_on_a_phone():
    with running() as server, browser() as page:
        page.send("Emulation.setDeviceMetricsOverride", width=390, height=900, deviceScaleFactor=1, mobile=True)
        page.open(f"http://127.0.0.1:{server.port}/", READY)
        page.run("document.querySelector('#heatmap').requestSubmit()")
        page.wait("document.querySelectorAll('#heatmap tbody td').length >= 25")
        assert page.run("document.documentElement.scrollWidth") == 390
        assert (
            page.run("(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.wide'))")
            == 0
        )


@needs_chromium
def test_without_a_collection_there_is_no_search_and_both_themes_can_be_read():
    contrast = """(() => {
        const parts = (name) => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number);
        const light = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
            .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const [one, other] = [light(parts("color")), light(parts("backgroundColor"))].sort((a, b) => b - a);
        return [(one + 0.05) / (other + 0.05), light(parts("backgroundColor"))];
    })()"""
    with running() as server, browser() as page:
        page.open(f"http://127.0.0.1:{server.port}/", READY)
        assert page.run("getComputedStyle(document.querySelector('#collection')).display") == "none"
        backs = []
        for theme in ("light", "dark"):
            page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
            ratio, back = page.run(contrast)
            assert ratio > 7
            backs.append(back)
        assert backs[0] > 0.8
        assert backs[1] < 0.1


@needs_chromium
def test_models_are_listed_and_compared_on_the_same_texts():
    def letters(pairs):
        return np.array([len(set(first) & set(second)) / 26 for first, second in pairs])

    models = served(name="large"), served(name="cross", score=letters), served(Toy(), name="last", search=store_search)
    with running(*models) as server, browser() as page:
        page.open(f"http://127.0.0.1:{server.port}/", "document.querySelectorAll('#models input').length == 3")
        assert page.run("document.querySelector('#facts').textContent") == "3 models"
        assert page.run("[...document.querySelectorAll('#models label')].map((one) => one.textContent)") == [
            "large, 16 dimensions",
            "cross, cross-encoder",
            "last, 16 dimensions",
        ]

        page.run("document.querySelector('#compare').requestSubmit()")
        page.wait("document.querySelectorAll('#compare .big').length == 2")
        assert page.run("[...document.querySelectorAll('#compare h3')].map((one) => one.textContent)") == [
            "large",
            "cross",
        ]
        texts = "A man is eating.", "Someone has a meal."
        scores = page.run("[...document.querySelectorAll('#compare .big')].map((one) => Number(one.textContent))")
        cosine = float(vector(texts[0]).astype(float) @ vector(texts[1]))
        assert scores == pytest.approx([cosine, letters([texts])[0]], abs=6e-4)

        for form, count in (("explain", "p"), ("heatmap", "table")):
            page.run(f"document.querySelector('#{form}').requestSubmit()")
            page.wait(f"document.querySelectorAll('#{form} .two {count}').length == {4 if count == 'p' else 2}")

        page.run("document.querySelectorAll('#models input').forEach((box) => { box.checked = false; })")
        page.run("document.querySelector('#compare').requestSubmit()")
        assert page.wait("document.querySelector('#compare .bad')?.textContent") == "Choose a model above."

        page.run("document.querySelector('#query').value = 'violin'")
        page.run("document.querySelector('#search').requestSubmit()")
        page.wait("document.querySelectorAll('#search li').length == 3")
        assert page.complaints() == []


@needs_chromium
def test_the_page_searches_by_words_too(tmp_path):
    embedder = Embedder(Toy(), identity="toy")
    collection = Collection.build(tmp_path / "store", [Entry(text) for text in STORE], embedder)
    with running(served(search=collection)) as server, browser() as page:
        page.open(f"http://127.0.0.1:{server.port}/", READY)
        page.run("document.querySelector('#query').value = 'late train'; document.querySelector('#hybrid').click()")
        page.run("document.querySelector('#search').requestSubmit()")
        (best, *_) = collection.query(["late train"], embedder, hybrid=True)[0]
        hit = page.wait("document.querySelector('#search li')?.textContent")
        assert hit == f"{best.text} {best.score:.3f}"


@needs_chromium
def test_the_pair_that_is_compared_gets_a_label(tmp_path):
    with open_labels(tmp_path / "labels.tsv", BY) as labels, running(labels=labels) as server, browser() as page:
        page.open(f"http://127.0.0.1:{server.port}/", READY)
        titles = page.run("[...document.querySelectorAll('#labels button')].map((one) => one.title)")
        assert (len(titles), titles[1]) == (6, "they mean nearly the same; only unimportant details differ")
        page.run("document.querySelectorAll('#labels button')[1].click()")
        page.wait("document.querySelector('#label-status').textContent.endsWith('1 labels are kept')")
        assert (tmp_path / "labels.tsv").read_text().splitlines()[1] == (
            "A man is eating.\tSomeone has a meal.\t4\tperson, 0 to 5"
        )
        assert page.complaints() == []
        page.run("document.querySelectorAll('#labels button')[0].click()")
        complaint = page.wait("document.querySelector('#label-status .bad')?.textContent")
        assert complaint == "This pair has a label already."


def test_labels_are_taken_from_the_page_alone_and_refused_where_they_cannot_be_kept(tmp_path):
    label = {"text1": "one", "text2": "two", "score": 3}
    with running() as server:
        assert server.post("/label", label)[0] == 404
        assert server.call("GET", "/health")[1]["labels"] is None
    with open_labels(tmp_path / "labels.tsv", BY) as labels, running(labels=labels, keys=("a key",)) as server:
        origin, key = f"http://127.0.0.1:{server.port}", {"Authorization": "Bearer a key"}
        assert server.post("/label", label, headers={"Origin": origin})[0] == 401
        assert server.post("/label", label, headers={"Origin": "http://other.example", **key})[0] == 403
        for body in ({**label, "score": 6}, {**label, "text1": " "}, {**label, "text1": "a\tb"}):
            assert server.post("/label", body, headers=key)[0] == 400
        assert server.post("/label", label, headers={"Origin": origin, **key})[1] == {"object": "label", "labels": 1}
        assert server.post("/label", {**label, "text1": "two", "text2": "one"}, headers=key)[0] == 409
    assert (tmp_path / "labels.tsv").read_text().splitlines()[1:] == ["one\ttwo\t3\tperson, 0 to 5"]
