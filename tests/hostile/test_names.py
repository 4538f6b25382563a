"""Names of the user's files, models and columns are text in every card and report, and never markup."""

import random
import re
import shutil
from html.parser import HTMLParser

import pytest

from samesense.encoder.saving.card import Card, CardData, write_card
from samesense.reports.sweeps import difference_table
from samesense.reports.tables import markdown, markdown_table
from samesense.results.markup import code, plain
from samesense.types import Result
from tests.command import run_command
from tests.hostile.conftest import rounds

EVIL = "<img src=x onerror=alert(1)> [x](javascript:y) `c` ``` *b* _i_ | & ~~s~~ \\ <!-- # ![z](w).tsv"
SIGNS = "<>[]()`*_|&~\\!#-=\"' \n\tab.é\u202e\0"


def name(draw):
    return "".join(draw.choices(SIGNS, k=draw.randint(1, 30))) if draw.random() < 0.9 else EVIL


def rendered(page):
    """Return the markup that Markdown would render: the page without escapes and code."""
    page = re.sub(r"\A---\n.*?\n---\n", "", page, flags=re.S)  # removes the YAML front matter
    page = re.sub(r"^```\w+\n.*?^```$", "", page, flags=re.S | re.M)
    bare = re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", re.sub(r"\\\\", "", page))
    return re.sub(r"\\[^a-zA-Z0-9\s]", "", bare)


def result(dataset, model="m"):
    return Result(
        task="sts",
        dataset=dataset,
        subset="all",
        metric="spearman",
        value=0.5,
        n=9,
        protocol=f"cosine {dataset}",
        model=model,
        split="test",
    )


def card(text):
    return Card(
        name=text,
        base=text,
        method=f"trained by {text}",
        data=[CardData("train", text, 3, "0" * 64)],
        settings={"loss": text, "data": [text, text]},
        results=[result(text)],
        versions={"samesense": text},
    )


@pytest.mark.parametrize("seed", [None, *range(rounds(60, 3000))])
def test_a_card_has_no_markup_of_names(tmp_path, seed):
    text = EVIL if seed is None else name(random.Random(seed))
    write_card(tmp_path, card(text))
    bare = rendered((tmp_path / "README.md").read_text(encoding="utf-8"))
    assert not re.search(r"<\w|<!|\]\(|&\w|~~|(?<!\w)[*_]\w", bare), bare
    for table in re.findall(r"(?:^\|.*\n)+", bare, re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1, table


def test_tables_of_reports_have_none():
    for page in (markdown_table([result(EVIL, EVIL)]), markdown([EVIL], [[EVIL]], numeric=()), plain(EVIL)):
        assert not re.search(r"<\w|<!|\]\(|&\w|~~|`", rendered(page)), page
    assert difference_table([]).startswith("| data |")


def test_code_holds_any_text():
    assert (code("a"), code("a`b"), code("`"), code("``a")) == ("`a`", "``a`b``", "`` ` ``", "``` ``a ```")


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [tag, *(key for key, _ in attrs)]


def test_a_page_of_a_comparison_has_none(here, capsys):
    odd = "<img src=x onerror=alert(1)>.tsv"
    shutil.copy("pairs.tsv", odd)
    assert (
        run_command(capsys, "compare", "words:words.vec", "--data", odd, "--output", "p.html", "--markdown", "p.md")[0]
        == 0
    )
    tags = Tags()
    tags.feed((here / "p.html").read_text())
    assert "onerror" not in tags.found
    assert not re.search(r"<img", rendered((here / "p.md").read_text()))
