"""``samesense push``: uploads a finished model to the hub."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from samesense.cli.output import Flag, put


def push(
    model: str,
    name: str,
    /,
    *,
    public: Flag = False,
    license: str | None = None,  # noqa: A002 - as the hub has it
    language: Annotated[
        str | None, Parameter(help="languages of the model, as in: en,de [those that the card has]")
    ] = None,
    message: str = "Upload by samesense",
) -> None:
    """Upload a finished model with its card to the hub, private unless --public is given, and print its address.

    samesense push runs/first owner/name --license apache-2.0 --language en

    Args:
        model: run folder, or model folder with a card.
        name: name of the repository, as owner/name; created if absent.
        public: make it public; an existing repository stays as it is.
        license: licence of the model, written to its card [that of the card].
        message: commit message.
    """
    from samesense.api.publish import push as run

    put(run(model, name, public=public, license=license, language=language, message=message))
