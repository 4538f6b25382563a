"""The documentation says what the code does: blocks run, commands parse, links lead somewhere, tables agree."""

import inspect
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from cyclopts import CycloptsError

from samesense.cli.main import COMMANDS, app
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.methods import METHODS
from tests.pages import assert_settings_are_listed, section

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
MOST_NOT_RUN = 4  # the two of docs/spark.md have their own tests
RUN_BY_CLIENTS = (ROOT / "docs" / "clients.md", ROOT / "docs" / "readers.md")  # in tests/clients, by sh scripts/clients


def named(path):
    return str(path.relative_to(ROOT))


def blocks(page, *languages):
    """Yield (line in the page, code) of the fenced blocks in these languages."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if match[1].strip() in languages:
            yield text[: match.start(2)].count("\n"), match[2]


def commands(page):
    """Yield (line in the page, words after samesense) of every samesense command that is shown."""
    for start, code in blocks(page, "bash", "console"):
        for offset, line in enumerate(code.splitlines(), 1):
            try:
                words = shlex.split(line.strip().removeprefix("$ "), comments=True)
            except ValueError:
                continue  # part of a longer shell statement
            if words[:1] == ["samesense"]:
                plain = [position for position, word in enumerate(words) if word in ("<", ">", "|", "&&", ";")]
                yield start + offset, words[1 : min(plain, default=len(words))]


@pytest.fixture
def tiny_default(request, tmp_path, monkeypatch):
    """In an empty folder, with the model name "default" standing for the tiny one."""
    page = request.node.callspec.params.get("page")
    desk = request.getfixturevalue("deep_desk" if page and page.name == "distil.md" else "tiny_desk")
    monkeypatch.setattr("samesense.encoder.names.default_folder", lambda: desk)
    monkeypatch.chdir(tmp_path)


def with_python(page):
    return any(blocks(page, "python"))


@pytest.fixture
def _stores(request, monkeypatch):
    """The packages and server that the page on stores needs; skip without them."""
    for package in ("lancedb", "qdrant_client") if request.node.callspec.params["page"].name == "stores.md" else ():
        pytest.importorskip(package)
        address = request.getfixturevalue("postgres")
        monkeypatch.setenv("DATABASE_URL", address)
        with pytest.importorskip("psycopg").connect(address) as database:
            database.execute("DROP TABLE IF EXISTS news")  # left by another test


@pytest.mark.parametrize("page", [*filter(with_python, PAGES)], ids=named)
def test_python_blocks_run(page, tiny_default, _stores):
    namespace = {"__name__": "page"}
    for line, code in blocks(page, "python"):
        exec(compile("\n" * line + code, str(page), "exec"), namespace)


def test_few_blocks_are_not_run():
    pages = [page for page in PAGES if page not in RUN_BY_CLIENTS]
    skipped = [(named(page), line) for page in pages for line, _ in blocks(page, "python no-run")]
    assert len(skipped) <= MOST_NOT_RUN, skipped


def test_blocks_name_a_known_language():
    allowed = {"python", "python no-run", "bash", "console", "text", "toml", "json", "bibtex"}
    for page in PAGES:
        languages = {languages[1].strip() for languages in BLOCK.finditer(page.read_text(encoding="utf-8"))}
        assert languages <= allowed, named(page)


def test_commands_parse():
    wrong = []
    for page in PAGES:
        for line, words in commands(page):
            try:
                app.parse_args(words, exit_on_error=False, print_error=False)
            except CycloptsError as error:
                wrong.append(f"{named(page)}:{line}: samesense {shlex.join(words)}: {error}")
    assert not wrong, "\n".join(wrong)


def test_commands_are_found_and_a_wrong_one_fails():
    assert {words[0] for page in PAGES for _, words in commands(page)} >= set(COMMANDS) - {"quickstart"}
    for wrong in (["trane"], ["evaluate", "default", "--data", "x", "--nothing"]):
        with pytest.raises(CycloptsError):
            app.parse_args(wrong, exit_on_error=False, print_error=False)


def test_links_lead_somewhere():
    lost = []
    for page in PAGES:
        prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
        for target in LINK.findall(prose):
            path = target.partition("#")[0]
            if not re.match(r"[a-z]+:", target) and path and not (page.parent / path).exists():
                lost.append(f"{named(page)} links to {target}, which is not there")
    assert not lost, "\n".join(lost)


def test_images_are_there_and_described_and_each_picture_is_shown():  # scripts/check tests that it is up to date
    images = set()
    for page in PAGES:
        for words, target in IMAGE.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
            assert len(words.split()) > 5, f"{named(page)} says too little of {target}"
            images.add((page.parent / target).resolve())
    assert all(path.is_file() for path in images)
    assert {*(ROOT / "docs" / "images").glob("*.svg")} <= images


def test_every_page_is_on_the_map():
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(index.read_text(encoding="utf-8"))}
    assert set((ROOT / "docs").rglob("*.md")) - linked == {index}


def test_every_page_is_on_the_site():  # sh scripts/docs tests that the site builds
    listed = re.findall(r"^ +- (?:.*: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(listed)
    assert len(listed) == len(set(listed))


def test_every_command_and_method_has_a_section_with_its_flags():  # scripts/check tests that it is up to date
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    titles = re.findall(r"^##+ (.+)$", page, re.MULTILINE)
    expected = [f"samesense {name}" for name in COMMANDS]
    expected += [f"samesense train --method {name}" for name in METHODS]
    assert {*expected} <= {*titles}
    assert len(titles) == len({*titles})
    sections = dict(re.findall(r"^##+ (samesense [^\n]+)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    for title, row in (
        ("dedup", "| `--keep` | `first`, "),
        ("index query", "| `--top` | integer | 10 | "),
        ("train", "| `--dev` | text | auto | "),
        ("train", "| `--output`, `-o` | path | required | "),
        ("train --method supmpn", "| `--guide` | text |  | "),
        ("train --method supmpn", "| `--positives` | integer | 5 | "),
    ):
        assert f"\n{row}" in sections[f"samesense {title}"], title
    assert "`--delimiter`" in section("cli.md", "Flags of files")
    assert "`--seed`" not in sections["samesense train --method supmpn"]  # it is in the settings of every method


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_examples_run(example, tiny_default, capsys):
    assert len(example.read_text(encoding="utf-8").splitlines()) <= 50
    main = runpy.run_path(str(example))["main"]
    options = {"steps": 2} if "steps" in inspect.signature(main).parameters else {}
    main("default", **options)
    assert capsys.readouterr().out.strip()


def test_the_example_without_a_model_needs_no_torch():
    import subprocess

    code = "import runpy, sys; runpy.run_path(sys.argv[1])['main'](); print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(EXAMPLES[3])], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "False"


def test_settings_table_lists_every_setting_with_its_default():
    assert_settings_are_listed(section("methods/cosent.md", "Settings"), CosentSettings.model_fields)


def test_poolings_and_extras_are_documented():
    import tomllib

    from samesense.encoder.assembly.pooling import POOLINGS

    models = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert [name for name in POOLINGS if f"| `{name}` |" not in models] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    requirements = [
        *project["dependencies"],
        *(p for extra in project["optional-dependencies"].values() for p in extra),
    ]
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements} - {"samesense"}
    assert {name for name in names if f"| {name} |" not in page} == set()
