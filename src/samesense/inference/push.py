"""Upload a finished model with its card to the Hugging Face hub."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import HfApi
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import httpx, validate_repo_id  # type: ignore[attr-defined]  # made on first use

from samesense.encoder.names import DEFAULT, resolve
from samesense.encoder.saving.card import FILE, has_licence, name_on_hub, set_rights
from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.execution.progress import stage
from samesense.failures import first_line
from samesense.files import read_json, write_text
from samesense.hub import unreachable

logger = logging.getLogger(__name__)

HIDDEN = ".*"
"""Pattern of files that are not uploaded: locks, and hidden files of editors and operating systems."""


def push(
    model: str | Path,
    name: str,
    *,
    private: bool = True,
    license: str | None = None,  # noqa: A002 - as the hub has it
    language: Sequence[str] = (),
    message: str = "Upload by samesense",
) -> str:
    """Upload a model folder to ``owner/name`` on the hub, and return its address; the repository is created if needed.

    Licence and languages, if given, are written to the card in the folder, and its examples then load the model by
    ``name``; if the upload fails, the card is restored. An existing repository stays private or public.

    Raises:
        ModelError: if the folder holds no finished model with a card.
        ConfigError: if ``name`` is not the name of a repository.
        OutputError: if the upload fails.
    """
    folder = finished_folder(str(model))
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ConfigError(f"A repository is named as owner/name; received {name!r}.") from error
    # The hub's own rule also allows a name without an owner.
    if "/" not in name:
        raise ConfigError(f"A repository is named as owner/name; received {name!r}.")
    card = (folder / FILE).read_text(encoding="utf-8")
    set_rights(folder, license, language)
    name_on_hub(folder, name)
    try:
        return _upload(folder, name, private, message)
    # On Ctrl-C too: the card must not name a repository that does not have the model.
    except BaseException:
        write_text(folder / FILE, card)
        raise


def _upload(folder: Path, name: str, private: bool, message: str) -> str:
    if not has_licence(folder):
        logger.warning(f"the card of {folder} states no licence, so that others may not use the model: give `license`")
    if reason := unreachable():
        raise OutputError(f"{name} cannot be uploaded, as the hub cannot be reached: {reason}.")
    try:
        with stage(f"uploading to {name}"):
            api = HfApi()
            repository = api.create_repo(name, private=private, exist_ok=True)
            api.upload_folder(
                repo_id=repository.repo_id,
                folder_path=folder,
                commit_message=message,
                # The first pattern is for the folder itself, the second for those in it.
                ignore_patterns=[HIDDEN, f"*/{HIDDEN}"],
            )
    except (httpx.HTTPError, OSError) as error:  # a missing token or network is an OSError
        raise OutputError(
            f"The hub does not take {name}: {first_line(error)} Are you logged in (hf auth login, or HF_TOKEN), may "
            "you write there, and can the hub be reached?"
        ) from error
    return str(repository)


def finished_folder(model: str) -> Path:
    """Return the folder of a finished model, which may be in a run folder; ModelError if there is none."""
    folder = Path(resolve(model))
    if model == DEFAULT or not folder.is_dir():
        raise ModelError(f"A model is uploaded from its folder; {model} is none. Give a run or a model folder.")
    if not (folder / "modules.json").is_file():
        raise ModelError(f"{folder} is a bare transformer. Train it, or save it as a sentence-transformers folder.")
    if _status(folder.parent if folder.name == "model" else folder) not in ("", "finished"):
        raise ModelError(f"The run behind {folder} is unfinished. Go on with it: the same command with `resume`.")
    if not (folder / FILE).is_file():
        raise ModelError(f"{folder} has no card ({FILE}), which says what the model is. Write one.")
    return folder


def _status(run: Path) -> str:
    try:
        return str(read_json(run / "manifest.json").get("status", ""))
    except DataError:
        return ""
