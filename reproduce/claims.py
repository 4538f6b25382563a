"""Write README.md: what the papers claim, and what the runs here show of it.

python reproduce/claims.py          # rewrite README.md from claims.toml and the results
python reproduce/claims.py --check  # exit 1 if that would change it
"""

from __future__ import annotations

import sys
import tomllib

import numpy as np
from tables import HOME, comparisons_of, filled, rows_of

from samesense.errors import DataError
from samesense.reports.significance import Comparison
from samesense.reports.tables import markdown

NEAR = {"spearman": 1e-9, "accuracy": 1e-5}
"""How near a comparison comes to the figures: accuracies are means over folds, and their test is over sentences."""


def claims() -> list[dict[str, str]]:
    """Return the claims, as ``claims.toml`` has them."""
    return tomllib.loads((HOME / "claims.toml").read_text(encoding="utf-8"))["claim"]


def compared(claim: dict[str, str]) -> Comparison:
    """Return the comparison that speaks of a claim, after its difference and seeds are computed anew from the runs."""
    paper = claim["page"].partition("/")[0]
    wanted, metric = (claim["data"], claim["model"], claim["reference"]), claim.get("metric", "spearman")
    known = comparisons_of(paper, claim["sweep"], metric=metric)
    found = {(one.dataset, one.model, one.reference): one for one in known}
    if wanted not in found:
        raise DataError(f"claims.toml: {paper}/results/{claim['sweep']}.comparisons.jsonl has no comparison {wanted}.")
    one, rows = found[wanted], rows_of(paper, claim["sweep"])
    tests = {one.dataset} & {row["test"] for row in rows} or {row["test"] for row in rows}  # of a mean all
    runs = {
        name: [row[metric] for row in rows if row["variant"] == name and row["test"] in tests]
        for name in (one.model, one.reference)
    }
    difference = np.mean(runs[one.model]) - np.mean(runs[one.reference])
    trained = [len({row["seed"] for row in rows if row["variant"] == name} - {None}) for name in runs]
    if abs(difference - one.difference) > NEAR[metric] or one.seeds != min(filter(None, trained)):
        raise DataError(f"claims.toml: the comparison {wanted} does not agree with the runs.")
    return one


def outcome(claim: dict[str, str], one: Comparison) -> str:
    """Return ``shown``, ``not shown`` or ``opposite``, and that it holds of these runs only where seeds are few."""
    if not one.significant:
        return "not shown"
    agrees = (one.difference > 0) == (claim["says"] == "above")
    return ("shown" if agrees else "opposite") + (" in these runs" if one.scope == "runs" else "")


def table() -> str:
    """Lay the claims out, a line each."""
    rows = []
    for claim in claims():
        one = compared(claim)
        difference = one.difference if claim["says"] == "above" else -one.difference
        rows.append(
            [
                f"[{claim['text']}]({claim['page']})",
                claim["paper"],
                f"{100 * difference:+.2f}",
                str(one.seeds),
                f"{one.adjusted:.2g}",
                outcome(claim, one),
            ]
        )
    header = ["claim", "the paper", "here, difference", "seeds", "p (Holm)", ""]
    return markdown(header, rows, numeric=("here, difference", "seeds", "p (Holm)"), marked=True)


def main() -> None:
    """Write the page, or check it."""
    page = HOME / "README.md"
    text = page.read_text(encoding="utf-8")
    wanted = filled(text, table())
    if "--check" not in sys.argv[1:]:
        page.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        sys.exit(1)


if __name__ == "__main__":
    main()
