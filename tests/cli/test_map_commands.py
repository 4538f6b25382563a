"""``dedup --map``, ``drift --map`` and ``index map``: a page beside the usual output, and misuse before the work."""

import json

import pytest

import samesense

TEXTS = [
    "a man eats",
    "a man eats a meal",
    "the dog barks",
    "the dog barks at night",
    "rain falls",
    "<script>x</script>",
]
WORDS = "man eats meal dog barks night rain falls a the at <script>x</script>".split()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with texts and the vectors of their words."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    for name, shift in (("words", 0), ("other", 2)):
        rows = [
            " ".join([word, *(str(float((position + shift) % 9 == number % 5)) for position in range(9))])
            for number, word in enumerate(WORDS)
        ]
        (tmp_path / f"{name}.vec").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return tmp_path


def files(folder):
    return {path.name for path in folder.iterdir()}


def test_dedup_draws_a_map(run, here):
    before = files(here)
    command = ("dedup", "texts.txt", "--model", "words:words.vec", "--threshold", 0.7)
    code, out, err = run(*command, "--map", "map.html")
    assert code == 0, err
    assert out == run(*command)[1], "the rows that are kept are the same with a map"
    assert "written: map.html, a map. All 6 different texts are shown." in err
    page = (here / "map.html").read_text(encoding="utf-8")
    assert "Near-duplicates among 6 texts by words:words.vec" in page
    assert "&lt;script&gt;x&lt;/script&gt;" in page and "<script>x" not in page
    assert files(here) == before | {"map.html"}


def test_drift_draws_two_maps(run, here):
    command = ("drift", "words:words.vec", "words:other.vec", "--texts", "texts.txt", "--top", 2, "--json")
    code, out, err = run(*command, "--map", "map.html")
    assert code == 0, err
    assert json.loads(out) == json.loads(run(*command)[1])
    page = (here / "map.html").read_text(encoding="utf-8")
    assert "before: words:words.vec" in page and "after: words:other.vec" in page


def test_index_draws_a_map_without_its_model(run, here):
    assert run("index", "build", "my.index", "texts.txt", "--model", "words:words.vec")[0] == 0
    (here / "words.vec").unlink()
    code, out, err = run("index", "map", "my.index", "--output", "map.html")
    assert (code, out) == (0, ""), err
    assert "written: map.html, a map. All 6 texts are shown." in err
    page = (here / "map.html").read_text(encoding="utf-8")
    assert "Map of my.index" in page and "cluster 1, id 0" in page
    code, _, err = run("index", "map", "my.index", "--output", "map.html", "--where", "topic = 'sport'")
    assert (code, "topic" in err) == (2, True)


def test_a_map_of_a_part_of_a_collection(here):
    rows = [{"text": text, "topic": "a" if number else "b"} for number, text in enumerate(TEXTS)]
    (here / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    index = samesense.build_index("rows.index", "rows.jsonl", model="words:words.vec")
    index.map("map.html", where="topic = 'a'")
    page = (here / "map.html").read_text(encoding="utf-8")
    assert "All 5 texts are shown." in page and "id 1, topic a" in page and TEXTS[1] in page
    assert f"\n{TEXTS[0]}</title>" not in page


def test_a_collection_too_small_for_a_map_is_told_what_it_can_do(run, here):
    (here / "four.txt").write_text("\n".join(TEXTS[:4]), encoding="utf-8")
    assert run("index", "build", "four.index", "four.txt", "--model", "words:words.vec")[0] == 0
    command = ("index", "map", "four.index", "--output", "map.html")
    code, _, err = run(*command)
    assert code == 2
    assert "A map takes at least 5 different texts; received 4. Add texts to the collection." in err
    code, _, err = run(*command, "--where", "id < 2")
    assert (code, "--map" in err) == (2, False)


def test_misuse_is_code_2_and_writes_nothing(run, here):
    (here / "few.txt").write_text("one\ntwo\none\n", encoding="utf-8")
    assert run("index", "build", "my.index", "few.txt", "--model", "words:words.vec")[0] in (0, 2)
    before = files(here)
    model = ("--model", "words:words.vec")
    drift = ("drift", "words:words.vec", "words:other.vec")
    for command, message in (
        (("dedup", "texts.txt", *model, "--map", "map.png"), "ends in .html or .htm; received 'map.png'"),
        (
            ("dedup", "few.txt", *model, "--map", "map.html"),
            "at least 5 different texts; received 2. Give more, or no --map",
        ),
        (("dedup", "texts.txt", *model, "--map", "texts.txt/map.html"), "is a file"),
        ((*drift, "--texts", "texts.txt", "--top", 2, "--map", "map.png"), "ends in .html"),
        ((*drift, "--texts", "few.txt", "--map", "map.html"), "at least 5 different texts; received 2"),
        (("index", "map", "no.index", "--output", "map.html"), "no.index"),
    ):
        code, out, err = run(*command)
        assert (code, out) == (2, ""), command
        assert message in err, err
    assert files(here) == before


def test_a_file_that_is_read_is_not_replaced_by_a_map(run, here):
    (here / "pairs.html").write_text("score\tsentence1\tsentence2\n1\ta\tb\n", encoding="utf-8")
    command = ("dedup", "texts.txt", "--model", "words:words.vec", "--pairs", "pairs.html", "--map", "pairs.html")
    code, out, err = run(*command)
    assert (code, out) == (2, "")
    assert "is read here" in err
    assert (here / "pairs.html").read_text(encoding="utf-8").startswith("score")
