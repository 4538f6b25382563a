import re

import numpy as np
import pytest

from samesense.errors import ConfigError, DataError, OutputError
from samesense.reports import maps
from samesense.reports.maps import check_mapped, holding_map, map_clusters, map_drift, map_duplicates, save_map
from samesense.reports.page import document
from samesense.reports.projection import principal_components, project
from samesense.reports.text_map import LONGEST, READING, Category, TextMap, text_map_page
from tests.inference.serve.browser import CHROMIUM, browser

SCRIPT = "<script>document.title = 'taken'</script>"
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def blobs(count, groups=3, dim=8):
    """Unit rows around as many directions, and the direction of each."""
    random = np.random.default_rng(0)
    group_of = np.arange(count) % groups
    return unit(3 * np.eye(groups, dim)[group_of] + 0.3 * random.normal(size=(count, dim))), group_of


def toy_map(**changes):
    fields = {
        "title": "A & B",
        "lead": "What is seen.",
        "notes": ["All 4 are shown."],
        "views": {"model": np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])},
        "texts": [SCRIPT, 'second "line"\nof two', "t" * (LONGEST + 1), "last"],
        "details": ["kept", "removed, cosine 0.930", "kept", "kept"],
        "categories": [Category("kept"), Category("removed", 2, "R")],
        "category_of": [0, 1, 0, 0],
        "group_of": [0, 0, -1, -1],
        "links": [(1, 0)],
    }
    return TextMap(**(fields | changes))


def test_a_page_holds_every_text_escaped_and_runs_its_own_script_alone():
    page = text_map_page(toy_map())
    assert SCRIPT not in page and "&lt;script&gt;document.title = &#x27;taken&#x27;&lt;/script&gt;" in page
    assert page.count("<script>") == 1 and page.count('class="point series-0" d=') == 4  # one is in the legend
    assert "t" * LONGEST + "…" in page and "t" * (LONGEST + 1) not in page
    assert f"the first {LONGEST} characters" in page and READING in page
    assert "<title>removed, cosine 0.930\nsecond &quot;line&quot;\nof two</title>" in page
    assert re.search(r"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-[\w+/]{43}='", page)
    assert re.findall(r"(?:src|href)=|@import|https?://(?!www\.w3\.org/2000/svg)", page) == []
    assert text_map_page(toy_map()) == page
    assert "script-src" not in document("t", toy_map().lead)


def test_places_keep_their_proportions_and_fill_the_map():
    page = text_map_page(toy_map(views={"m": np.array([[0.0, 0], [10, 0], [0, 5], [10, 5]])}))
    places = re.findall(r'<path class="point [^"]*" d="M([\d.]+) ([\d.]+)h0" data-group', page)
    assert {(float(x), float(y)) for x, y in places} == {(30, 265), (970, 265), (30, 735), (970, 735)}
    assert text_map_page(toy_map(views={"m": np.zeros((4, 2))})).count('d="M500.0 500.0h0"') == 4


def test_near_rows_are_near_and_the_picture_is_the_same_each_time():
    vectors, group_of = blobs(60)
    places = project(vectors)
    np.testing.assert_array_equal(places, project(vectors))
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    assert (group_of[distances.argmin(axis=1)] == group_of).all()
    start = np.random.default_rng(1).normal(size=(60, 2))
    assert not np.allclose(project(vectors, start), places)


@pytest.mark.parametrize("vectors", [np.ones((5, 3)), np.ones((5, 1)), np.array([[1.0], [1], [-1], [-1], [1]])])
def test_equal_vectors_and_one_dimension_have_places(vectors):
    places = project(unit(vectors))
    assert places.shape == (len(vectors), 2) and np.isfinite(places).all()


def test_the_start_has_fixed_signs():
    components = principal_components(blobs(20)[0])
    assert (components[np.abs(components).argmax(axis=0), [0, 1]] > 0).all()


def duplicates(kept_by, **changes):
    kept_by = np.array(kept_by)
    count = len(kept_by)
    fields = {
        "texts": [f"text {number}" for number in range(count)],
        "copies": np.ones(count, dtype=np.int64),
        "kept_by": kept_by,
        "scores": np.where(kept_by == np.arange(count), 1.0, 0.93),
        "vectors": blobs(count)[0],
    }
    return map_duplicates(**(fields | changes), summary="3 of 6 texts kept", model="mini")


def test_duplicates_are_linked_to_what_is_kept():
    text_map = duplicates([0, 0, 2, 3, 3, 3], copies=np.array([1, 1, 4, 1, 1, 1]))
    assert text_map.category_of == [1, 2, 0, 1, 2, 2]
    assert text_map.links == [(1, 0), (4, 3), (5, 3)]
    assert text_map.group_of == [0, 0, -1, 3, 3, 3]
    assert text_map.details[1:4] == [
        "removed, cosine 0.930 with 'text 0'",
        "kept, 4 equal rows",
        "kept, others like it: 2",
    ]
    assert text_map.notes == ["All 6 different texts are shown."]
    assert text_map.lead.startswith("3 of 6 texts kept. A line leads")
    assert text_map.tables[0].rows == [["text 3", "3", "text 4"], ["text 0", "2", "text 1"]]
    assert duplicates(range(5)).tables == []


def test_a_sample_holds_the_largest_groups_and_is_stated(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(maps, "MOST", 12)
    kept_by = np.arange(40)
    kept_by[30:34] = 29
    kept_by[10] = 9
    text_map = duplicates(kept_by)
    assert len(text_map.texts) == 12
    assert {f"text {number}" for number in range(29, 34)} <= set(text_map.texts)
    assert text_map.notes == [
        "Shown are 12 of 40 different texts: 6 of the largest groups, and 6 others at random, the same each time."
    ]
    assert text_map.texts == duplicates(kept_by).texts
    with caplog.at_level("INFO", "samesense"):
        save_map(text_map, tmp_path / "map.html")
    assert caplog.messages == [f"written: {tmp_path / 'map.html'}, a map. {text_map.notes[0]}"]
    assert text_map.notes[0] in (tmp_path / "map.html").read_text(encoding="utf-8")
    assert len(duplicates(np.zeros(40, dtype=np.int64)).texts) == 12  # a group of all


def drifted(count, total=None):
    vectors, _ = blobs(count)
    overlaps = np.linspace(0, 1, count)
    texts = [f"text {number}" for number in range(count)]
    return map_drift(
        texts,
        (vectors, vectors[:, :4]),
        overlaps,
        (texts[::-1], texts),
        names=("old", "new"),
        summary="half is kept",
        total=total or count,
        top=4,
    )


def test_drift_is_shown_before_and_after():
    text_map = drifted(5, total=9)
    assert list(text_map.views) == ["before: old", "after: new"]
    assert text_map.category_of == [2, 1, 0, 0, 0]
    assert text_map.details[1] == "1 of its 4 nearest texts are the same; nearest before: 'text 3', after: 'text 1'"
    assert text_map.notes[0] == "Shown are 5 of 9 different texts, at random, the same each time."
    assert [row[0] for row in text_map.tables[0].rows] == ["text 0", "text 1", "text 2", "text 3"]
    page = text_map_page(text_map)
    assert page.count("<svg") == 3 + 2 and "before: old" in page


def test_a_sample_of_queries_is_stated(monkeypatch):
    monkeypatch.setattr(maps, "MOST", 6)
    text_map = drifted(9)
    assert len(text_map.texts) == len(text_map.views["after: new"]) == 6
    assert text_map.notes[0] == "Shown are 6 of 9 different texts, at random, the same each time."


def test_clusters_are_numbered_by_size_and_named_by_their_middle():
    vectors, _ = blobs(31)
    texts = [f"text {number}" for number in range(31)]
    text_map = map_clusters(texts, ["id 0", *[""] * 30], vectors, name="news.index", model="mini", total=31)
    sizes = [int(row[1]) for row in text_map.tables[0].rows]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) == 31 and len(sizes) == 6
    assert [category.label for category in text_map.categories] == list("123456")
    assert text_map.categories[0].name.endswith(f" ({sizes[0]})")
    assert text_map.details[0] == f"cluster {text_map.category_of[0] + 1}, id 0"
    assert text_map.lead.startswith("31 texts in 6 clusters by mini.")
    few = map_clusters(["a"] * 5 + ["b"], [""] * 6, blobs(6)[0], name="i", model="m", total=70)
    assert (len(few.categories), few.notes) == (1, ["Shown are 6 of 70 texts, at random, the same each time."])


def test_what_cannot_be_mapped_is_refused(tmp_path):
    for name in ("map.png", "map", "-"):
        with pytest.raises(ConfigError, match=r"ends in \.html or \.htm; received"), holding_map(name):
            pass
    read = tmp_path / "read.html"
    read.write_text("text")
    with pytest.raises(OutputError, match="is read here"), holding_map(read, [read]):
        pass
    with pytest.raises(DataError, match="at least 5 different texts; received 4"):
        check_mapped(["a", "b", "c", "d", "a"])


@needs_chromium
def test_texts_are_shown_by_keyboard_by_pointer_and_by_a_search_in_a_real_browser(tmp_path):
    (tmp_path / "map.html").write_text(text_map_page(toy_map()), encoding="utf-8")
    shown = "document.getElementById('shown').innerText"
    with browser() as page:
        page.send("Emulation.setDeviceMetricsOverride", width=390, height=900, deviceScaleFactor=1, mobile=True)
        page.open((tmp_path / "map.html").as_uri(), "document.querySelector('.map .point')?.childNodes.length === 0")
        assert page.run("document.documentElement.scrollWidth") == 390
        assert page.run("document.title") == "A & B"
        page.run("document.querySelector('.map').focus()")
        page.press("ArrowRight", 39)
        assert page.wait(f"{shown}.startsWith('<script>') && {shown}") == f"{SCRIPT}\nkept"
        page.press("ArrowRight", 39)
        assert page.run(shown) == 'second "line"\nof two\nremoved, cosine 0.930'
        assert page.run("document.querySelectorAll('.point.lit').length") == 2
        assert page.run("document.querySelectorAll('.link.lit').length") == 1
        page.run("document.querySelector('.map').scrollIntoView()")
        x, y, width = page.run(
            "(({ x, y, width }) => [x, y, width])(document.querySelector('.map').getBoundingClientRect())"
        )
        for corner in (0.9, 0.85):
            page.send("Input.dispatchMouseEvent", type="mouseMoved", x=x + corner * width, y=y + corner * width)
        assert page.run(shown) == "last\nkept"
        page.run("document.getElementById('find').focus()")
        page.type("LINE")
        assert page.run(shown) == 'second "line"\nof two\nremoved, cosine 0.930'
        page.run("document.getElementById('find').select()")
        page.type("t")
        assert page.run(shown) == "4 of 4 texts have it"
        assert page.complaints() == []
