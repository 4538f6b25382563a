"""The card of a saved model: what it was made of, how it was evaluated and how to use it, and no sentence of its data.

Source: the hub's specification of model cards (huggingface/hub-docs, modelcard.md), for the front matter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from huggingface_hub.repocard import metadata_load

from samesense.encoder.names import DEFAULT, local_folder
from samesense.errors import ModelError
from samesense.files import write_text
from samesense.results import code, plain
from samesense.types import Result

FILE = "README.md"
OURS = "samesense"
"""The tag by which a card of ours is known."""

DEFAULT_ID = "sentence-transformers/all-MiniLM-L6-v2"
"""What the embedded default is on the hub."""

UNKNOWN = "not stated"

HERE = "this folder"
"""What the examples of a card call a model that is not on the hub."""

_OPENED = re.compile(r'(?:SentenceTransformer\(|CrossEncoder\(|--model )"([^"]+)"')

RIGHTS = ("license", "language")
"""What a card says on request, or as the base's card does."""

METRICS = {"spearman": "spearmanr", "pearson": "pearsonr"}
"""Names of metrics on the hub where they differ from ours."""


@dataclass(frozen=True)
class CardData:
    """One part of the data behind a model."""

    part: str  # such as "train"
    name: str  # of the file without its folder, or on the hub
    rows: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """The facts of a card."""

    name: str  # of the model
    base: str  # the model that it was made from, as it was given
    method: str  # what was done to it
    pairs: bool = False  # whether it is a cross-encoder
    pretrained: bool = False  # whether it is a language model, to be trained further
    license: str | None = None  # None takes that of the base
    language: Sequence[str] = ()  # the same
    data: Sequence[CardData] = ()
    label_use: Sequence[str] = ()  # what the loss made of the labels, a sentence each
    settings: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[Result] = ()  # those of the model itself
    start: Sequence[Result] = ()  # those of the model before
    versions: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, str] = field(default_factory=dict)  # more to say, by heading


def write_card(folder: Path, card: Card) -> None:
    """Write ``README.md`` into the folder of a model; OutputError if it cannot be written."""
    stated = _stated(card.base) | _asked(card.license, card.language)
    front = _front_matter(card, stated)
    parts = [
        f"# {plain(card.name)}",
        _introduction(card),
        _table(["", ""], _facts(folder, card, stated)),
        "## Use",
        _use(card),
        *_data(card),
        *_evaluation(card),
        *(part for heading, text in card.sections.items() for part in (f"## {heading}", text)),
        *_settings(card),
    ]
    write_text(folder / FILE, f"---\n{front}\n---\n\n" + "\n\n".join(parts) + "\n")


def is_ours(folder: Path) -> bool:
    """Return whether a folder has a card that :func:`write_card` wrote."""
    return OURS in (_metadata(folder).get("tags") or ())


def add_section(folder: Path, heading: str, text: str) -> None:
    """Put a section at the end of a card, in the place of one of that name."""
    before = (folder / FILE).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[0]
    write_text(folder / FILE, f"{before.rstrip()}\n\n## {heading}\n\n{text}\n")


def state(folder: Path, license: str | None, language: Sequence[str]) -> None:  # noqa: A002 - as the hub has it
    """Put licence and languages into the card of a model, in the place of what it says of them."""
    asked = _asked(license, language)
    if not asked:
        return
    card = ModelCard.load(folder / FILE)
    for key, value in asked.items():
        setattr(card.data, key, value)
    text = str(card)
    for key, (name, shown) in zip(RIGHTS, _rights(asked), strict=True):
        if key in asked:
            before = re.search(rf"^\| {name} \| .* \|$", text, flags=re.MULTILINE)
            text = text if before is None else text.replace(before[0], f"| {name} | {shown} |", 1)
    write_text(folder / FILE, text)


def name_on_hub(folder: Path, name: str) -> None:
    """Have the examples of a card open the model by its name on the hub."""
    text = (folder / FILE).read_text(encoding="utf-8")
    found = _OPENED.search(text)
    write_text(folder / FILE, text.replace(f'"{found[1]}"', f'"{name}"') if found else text)


def says_licence(folder: Path) -> bool:
    """Return whether the card of a folder states a licence."""
    return bool(_metadata(folder).get("license"))


def _asked(license: str | None, language: Sequence[str]) -> dict[str, Any]:  # noqa: A002
    languages = [one.strip() for one in language]
    given = {"license": license, "language": languages if len(languages) > 1 else next(iter(languages), None)}
    return {key: value for key, value in given.items() if value}


def _rights(stated: Mapping[str, Any]) -> list[list[str]]:
    """Return the rows of licence and language."""
    language = stated.get("language")
    listed = ", ".join(language) if isinstance(language, list) else language
    return [["licence", plain(str(stated.get("license") or UNKNOWN))], ["language", plain(str(listed or UNKNOWN))]]


def _stated(base: str) -> dict[str, Any]:
    """Return what the card of the base says of itself; nothing where there is none on this machine."""
    try:
        folder = local_folder(base)
    except (ModelError, OSError, ValueError, RuntimeError):  # also a name that no folder can have
        return {}
    return {} if folder is None else _metadata(folder)


def _metadata(folder: Path) -> dict[str, Any]:
    try:
        found = metadata_load(folder / FILE) if (folder / FILE).is_file() else None
    except ValueError:  # front matter that is no mapping
        return {}
    return found or {}


def _base_id(base: str, stated: Mapping[str, Any]) -> str | list[str] | None:
    """Return the base as the hub knows it: itself, or the base of a folder that has one."""
    if base == DEFAULT:
        return DEFAULT_ID
    if not _is_there(base):
        return base
    found: str | list[str] | None = stated.get("base_model")
    return found


def _front_matter(card: Card, stated: Mapping[str, Any]) -> str:
    kind = "cross-encoder" if card.pairs else "sentence-transformers"
    hub = sorted({one.name.partition(":")[0] for one in card.data if _on_hub(one.name)})
    known = ModelCardData(
        language=stated.get("language"),
        license=stated.get("license"),
        library_name="sentence-transformers",
        pipeline_tag=_pipeline(card),
        tags=list(dict.fromkeys(["sentence-transformers", kind, OURS])),
        base_model=_base_id(card.base, stated),
        datasets=hub or None,
        model_name=card.name,
        eval_results=[_eval_result(row) for row in _whole(card.results)] or None,
    )
    return str(known.to_yaml()).strip()


def _pipeline(card: Card) -> str:
    if card.pairs:
        return "text-ranking"
    return "feature-extraction" if card.pretrained else "sentence-similarity"


def _eval_result(row: Result) -> EvalResult:
    return EvalResult(
        task_type="semantic-similarity", task_name="Semantic Similarity",
        dataset_type=row.dataset.partition(":")[0] if _on_hub(row.dataset) else "unknown",
        dataset_name=row.dataset, dataset_split=row.split or None,
        metric_type=METRICS.get(row.metric, row.metric), metric_name=row.metric.capitalize(),
        metric_value=round(row.value, 6),
    )  # fmt: skip


def _on_hub(name: str) -> bool:
    return "/" in name and not Path(name).suffix


def _introduction(card: Card) -> str:
    what = "An encoder for the similarity of sentences"
    if card.pairs:
        what = "A cross-encoder, which reads two texts together and scores the similarity of sentences"
    elif card.pretrained:
        what = "A language model, to be trained for the similarity of sentences before use"
    return f"{what}: {code(_short(card.base))}, {plain(card.method)}, by samesense."


def _facts(folder: Path, card: Card, stated: Mapping[str, Any]) -> list[list[str]]:
    made = ", ".join(f"{name} {number}" for name, number in card.versions.items())
    rows = [["base model", plain(str(_base_id(card.base, stated) or _short(card.base)))]]
    rows += [["method", plain(card.method)]]
    rows += [["dimensions", str(dim)] for dim in [_dimensions(folder)] if dim]
    return rows + _rights(stated) + ([["made with", plain(made)]] if made else [])


def _dimensions(folder: Path) -> int | None:
    """Return the width of a bi-encoder's vectors as its last module with one says it."""
    found = None
    for path in sorted(folder.glob("*/config.json")):
        known = json.loads(path.read_text(encoding="utf-8"))
        found = known.get("out_features") or known.get("embedding_dimension") or found
    return found


def _use(card: Card) -> str:
    if card.pretrained:
        return f'```bash\nsamesense train pairs.tsv --model "{HERE}" --output model\n```'
    kind, call = ("CrossEncoder", "predict") if card.pairs else ("SentenceTransformer", "encode")
    one, other = "The train leaves at noon.", "At twelve there is a train."
    texts = f'[("{one}", "{other}")]' if card.pairs else f'["{one}", "{other}"]'
    return (
        f'```python\nfrom sentence_transformers import {kind}\n\nmodel = {kind}("{HERE}")\n'
        f"print(model.{call}({texts}))\n```\n\n"
        f'```bash\nsamesense similarity "{HERE}" "{one}" "{other}"\n```'
    )


def _data(card: Card) -> list[str]:
    if not card.data:
        return []
    rows = [[plain(one.part), plain(one.name), f"{one.rows:,}", f"`{one.sha256[:16]}`"] for one in card.data]
    note = "The hash is the beginning of the SHA-256 of the rows as they were read."
    return ["## Data", _table(["part", "name", "rows", "hash"], rows), note, *map(plain, card.label_use)]


def _evaluation(card: Card) -> list[str]:
    """Return how the model was evaluated, beside the model that it began as; a language model has its own section."""
    if card.pretrained:
        return []
    rows = _whole(card.results)
    if not rows:
        return ["## Evaluation", "This model was not evaluated on labelled pairs when it was made."]
    before = {(row.dataset, row.subset, row.metric): row for row in card.start}
    lines = []
    for row in rows:
        start = before.get((row.dataset, row.subset, row.metric))
        interval = "" if row.low is None or row.high is None else f"{100 * row.low:.1f} to {100 * row.high:.1f}"
        shown = "" if start is None else f"{100 * start.value:.2f}"
        lines.append([plain(row.dataset), plain(row.metric), f"{100 * row.value:.2f}", interval, shown, f"{row.n:,}"])
    protocols = dict.fromkeys(row.protocol for row in rows)
    return [
        "## Evaluation",
        _table(["data", "metric", "x100", "95 % interval", "before", "n"], lines),
        "How: " + plain(" / ".join(protocols)) + ".",
    ]


def _whole(results: Sequence[Result]) -> list[Result]:
    """Return the correlations over all of a data set."""
    return [row for row in results if row.task == "sts" and row.subset == "all"]


def _settings(card: Card) -> list[str]:
    given = [
        [plain(name), code(_short(value))] for name, value in card.settings.items() if value not in (None, (), [], {})
    ]
    return ["## Settings", _table(["setting", "value"], given)] if given else []


def _short(value: object) -> str:
    """Return a value in which a path is cut to its last part: where it lay is nobody else's business."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_short, value))
    if not isinstance(value, str) or not value or not _is_there(value):
        return str(value)
    return Path(value).expanduser().resolve().name


def _is_there(name: str) -> bool:
    """Return whether there is a file or folder of a name; no for one that none can have."""
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in [header, ["---"] * len(header), *rows]]
    return "\n".join("| " + " | ".join(row) + " |" for row in escaped)
