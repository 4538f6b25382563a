"""The card of a saved model: its data, method, evaluation and use, without any sentence of the data.

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
from samesense.results.markup import code, plain
from samesense.types import Result

FILE = "README.md"
OURS = "samesense"
"""Tag that marks a card written by samesense."""

DEFAULT_ID = "sentence-transformers/all-MiniLM-L6-v2"
"""Hub name of the embedded default model."""

UNKNOWN = "not stated"

HERE = "this folder"
"""Name of the model in a card's examples until it is on the hub."""

_EXAMPLE_MODEL = re.compile(r'(?:SentenceTransformer\(|CrossEncoder\(|--model )"([^"]+)"')

RIGHTS = ("license", "language")
"""Keys that a user sets, or that are copied from the base model's card."""

METRICS = {"spearman": "spearmanr", "pearson": "pearsonr"}
"""Names of metrics on the hub where they differ from ours."""


@dataclass(frozen=True)
class CardData:
    """One split of the data that a model was trained on."""

    split: str  # such as "train"
    name: str  # file name without its folder, or hub name
    rows: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """The facts of a card."""

    name: str  # of the model
    base: str  # start model, as the user named it
    method: str  # what was done to it
    is_cross_encoder: bool = False
    is_language_model: bool = False  # to be trained further
    license: str | None = None  # None copies that of the base
    language: Sequence[str] = ()  # empty copies those of the base
    data: Sequence[CardData] = ()
    label_use: Sequence[str] = ()  # sentences that say how the loss used the labels
    settings: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[Result] = ()  # of the model
    start: Sequence[Result] = ()  # of the start model
    versions: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, str] = field(default_factory=dict)  # further sections by heading


def write_card(folder: Path, card: Card) -> None:
    """Write ``README.md`` into the folder of a model; OutputError if it cannot be written."""
    stated = _base_metadata(card.base) | _requested_rights(card.license, card.language)
    front = _front_matter(card, stated)
    blocks = [
        f"# {plain(card.name)}",
        _introduce(card),
        _table(["", ""], _fact_rows(folder, card, stated)),
        "## Use",
        _describe_use(card),
        *_describe_data(card),
        *_describe_evaluation(card),
        *(block for heading, text in card.sections.items() for block in (f"## {heading}", text)),
        *_describe_settings(card),
    ]
    write_text(folder / FILE, f"---\n{front}\n---\n\n" + "\n\n".join(blocks) + "\n")


def is_ours(folder: Path) -> bool:
    """Return whether a folder has a card that :func:`write_card` wrote."""
    return OURS in (_metadata(folder).get("tags") or ())


def add_section(folder: Path, heading: str, text: str) -> None:
    """Append a section to a card; an existing one of this heading is replaced."""
    kept_text = (folder / FILE).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[0]
    write_text(folder / FILE, f"{kept_text.rstrip()}\n\n## {heading}\n\n{text}\n")


def set_rights(folder: Path, license: str | None, language: Sequence[str]) -> None:  # noqa: A002 - as the hub has it
    """Set licence and languages in the card of a model, in its front matter and its table."""
    stated = _requested_rights(license, language)
    if not stated:
        return
    card = ModelCard.load(folder / FILE)
    for key, value in stated.items():
        setattr(card.data, key, value)
    text = str(card)
    for key, (name, value_text) in zip(RIGHTS, _rights_rows(stated), strict=True):
        if key in stated:
            row = re.search(rf"^\| {name} \| .* \|$", text, flags=re.MULTILINE)
            if row is not None:
                text = text.replace(row[0], f"| {name} | {value_text} |", 1)
    write_text(folder / FILE, text)


def name_on_hub(folder: Path, name: str) -> None:
    """Replace the model's name in a card's examples by its name on the hub."""
    text = (folder / FILE).read_text(encoding="utf-8")
    match = _EXAMPLE_MODEL.search(text)
    if match:
        text = text.replace(f'"{match[1]}"', f'"{name}"')
    write_text(folder / FILE, text)


def has_licence(folder: Path) -> bool:
    """Return whether the card of a folder states a licence."""
    return bool(_metadata(folder).get("license"))


def _requested_rights(license: str | None, language: Sequence[str]) -> dict[str, Any]:  # noqa: A002
    languages = [tag.strip() for tag in language]
    rights = {"license": license, "language": languages if len(languages) > 1 else next(iter(languages), None)}
    return {key: value for key, value in rights.items() if value}


def _rights_rows(stated: Mapping[str, Any]) -> list[list[str]]:
    """Return the table rows for licence and language."""
    language = stated.get("language")
    listed = ", ".join(language) if isinstance(language, list) else language
    return [["licence", plain(str(stated.get("license") or UNKNOWN))], ["language", plain(str(listed or UNKNOWN))]]


def _base_metadata(base: str) -> dict[str, Any]:
    """Return the metadata of the base model's card; empty if the model is not on this machine."""
    try:
        folder = local_folder(base)
    except (ModelError, OSError, ValueError, RuntimeError):  # also for a name that is not a valid path
        return {}
    if folder is None:
        return {}
    return _metadata(folder)


def _metadata(folder: Path) -> dict[str, Any]:
    try:
        metadata = metadata_load(folder / FILE) if (folder / FILE).is_file() else None
    except ValueError:  # the front matter is not a mapping
        return {}
    return metadata or {}


def _base_id(base: str, stated: Mapping[str, Any]) -> str | list[str] | None:
    """Return the hub name of the base model; for a local folder, the base that its own card states."""
    if base == DEFAULT:
        return DEFAULT_ID
    if not _exists(base):
        return base
    base_model: str | list[str] | None = stated.get("base_model")
    return base_model


def _front_matter(card: Card, stated: Mapping[str, Any]) -> str:
    kind = "cross-encoder" if card.is_cross_encoder else "sentence-transformers"
    hub = sorted({dataset.name.partition(":")[0] for dataset in card.data if _on_hub(dataset.name)})
    data = ModelCardData(
        language=stated.get("language"),
        license=stated.get("license"),
        library_name="sentence-transformers",
        pipeline_tag=_pipeline(card),
        tags=list(dict.fromkeys(["sentence-transformers", kind, OURS])),
        base_model=_base_id(card.base, stated),
        datasets=hub or None,
        model_name=card.name,
        eval_results=[_eval_result(row) for row in _overall(card.results)] or None,
    )
    return str(data.to_yaml()).strip()


def _pipeline(card: Card) -> str:
    if card.is_cross_encoder:
        return "text-ranking"
    if card.is_language_model:
        return "feature-extraction"
    return "sentence-similarity"


def _eval_result(row: Result) -> EvalResult:
    return EvalResult(
        task_type="semantic-similarity",
        task_name="Semantic Similarity",
        dataset_type=row.dataset.partition(":")[0] if _on_hub(row.dataset) else "unknown",
        dataset_name=row.dataset,
        dataset_split=row.split or None,
        metric_type=METRICS.get(row.metric, row.metric),
        metric_name=row.metric.capitalize(),
        metric_value=round(row.value, 6),
    )


def _on_hub(name: str) -> bool:
    return "/" in name and not Path(name).suffix


def _introduce(card: Card) -> str:
    kind = "An encoder for the similarity of sentences"
    if card.is_cross_encoder:
        kind = "A cross-encoder, which reads two texts together and scores the similarity of sentences"
    elif card.is_language_model:
        kind = "A language model, to be trained for the similarity of sentences before use"
    return f"{kind}: {code(_without_folders(card.base))}, {plain(card.method)}, by samesense."


def _fact_rows(folder: Path, card: Card, stated: Mapping[str, Any]) -> list[list[str]]:
    versions = ", ".join(f"{name} {version}" for name, version in card.versions.items())
    rows = [["base model", plain(str(_base_id(card.base, stated) or _without_folders(card.base)))]]
    rows.append(["method", plain(card.method)])
    dim = _dimensions(folder)
    if dim:
        rows.append(["dimensions", str(dim)])
    rows += _rights_rows(stated)
    if versions:
        rows.append(["made with", plain(versions)])
    return rows


def _dimensions(folder: Path) -> int | None:
    """Return the embedding dimension, as stated by the last module that states one."""
    dim = None
    for path in sorted(folder.glob("*/config.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        dim = config.get("out_features") or config.get("embedding_dimension") or dim
    return dim


def _describe_use(card: Card) -> str:
    if card.is_language_model:
        return f'```bash\nsamesense train pairs.tsv --model "{HERE}" --output model\n```'
    first = "The train leaves at noon."
    second = "At twelve there is a train."
    model_class = "SentenceTransformer"
    call = f'encode(["{first}", "{second}"])'
    if card.is_cross_encoder:
        model_class = "CrossEncoder"
        call = f'predict([("{first}", "{second}")])'
    return (
        f'```python\nfrom sentence_transformers import {model_class}\n\nmodel = {model_class}("{HERE}")\n'
        f"print(model.{call})\n```\n\n"
        f'```bash\nsamesense similarity "{HERE}" "{first}" "{second}"\n```'
    )


def _describe_data(card: Card) -> list[str]:
    if not card.data:
        return []
    rows = [
        [plain(dataset.split), plain(dataset.name), f"{dataset.rows:,}", f"`{dataset.sha256[:16]}`"]
        for dataset in card.data
    ]
    note = "The hash is the beginning of the SHA-256 of the rows as they were read."
    return ["## Data", _table(["part", "name", "rows", "hash"], rows), note, *map(plain, card.label_use)]


def _describe_evaluation(card: Card) -> list[str]:
    """Return the section on evaluation, with the start model's figures beside; a language model has its own section."""
    if card.is_language_model:
        return []
    rows = _overall(card.results)
    if not rows:
        return ["## Evaluation", "This model was not evaluated on labelled pairs when it was made."]
    start_rows = {(row.dataset, row.subset, row.metric): row for row in card.start}
    lines = []
    for row in rows:
        start = start_rows.get((row.dataset, row.subset, row.metric))
        if row.low is None or row.high is None:
            interval = ""
        else:
            interval = f"{100 * row.low:.1f} to {100 * row.high:.1f}"
        start_value = "" if start is None else f"{100 * start.value:.2f}"
        lines.append(
            [plain(row.dataset), plain(row.metric), f"{100 * row.value:.2f}", interval, start_value, f"{row.n:,}"]
        )
    protocols = dict.fromkeys(row.protocol for row in rows)
    return [
        "## Evaluation",
        _table(["data", "metric", "x100", "95 % interval", "before", "n"], lines),
        "How: " + plain(" / ".join(protocols)) + ".",
    ]


def _overall(results: Sequence[Result]) -> list[Result]:
    """Return the correlations over whole data sets, without those of subsets."""
    return [row for row in results if row.task == "sts" and row.subset == "all"]


def _describe_settings(card: Card) -> list[str]:
    rows = [
        [plain(name), code(_without_folders(value))]
        for name, value in card.settings.items()
        if value not in (None, (), [], {})
    ]
    if not rows:
        return []
    return ["## Settings", _table(["setting", "value"], rows)]


def _without_folders(value: object) -> str:
    """Return a value as text, with paths cut to their last component, so that a card shows no private folders."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_without_folders, value))
    if not isinstance(value, str) or not value or not _exists(value):
        return str(value)
    return Path(value).expanduser().resolve().name


def _exists(name: str) -> bool:
    """Return whether a file or folder of this name exists; false for an invalid name."""
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in [header, ["---"] * len(header), *rows]]
    return "\n".join("| " + " | ".join(row) + " |" for row in escaped)
