"""SentEval's folders, in small: every set in its own layout, and the rows that are refused."""

import pytest

from samesense.data import BENCHMARKS, find_splits
from samesense.data.benchmarks.comparability import compare_with_published
from samesense.errors import DataError


def put(folder, name, text, encoding="utf-8"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def load(folder, name):
    return find_splits(folder)[name].load()


def put_semeval(folder, year, subset, pairs, gold):
    put(folder, f"STS/STS{year}-en-test/STS.input.{subset}.txt", "".join(f"{a}\t{b}\n" for a, b in pairs))
    put(folder, f"STS/STS{year}-en-test/STS.gs.{subset}.txt", "".join(f"{cell}\n" for cell in gold))


def test_pairs_without_a_score_are_left_out_and_counted(tmp_path):
    pairs = [(f"left {i} .", f"right {i} .") for i in range(4)]
    put_semeval(tmp_path, 15, "images", pairs, ["2.5", "", "0", ""])
    put_semeval(tmp_path, 15, "belief", [("one  two", "three\u2028four\x85five")], ["5"])
    data = load(tmp_path, "sts15.test")
    assert data.pairs() == [("one two", "three four five"), pairs[0], pairs[2]]
    assert (data.labels, data.subsets) == ([5.0, 2.5, 0.0], ["belief", "images", "images"])
    assert (data.scale, data.kind, data.dropped_unlabelled) == ((0, 5), "scored", 2)


def test_a_subset_that_is_not_published_is_no_part_of_the_set(tmp_path):
    put_semeval(tmp_path, 13, "OnWN", [("a", "b"), ("c", "d")], ["1", "2"])
    put_semeval(tmp_path, 13, "SMT", [("e", "f")], ["3"])
    assert load(tmp_path, "sts13.test").subsets == ["OnWN", "OnWN"]


def test_a_set_of_full_size_equals_what_is_published_and_a_smaller_one_says_so(tmp_path):
    for subset, count in BENCHMARKS["sts16"].subsets.items():
        pairs = [(f"{subset} {i}", f"other {i}") for i in range(count + 7)]
        put_semeval(tmp_path, 16, subset, pairs, [*(str(i % 6) for i in range(count)), *[""] * 7])
    data = load(tmp_path, "sts16.test")
    facts, differing = compare_with_published(BENCHMARKS["sts16"], "test", data)
    assert facts == "sts16.test: lower-cased text, 1186 rows, 35 pairs without a score left out"
    assert differing == []
    put_semeval(tmp_path, 16, "plagiarism", [("a", "b")], ["1"])
    (tmp_path / "STS/STS16-en-test/STS.input.headlines.txt").unlink()
    (tmp_path / "STS/STS16-en-test/STS.gs.headlines.txt").unlink()
    assert compare_with_published(BENCHMARKS["sts16"], "test", load(tmp_path, "sts16.test")).differences == [
        "sts16.test has 708 rows instead of 1186",
        "subset 'headlines' of sts16.test has 0 rows instead of 249",
        "subset 'plagiarism' of sts16.test has 1 rows instead of 230",
    ]


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("1\n2\n", "got 2 lines for the 3 pairs of STS.input.FNWN.txt"),
        ("1\n2\nx\n", r"STS.gs.FNWN.txt, row 3: a label is a number from 0 to 5; received 'x'"),
        ("1\n5.5\n1\n", r"row 2: a label is a number from 0 to 5; received '5.5'"),
        ("1\nnan\n1\n", r"row 2: a label is a number from 0 to 5; received 'nan'"),
        ("\n\n\n", "none of 3 pairs has a label"),
    ],
)
def test_gold_that_does_not_fit_is_refused(tmp_path, gold, message):
    put(tmp_path, "STS/STS13-en-test/STS.input.FNWN.txt", "a\tb\nc\td\ne\tf\n")
    put(tmp_path, "STS/STS13-en-test/STS.gs.FNWN.txt", gold)
    with pytest.raises(DataError, match=message):
        load(tmp_path, "sts13.test")


def test_text_that_does_not_fit_is_refused(tmp_path):
    put(tmp_path, "STS/STS13-en-test/STS.gs.FNWN.txt", "1\n2\n")
    with pytest.raises(DataError, match=r"STS.input.FNWN.txt: this file belongs to the set and is absent"):
        load(tmp_path, "sts13.test")
    put(tmp_path, "STS/STS13-en-test/STS.input.FNWN.txt", "a\tb\nc d\n")
    with pytest.raises(DataError, match=r"row 2: there must be 2 fields or more between tabs; this row has 1: 'c d'"):
        load(tmp_path, "sts13.test")
    put(tmp_path, "STS/STS13-en-test/STS.input.FNWN.txt", "a\tb\nc\t \n")
    with pytest.raises(DataError, match="row 2: a sentence of the pair is empty"):
        load(tmp_path, "sts13.test")


def test_sts_benchmark_has_its_score_fifth_and_quotes_are_letters(tmp_path):
    lines = 'news\tMSRpar\t2012test\t0001\t2.500\t" so , he said .\tit is .\nforum\tdeft\t2014\t7\t5\ta b\tc\tlicence\n'
    put(tmp_path, "STS/STSBenchmark/sts-dev.csv", lines)
    data = load(tmp_path, "stsb.dev")
    assert data.pairs() == [('" so , he said .', "it is ."), ("a b", "c")]
    assert (data.labels, data.subsets) == ([2.5, 5.0], ["news/MSRpar/2012test", "forum/deft/2014"])


def test_sick_and_mrpc_have_a_header(tmp_path):
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    for name, split in (("train", "train"), ("trial", "dev"), ("test_annotated", "test")):
        put(tmp_path, f"SICK/SICK_{name}.txt", f"{head}1\tA {split}\tB\t4.5\tNEUTRAL\n2\tC\tD\t1\tENTAILMENT\n")
        data = load(tmp_path, f"sickr.{split}")
        assert (data.pairs(), data.labels) == ([(f"A {split}", "B"), ("C", "D")], [4.5, 1.0])
    head = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    put(tmp_path, "MRPC/msr_paraphrase_test.txt", f"{head}1\t12\t13\tHe came .\tHe arrived .\n0\t1\t2\tNo .\tYes .\n")
    data = load(tmp_path, "mrpc.test")
    assert (data.pairs()[0], data.labels, data.kind) == (("He came .", "He arrived ."), [1.0, 0.0], "binary")
    assert "mrpc.train" not in find_splits(tmp_path)


@pytest.mark.parametrize(
    ("name", "negative", "positive"),
    [
        ("mr", "MR/rt-polarity.neg", "MR/rt-polarity.pos"),
        ("cr", "CR/custrev.neg", "CR/custrev.pos"),
        ("subj", "SUBJ/subj.subjective", "SUBJ/subj.objective"),
        ("mpqa", "MPQA/mpqa.neg", "MPQA/mpqa.pos"),
    ],
)
def test_two_files_are_two_classes_in_latin_1(tmp_path, name, negative, positive):
    put(tmp_path, negative, "so dull\n\nwhat a  bore\n", "latin-1")
    put(tmp_path, positive, "a caf\xe9 to love\x85 indeed\r\nfine", "latin-1")
    data = load(tmp_path, name)
    assert data.texts == ["a café to love indeed", "fine", "so dull", "", "what a bore"]
    assert data.labels == ["1", "1", "0", "0", "0"]
    assert "1 empty sentences kept" in compare_with_published(BENCHMARKS[name], "", data).facts
    (tmp_path / positive).unlink()
    with pytest.raises(DataError, match="this must be a readable file"):
        load(tmp_path, name)


def test_sst_has_its_label_second(tmp_path):
    put(tmp_path, "SST/binary/sentiment-dev", "a fine film .\t1\nso  dull\t0\n")
    data = load(tmp_path, "sst2.dev")
    assert (data.texts, data.labels) == (["a fine film .", "so dull"], ["1", "0"])


def test_trec_takes_the_coarse_class_in_latin_1(tmp_path):
    lines = "LOC:city Where is S\xe3o Paulo ?\nNUM:count How many ?\nABBR:exp What is : that ?\n"
    put(tmp_path, "TREC/train_5500.label", lines, "latin-1")
    put(tmp_path, "TREC/TREC_10.label", "NUM:date When ?\nLOC:other Where ?\n", "latin-1")
    train = load(tmp_path, "trec.train")
    test = load(tmp_path, "trec.test")
    assert train.texts == ["Where is São Paulo ?", "How many ?", "What is : that ?"]
    assert train.labels == ["LOC", "NUM", "ABBR"]
    assert test.labels == ["NUM", "LOC"]
    put(tmp_path, "TREC/TREC_10.label", "NUM:date When ?\nWhere is it ?\n", "latin-1")
    with pytest.raises(DataError, match=r"TREC_10.label, row 2: a line must be COARSE:fine and a question"):
        load(tmp_path, "trec.test")


@pytest.mark.parametrize("subfolder", [".", "downstream", "data/downstream"])
def test_the_folder_above_will_do(tmp_path, subfolder):
    put(tmp_path / subfolder, "SST/binary/sentiment-test", "a\t1\nb\t0\n")
    assert list(find_splits(tmp_path)) == ["sst2.test"]
