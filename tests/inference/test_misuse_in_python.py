"""Functions called from Python refuse what the command line refuses, and take texts as people hold them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

import samesense
from samesense.errors import ConfigError, DataError, ModelError
from samesense.inference.collection.collection import Collection
from samesense.inference.collection.conditions import condition
from samesense.inference.collection.entries import Entry, read_entries
from samesense.inference.serve.tokens import tokens_of
from tests.inference.made_vectors import embedder

TEXTS = ["苹果", "水果", "a dog", "a red car"]


@pytest.fixture
def model(tiny_trunk):
    return samesense.load(str(tiny_trunk), precision="float32")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: samesense.compare("default", []), "`models` is a list; received 'default'. Put it in brackets, as in"),
        (lambda: samesense.compare(len, []), "`models` is a list; received builtin_function_or_method."),
        (lambda: samesense.compare(["default"], [], runs="runs/a"), "`runs` is a list; received 'runs/a'."),
        (lambda: samesense.race([], output="r", models="default"), "`models` is a list; received 'default'."),
        (lambda: samesense.sweep("s.toml", output="s", datasets="sts"), "`datasets` is a list; received 'sts'."),
        (lambda: samesense.app("default", allowed_host="me.org"), "`allowed_host` is a list; received 'me.org'."),
    ],
)
def test_one_name_is_no_list_of_letters(call, message):
    with pytest.raises(ConfigError) as refusal:
        call()
    assert str(refusal.value).startswith(message)


def test_one_text_has_one_vector_remembered_or_not(model):
    vector, many = model.encode("a dog"), model.encode(["a dog"])
    assert vector.shape == (many.shape[1],)
    np.testing.assert_array_equal(vector, many[0])
    model.remember()
    np.testing.assert_array_equal(model.encode("a dog", normalize=True), model.encode(["a dog"], normalize=True)[0])


def test_a_dimension_is_a_whole_number(model):
    assert samesense.load(model, dim=np.int64(3)).encode(TEXTS).shape == (4, 3)
    for dim in (3.5, "3"):
        with pytest.raises(ConfigError, match="`dim` is a whole number of 1 or more; received"):
            samesense.load(model, dim=dim)


def test_two_lists_are_pairs_and_texts_of_two_letters_are_none(model):
    pairs = list(zip(TEXTS[:2], TEXTS[2:], strict=True))
    np.testing.assert_array_equal(samesense.similarity(model, TEXTS[:2], TEXTS[2:]), model.scores(pairs))
    with pytest.raises(DataError, match=r"Pairs are of two texts each, .*received '苹果' at place 0"):
        samesense.similarity(model, TEXTS[:2])
    with pytest.raises(DataError, match="received 2 and 1"):
        samesense.similarity(model, TEXTS[:2], TEXTS[2:3])
    with pytest.raises(DataError, match="compares two texts; received list and list"):
        model.similarity(TEXTS[:2], TEXTS[2:])
    with pytest.raises(DataError, match="`explain` takes two texts; received str and NoneType"):
        samesense.explain(model, "a dog", None)


@pytest.mark.parametrize(
    ("texts", "received"),
    [(("a b", ["c d", "e f"]), "str and list"), ((["c d"], "a b"), "list and str"), ((1, 2), "int and int")],
)
def test_one_text_and_many_are_no_pairs(model, texts, received):
    with pytest.raises(DataError, match=f"two lists of texts; received {received}. One text with each of many: "):
        samesense.similarity(model, *texts)


def test_pairs_may_be_lists_and_rows_of_an_array(model):
    pairs = list(zip(TEXTS[:2], TEXTS[2:], strict=True))
    for pair_rows in ([list(pair) for pair in pairs], np.array(pairs)):
        np.testing.assert_array_equal(samesense.similarity(model, pair_rows), model.scores(pairs))
    for wrong in ([None], [("a", None)], [("a", 3)], [{"a": 1, "b": 2}]):
        with pytest.raises(DataError, match="Pairs are of two texts each"):
            model.scores(wrong)


@pytest.mark.parametrize("remembers", [False, True])
def test_iterators_are_read_once_and_what_holds_no_texts_is_refused(model, remembers):
    if remembers:
        model.remember()
    pairs = list(zip(TEXTS[:2], TEXTS[2:], strict=True))
    np.testing.assert_array_equal(model.scores(zip(TEXTS[:2], TEXTS[2:], strict=True)), model.scores(pairs))
    np.testing.assert_array_equal(model.encode(text for text in TEXTS), model.encode(TEXTS))
    frame = pd.DataFrame({"text": TEXTS})
    np.testing.assert_array_equal(model.encode(frame["text"]), model.encode(TEXTS))
    for wrong in (frame, {"text": TEXTS}, None, 3, np.array("one text")):
        with pytest.raises(DataError, match=f"Texts are given in a list; received {type(wrong).__name__}"):
            model.encode(wrong)
    with pytest.raises(DataError, match="Pairs are given in a list; received NoneType"):
        model.scores(None)


@pytest.mark.parametrize(("text", "what"), [("", "empty"), (" ", "empty"), ("a\0", "NUL"), ("\ud800", "surrogate")])
def test_a_text_that_the_command_line_refuses_has_no_score(model, text, what):
    for pair in ((text, "a dog"), ("a dog", text)):
        with pytest.raises(DataError, match=f"two texts each, .* at place 1: .*{what}"):
            model.scores([("a dog", "a cat"), pair])
    with pytest.raises(DataError, match=what):
        samesense.similarity(model, "a dog", text)


def test_queries_are_several_and_a_number_is_asked_for(tmp_path):
    collection = Collection.build(tmp_path / "c", [Entry(text) for text in TEXTS], embedder())
    for ask in (collection.query, collection.text_search):
        arguments = () if ask == collection.text_search else (embedder(),)
        with pytest.raises(DataError, match=r"Queries are given in a list; received 'a dog'. Write \['a dog'\]"):
            ask("a dog", *arguments)
        with pytest.raises(DataError, match="A query must hold a text; query 2 is None"):
            ask(["a dog", None], *arguments)
        with pytest.raises(ConfigError, match=r"`top` is a whole number of 1 or more; received 3\.0"):
            ask(["a dog"], *arguments, top=3.0)
        expected = ask(["a dog", "red"], *arguments, top=3)
        assert ask((text for text in ("a dog", "red")), *arguments, top=np.int64(3)) == expected
        assert ask(["a dog"], *arguments, top=10**20) == ask(["a dog"], *arguments, top=4)


def test_an_opened_model_computes_as_it_was_opened(model):
    with pytest.raises(ConfigError, match="computes as it was opened; received `deterministic`"):
        samesense.encode(model, TEXTS, deterministic=True)
    with pytest.raises(ConfigError, match="computes as it was opened; received `backend`"):
        samesense.load(model, backend="onnx")


ROWS = [{"a": "one text", "b": "another", "same": same} for same in (0, 1)]


@pytest.mark.parametrize(
    "call",
    [
        lambda options: samesense.read(ROWS, **options),
        lambda options: samesense.doctor(ROWS, **options),
        lambda options: samesense.train(ROWS, output="run", **options),
        lambda options: samesense.cross_validate(ROWS, folds=2, output="run", **options),
        lambda options: samesense.race(ROWS, output="run", **options),
        lambda options: samesense.evaluate("model", ROWS, **options),
        lambda options: samesense.compare(["model"], ROWS, **options),
        lambda options: samesense.calibrate("model", ROWS, **options),
        lambda options: samesense.export("model", output="out", data=ROWS, **options),
        lambda options: samesense.label(ROWS, output="labels.tsv", **options),
        lambda options: samesense.mine(ROWS, **options),
        lambda options: samesense.encode("model", ROWS, **options),
        lambda options: samesense.dedup(ROWS, **options),
        lambda options: samesense.match(ROWS, ROWS, **options),
        lambda options: samesense.rerank(ROWS, query="query", model="model", cross="cross", **options),
        lambda options: samesense.whiten("model", ROWS, output="out", **options),
        lambda options: samesense.drift("model", "other", ROWS, **options),
        lambda options: samesense.mine_negatives(ROWS, **options),
    ],
)
def test_a_list_of_columns_is_refused_with_the_form_that_is_taken(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r'`columns` is one text, .*received .*. Write columns="a,b,same"'):
        call({"columns": ["a", "b", "same"]})


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda model: samesense.dedup(TEXTS, model=model, keep="last"), "keep"),
        (lambda model: samesense.dedup(TEXTS, model=model, by="any"), "by"),
        (lambda model: samesense.match(TEXTS, TEXTS, model=model, search="any"), "search"),
        (lambda model: samesense.encode(model, TEXTS, chunk="median"), "chunk"),
        (lambda model: samesense.encode(model, TEXTS, precision="fp16"), "precision"),
        (lambda model: samesense.load("default", backend="tensorrt"), "backend"),
        (lambda model: samesense.similarity(model, "a", "b", by="words"), "by"),
        (lambda model: samesense.explain(model, "a", "b", by="words"), "by"),
        (lambda model: samesense.mine_negatives([("a", "b")], model=model, sampling="any"), "sampling"),
        (lambda model: samesense.label(TEXTS, output="out.tsv", scorer=len, pairs_by="any"), "pairs_by"),
        (lambda model: samesense.calibrate(model, [("a", "b", 1)], map="spline"), "map"),
        (lambda model: samesense.build_index("c", "t.txt", model=model, vectors="float8"), "vectors"),
        (lambda model: samesense.build_index("c", "t.txt", model=model, approximate="yes"), "approximate"),
        (lambda model: samesense.SentenceEncoder(model, chunk="median").fit(TEXTS), "chunk"),
        (lambda model: samesense.SentenceEncoder(model, task="queries").fit(TEXTS), "task"),
        (lambda model: samesense.load(model).encode(TEXTS, task="queries"), "task"),
    ],
)
def test_a_word_that_is_none_of_the_choices_is_refused(model, call, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"`{name}` is one of "):
        call(model)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("output", [None, 3, ["runs/mine"]])
@pytest.mark.parametrize(
    "call",
    [
        lambda output: samesense.train("data.tsv", output=output),
        lambda output: samesense.cross_validate("data.tsv", folds=3, output=output),
        lambda output: samesense.distil("texts.txt", teacher="model", output=output),
        lambda output: samesense.pretrain("texts.txt", model="model", output=output),
        lambda output: samesense.origin("texts.txt", output=output),
        lambda output: samesense.harvest(origin="origin", output=output),
        lambda output: samesense.sweep("sweep.toml", output=output),
        lambda output: samesense.race("data.tsv", output=output),
        lambda output: samesense.whiten("model", "texts.txt", output=output),
        lambda output: samesense.export("model", output=output),
        lambda output: samesense.label("texts.txt", output=output),
    ],
)
def test_an_output_that_is_no_name_is_refused(call, output):
    with pytest.raises(ConfigError, match="`output` is the name of a file or a folder; received"):
        call(output)


@pytest.mark.parametrize("folder", [None, 3])
def test_a_folder_that_is_no_name_is_refused(folder):
    for call in (samesense.open_index, lambda folder: samesense.build_index(folder, "t.txt")):
        with pytest.raises(ConfigError, match=f"`folder` is the name of a file or a folder; received {folder}. Ex"):
            call(folder)
    with pytest.raises(ConfigError, match=r"`file` is the name of a file or a folder; received \{'seeds': \[1\]\}"):
        samesense.sweep({"seeds": [1]}, output="sweep")


@pytest.mark.parametrize("data", [pd.DataFrame({"text": TEXTS}), {"text": TEXTS}, None, 3])
def test_a_collection_of_what_is_no_file_is_refused(data, model, tmp_path):
    with pytest.raises(ConfigError, match=f"from files or folders; received {type(data).__name__}"):
        samesense.build_index(tmp_path / "c", data, model=model)


def test_a_query_that_is_no_text_is_refused(model):
    for query, what in ((["a dog"], "list"), (None, "NoneType")):
        with pytest.raises(DataError, match=f"The `query` is one text; received {what}"):
            samesense.rerank(TEXTS, model=model, cross=model, query=query)


def test_a_set_may_be_the_corpus_of_negatives(model):
    pairs = [("a dog", "the dog"), ("a cat", "the cat")]
    mined = [
        samesense.mine_negatives(pairs, model=model, corpus=corpus, num_negatives=1, relative_margin=None).negatives
        for corpus in (set(TEXTS), sorted(TEXTS))
    ]
    assert mined[0] == mined[1] and any(mined[0])


def test_an_exported_folder_that_has_moved_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"There is no folder at .*exported; if it has moved, name it"):
        samesense.load(str(tmp_path / "exported"), backend="onnx")


def test_rows_of_a_set_have_no_numbers(model):
    calls = (lambda texts: samesense.encode(model, texts), lambda texts: samesense.dedup(texts, model=model))
    for call in calls:
        for texts in (set(TEXTS), frozenset(TEXTS)):
            with pytest.raises(DataError, match=f"a {type(texts).__name__} has no order"):
                call(texts)


@pytest.mark.parametrize("scale", ["0 5", (1, 0), (0,), (0, None)])
def test_a_range_that_is_none_is_refused(scale):
    with pytest.raises(ConfigError, match="`label_range` takes a lower and a higher number"):
        samesense.read([("a", "b", 1.0), ("c", "d", 0.0)], label_range=scale)


def test_a_text_with_half_a_character_has_no_vector(model):
    with pytest.raises(ModelError, match="half of a surrogate pair at place 2"):
        model.encode(["a dog", "a \ud800"])


def test_tokens_of_a_static_model_have_no_bound(tiny_trunk):
    tokenizer = SentenceTransformer(str(tiny_trunk)).tokenizer
    static = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)])
    assert static.max_seq_length == float("inf")
    assert tokens_of(static) is not None


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("topic == 'weather'", "it cannot be read from \"topic == 'weather'\" on"),
        ("year BETWEEN 1 AND 2", "it cannot be read from 'year BETWEEN 1 AND 2' on"),
        ("a = 1 AND", "do not fit together"),
        ("a = 1 b = 2", "do not fit together"),
        ("", "it cannot be read from '' on"),
    ],
)
def test_a_condition_that_is_none_is_refused_in_words_of_conditions(where, message):
    with pytest.raises(ConfigError) as caught:
        condition(where)
    assert message in str(caught.value)
    assert "LIKE, IN (...) and IS NULL, joined by AND, OR and NOT" in str(caught.value)


def pressed(texts):
    raise KeyboardInterrupt


def test_a_build_that_fails_leaves_no_folder_and_one_that_was_there_as_it_was(tmp_path):
    entries = [Entry("a dog", 1), Entry("a cat", 1)]
    with pytest.raises(DataError, match="comes twice"):
        Collection.build(tmp_path / "new", entries, embedder())
    assert not (tmp_path / "new").exists()
    interrupted = replace(embedder(), encode=pressed)
    with pytest.raises(KeyboardInterrupt):
        Collection.build(tmp_path / "new", entries[:1], interrupted)
    assert not (tmp_path / "new").exists()
    Collection.build(tmp_path / "old", entries[:1], embedder())
    with pytest.raises(KeyboardInterrupt):
        Collection.build(tmp_path / "old", entries[:1], interrupted, overwrite=True)
    with pytest.raises(DataError, match="comes twice"):
        Collection.build(tmp_path / "old", entries, embedder(), overwrite=True)
    assert len(Collection.open(tmp_path / "old")) == 1


def test_a_repeated_id_is_named_with_its_row(tmp_path):
    (tmp_path / "t.csv").write_text("id,text\n1,a dog\n2,a cat\n1,a cow\n")
    (tmp_path / "more.csv").write_text("id,text\n3,a bird\n2,a fish\n")
    with pytest.raises(DataError, match=r"t\.csv, row 4: every text has an id of its own; 1 comes twice"):
        Collection.build(tmp_path / "new", read_entries(str(tmp_path / "t.csv")), embedder())
    collection = Collection.build(tmp_path / "old", [Entry("a dog", 1), Entry("a cat", 2)], embedder())
    with pytest.raises(DataError, match=r"more\.csv, row 3: every text has an id of its own; 2 .*in the collection"):
        collection.add(read_entries(str(tmp_path / "more.csv")), embedder())
    with pytest.raises(DataError, match="text 2: every text has an id of its own; 1 "):
        collection.add([Entry("a fish", 5), Entry("a bird", 1)], embedder())


def test_dates_and_decimals_are_metadata(tmp_path):
    from datetime import date
    from decimal import Decimal

    entries = [Entry("a dog", 1, {"on": date(2024, 1, 2), "price": Decimal("2.5")}), Entry("a cat", 2)]
    collection = Collection.build(tmp_path / "c", entries, embedder())
    for where in ({"on": date(2024, 1, 2)}, "on >= '2024-01-01' AND price = 2.5"):
        assert [hit.id for hit in collection.query(["a dog"], embedder(), where=where)[0]] == [1]


def test_drift_among_texts_that_are_all_neighbours_is_refused(model):
    with pytest.raises(DataError, match="The 3 nearest of 4 texts are all there are"):
        samesense.drift(model, model, TEXTS, top=3)


def test_a_folder_with_a_space_that_is_not_there_is_no_hub_name():
    with pytest.raises(ModelError, match="There is no model folder at runs/my first"):
        samesense.load("runs/my first")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: samesense.rerank(TEXTS, model="no/such", cross="no/such", query="x", top=0), "`top` .*; received 0"),
        (lambda: samesense.rerank(TEXTS, model="no/such", cross="x", query="x", top=2.5), "`top` .*; received 2.5"),
        (lambda: samesense.mine(TEXTS, model="no/such", top=2.5), "`top` is a whole number of 1 or more; received 2.5"),
        (lambda: samesense.match(TEXTS, TEXTS, model="no/such", top=True), "`top` .*; received True"),
        (lambda: samesense.explain("no/such", "a dog", "a cat", top="3"), "`top` .*; received '3'"),
        (lambda: samesense.label(TEXTS, output="o.tsv", model="no/such", pairs=2.5), "`pairs` .*; received 2.5"),
        (lambda: samesense.whiten("no/such", ["a dog"], output="out"), "fitted on two texts or more; received 1"),
        (lambda: samesense.explain("no/such", "", "a dog"), "one of them is empty"),
        (lambda: samesense.explain("no/such", "a dog", " ", by="sentences"), "one of them is empty"),
    ],
)
def test_what_is_too_little_is_refused_before_a_model_is_loaded(call, message):
    with pytest.raises((ConfigError, DataError), match=message):
        call()


@pytest.mark.parametrize(
    ("name", "content"), [("a.npy", None), ("a.npy", b"text"), ("a.parquet", b"text"), ("b.parquet", None)]
)
def test_files_that_hold_no_vectors_are_refused_in_words(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(
        DataError, match=rf"{name}(: this is not a whole Parquet file| cannot be read as \.\w+ of vectors)"
    ) as caught:
        samesense.read_vectors(tmp_path / name)
    assert "pickle" not in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda model, out: samesense.calibrate(model, [("a", "b", 1)]),
        lambda model, out: samesense.export(model, output=out),
        lambda model, out: samesense.whiten(model, TEXTS, output=out),
    ],
)
def test_a_model_in_memory_is_refused_where_files_are_needed(model, tmp_path, call):
    for wrong in (model, len):
        with pytest.raises(ConfigError, match=r"named by its folder or as on the hub; received \w+\. Save it"):
            call(wrong, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_list_of_names_of_files_is_no_list_of_texts(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a cat\na dog\n")
    for call in (samesense.dedup, samesense.mine):
        with pytest.raises(DataError, match=r"A list holds texts here, and 'a\.txt' is a file"):
            call(["a.txt"], model=model)
    with pytest.raises(DataError, match="is a file"):
        samesense.match(["a cat"], ["a.txt"], model=model)
    assert len(samesense.dedup(["a.txt", "no file"], model=model).kept) == 2


@pytest.mark.parametrize(
    ("data", "received"),
    [
        ({"text": ["a cat"]}, "dict"),
        ([{"text": "a cat"}, {"text": "a dog"}], "a list of dict"),
        (["a cat sleeps", "a dog runs"], "a list of texts"),
        (np.array("texts.txt"), "ndarray"),
    ],
)
def test_a_collection_of_data_in_memory_is_refused_with_what_to_do(model, tmp_path, data, received):
    with pytest.raises(ConfigError, match=rf"built from files or folders; received {received}\. Write the data into"):
        samesense.build_index(tmp_path / "c", data, model=model)
    assert not (tmp_path / "c").exists()


def test_a_folder_with_a_space_in_a_list_is_a_name(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my texts").mkdir()
    (tmp_path / "my texts" / "a.txt").write_text("A cat sleeps.\n")
    for sources in ("my texts", ["my texts"]):
        assert len(samesense.build_index("c", sources, model=model, overwrite=True).collection) == 1
    with pytest.raises(DataError, match="no existing file or folder"):
        samesense.build_index("c", ["no texts/"], model=model, overwrite=True)
