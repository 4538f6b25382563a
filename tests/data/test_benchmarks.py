"""Benchmarks by name: TSV files, Chinese files, argument pairs and the hub, and deviations from the publication."""

import gzip
import sys

import pytest

from samesense.data import BENCHMARKS, PairData, find_splits, hub_splits
from samesense.data.benchmarks.comparability import NOT_COMPARABLE, compare_with_published, why_not_comparable
from samesense.data.benchmarks.find import known_split, split_of_file
from samesense.errors import DataError, MissingExtraError
from tests.data.made import pair_data

ENGLISH = (
    "subset\tscore\tsentence1\tsentence2\nnews\t5\tA man eats.\tHe has a meal.\nnews\t0\tIt rains.\tNo one came.\n"
)
CHINESE = (
    "subset\tscore\tsentence1\tsentence2\nstsb\t5\t一个人在吃饭。\t他在吃饭。\nstsb\t0\t下雨了。\t没有人来这里。\n"
)


def test_the_catalogue_agrees_with_itself():
    for name, row in BENCHMARKS.items():
        assert row.name == name
        assert set(row.rows) in ({""}, {"test"}, {"train", "test"}, {"train", "dev", "test"}), name
        assert set(row.hub) <= set(row.rows), name
        assert (row.scale is None) == (row.shape == "sentences"), name
        if row.subsets:
            assert sum(row.subsets.values()) == row.rows.get("test", row.rows.get("")), name


def test_tsv_files_are_found_by_name_packed_or_not(tmp_path):
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "sts12.test.tsv.gz").write_bytes(gzip.compress(ENGLISH.encode()))
    (tmp_path / "mr.tsv").write_text("label\tsentence\n1\tgood .\n0\t\n", encoding="utf-8")
    (tmp_path / "notes.tsv").write_text(ENGLISH, encoding="utf-8")
    splits = find_splits(tmp_path)
    assert list(splits) == ["sts12.test", "mr"]
    assert splits["sts12.test"].load().scale == (0, 5)
    assert splits["mr"].load().texts == ["good .", ""]


def test_stsb_is_english_or_chinese_by_its_text(tmp_path):
    for folder, text in (("en", ENGLISH), ("zh", CHINESE)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "stsb.test.tsv").write_text(text, encoding="utf-8")
    splits = find_splits(tmp_path)
    assert list(splits) == ["stsb.test", "stsb-zh.test"]
    assert splits["stsb.test"].load().sentences1[0] == "A man eats."
    assert splits["stsb-zh.test"].load().sentences1[0] == "一个人在吃饭。"
    assert list(find_splits(tmp_path / "zh")) == ["stsb-zh.test"]


def test_the_library_s_own_layout_comes_before_others(tmp_path):
    (tmp_path / "SST/binary").mkdir(parents=True)
    (tmp_path / "SST/binary/sentiment-dev").write_text("of senteval\t1\nb\t0\n", encoding="utf-8")
    (tmp_path / "sst2.dev.tsv").write_text("label\tsentence\n1\tof tsv\n0\tb\n", encoding="utf-8")
    assert find_splits(tmp_path)["sst2.dev"].load().texts == ["of tsv", "b"]


def test_a_file_is_known_by_its_name(tmp_path):
    path = tmp_path / "stsb.dev.tsv"
    path.write_text(CHINESE, encoding="utf-8")
    assert split_of_file(path).name == "stsb-zh.dev"
    renamed = tmp_path / "mine.tsv"
    renamed.write_text(ENGLISH, encoding="utf-8")
    assert split_of_file(renamed) is None
    assert split_of_file(tmp_path / "sts12.test.tsv") is None


def test_a_label_off_the_published_scale_is_refused(tmp_path):
    (tmp_path / "pawsx.test.tsv").write_text(CHINESE, encoding="utf-8")
    with pytest.raises(DataError, match="label 5 is outside the range 0-1"):
        find_splits(tmp_path)["pawsx.test"].load()


def test_no_such_folder(tmp_path):
    with pytest.raises(DataError, match="there is no such folder"):
        find_splits(tmp_path / "nowhere")


def test_chinese_lines_without_three_fields_are_left_out_and_counted(tmp_path):
    folder = tmp_path / "senteval_cn" / "LCQMC"
    folder.mkdir(parents=True)
    lines = "天气好吗\t天气怎么样\t1\n坏行\n多\t一\t列\t0\n你是谁\t几点了\t0\n"
    (folder / "LCQMC.valid.data").write_text(lines, encoding="utf-8")
    data = find_splits(tmp_path)["lcqmc.dev"].load()
    assert data.pairs() == [("天气好吗", "天气怎么样"), ("你是谁", "几点了")]
    assert (data.labels, data.kind, data.dropped) == ([1.0, 0.0], "binary", 2)
    facts, differing = compare_with_published(BENCHMARKS["lcqmc"], "dev", data)
    assert facts == "lcqmc.dev: raw text, 2 rows, 2 malformed rows left out"
    assert differing == ["lcqmc.dev has 2 rows instead of 8802"]
    (folder / "LCQMC.valid.data").write_text("天气好吗\t天气怎么样\t2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"LCQMC.valid.data, row 1: a label is a number from 0 to 1; received '2'"):
        find_splits(tmp_path)["lcqmc.dev"].load()


def argument_row(score, first, second):
    return ",".join([score, *["x"] * 8, f'"{first}"', f'"{second}"'])


def test_argument_pairs_are_latin_1_with_line_breaks_inside_quotes(tmp_path):
    folder = tmp_path / "AFS"
    folder.mkdir()
    head = ",".join(f"column {i}" for i in range(11))
    rows = [argument_row("4.5", "Guns kill,\nna\xefvely put", 'so ""they"" say'), argument_row("0", "No  one", "All")]
    (folder / "ArgPairs_GC.csv").write_bytes("\r\n".join([head, *rows, ""]).encode("latin-1"))
    (folder / "ArgPairs_DP.csv").write_bytes(f"{head}\n{argument_row('2', 'It ends', 'It is done')}\n".encode())
    data = find_splits(tmp_path)["afs"].load()
    assert data.pairs() == [
        ("It ends", "It is done"),
        ("Guns kill, naïvely put", 'so "they" say'),
        ("No one", "All"),
    ]
    assert (data.labels, data.subsets) == ([2.0, 4.5, 0.0], ["DP", "GC", "GC"])
    assert compare_with_published(BENCHMARKS["afs"], "", data).differences[0] == "afs has 3 rows instead of 6000"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,a,b", r"ArgPairs_GM.csv, row 4: there must be 11 fields.* this row has 3"),
        (argument_row("6", "a", "b"), "row 4: a label is a number from 0 to 5; received '6'"),
        (argument_row("1", "a", " "), "row 4: a sentence of the pair is empty"),
    ],
)
def test_bad_argument_rows_are_named(tmp_path, row, message):
    head = ",".join("abcdefghijk")
    first = argument_row("1", "two\nlines", "b")
    (tmp_path / "ArgPairs_GM.csv").write_text(f"{head}\n{first}\n{row}\n", encoding="latin-1")
    with pytest.raises(DataError, match=message):
        find_splits(tmp_path)["afs"].load()


@pytest.fixture
def hub(monkeypatch):
    """The hub with one small answer for each name, and the calls made to it."""
    datasets = pytest.importorskip("datasets")
    calls = []

    def load_dataset(name, config, *, split):
        calls.append((name, config, split))
        if name == "nyu-mll/glue":
            label = datasets.ClassLabel(names=["not_equivalent", "equivalent"])
            columns = {"sentence1": [f"{split} a", "b"], "sentence2": ["c", "d"], "label": [1, 0]}
            features = {"sentence1": datasets.Value("string"), "sentence2": datasets.Value("string"), "label": label}
            return datasets.Dataset.from_dict(columns, features=datasets.Features(features))
        if name == "cornell-movie-review-data/rotten_tomatoes":
            label = datasets.ClassLabel(names=["neg", "pos"])
            features = datasets.Features({"text": datasets.Value("string"), "label": label})
            return datasets.Dataset.from_dict({"text": [f"{split} fine", "dull"], "label": [1, 0]}, features=features)
        return datasets.Dataset.from_dict({"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [2.5, 0.0]})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return calls


def test_a_hub_set_is_loaded_when_read(hub):
    split = hub_splits("sts14")["sts14.test"]
    assert hub == []
    data = split.load()
    assert hub == [("mteb/sts14-sts", None, "test")]
    assert (data.labels, data.scale, data.source) == ([2.5, 0.0], (0, 5), "mteb/sts14-sts:test")
    assert compare_with_published(split.benchmark, "test", data).differences == [
        "sts14.test has 2 rows instead of 3750"
    ]


def test_hub_splits_are_joined_as_the_published_set_is(hub):
    pairs = hub_splits("mrpc")["mrpc.train"].load()
    assert hub == [("nyu-mll/glue", "mrpc", "train"), ("nyu-mll/glue", "mrpc", "validation")]
    assert isinstance(pairs, PairData)
    assert (pairs.sentences1, pairs.labels) == (["train a", "b", "validation a", "b"], [1, 0, 1, 0])
    sentences = hub_splits("mr")["mr"].load()
    assert sentences.texts == ["train fine", "dull", "validation fine", "dull", "test fine", "dull"]
    assert sentences.labels == ["pos", "neg"] * 3


def test_every_hub_name_has_the_form_that_load_rows_takes(hub):
    from samesense.data import load_rows

    for row in BENCHMARKS.values():
        for sources in row.hub.values():
            for source in sources:
                assert list(load_rows(source))
    assert len(hub) == sum(len(sources) for row in BENCHMARKS.values() for sources in row.hub.values())


def test_names_that_the_hub_has_not():
    with pytest.raises(DataError, match=r"No benchmark is called 'sts99'\. Known: sts12, "):
        hub_splits("sts99")
    with pytest.raises(DataError, match=r"mpqa: no usable copy on the hub is known\. Name a folder"):
        hub_splits("mpqa")


def test_the_hub_needs_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"samesense\[train\]"):
        hub_splits("sts12")["sts12.test"].load()


def test_more_rows_than_published_are_not_comparable_either():
    data = pair_data([("a", "b", number % 5) for number in range(1380)], "scored")
    assert compare_with_published(BENCHMARKS["stsb"], "test", data).differences == [
        "stsb.test has 1380 rows instead of 1379"
    ]


def test_reasons_can_be_read_back_from_a_protocol():
    assert why_not_comparable(f"cosine; {NOT_COMPARABLE}a has 2 rows instead of 3, b differs; all pairs") == (
        "a has 2 rows instead of 3, b differs"
    )
    assert why_not_comparable("cosine; all pairs") == ""


def test_a_split_is_known_by_its_name_on_the_hub_and_on_disk(tmp_path):
    (tmp_path / "sickr.test.tsv").write_text("score\tsentence1\tsentence2\n5\ta\tb\n0\tc\td\n")
    for source in ("mteb/sickr-sts:test", str(tmp_path / "sickr.test.tsv")):
        assert known_split(source) == (BENCHMARKS["sickr"], "test")
    assert known_split("RobZamp/sick:test") is None
