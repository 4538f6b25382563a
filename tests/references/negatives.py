"""Hard negatives by plain loops over all candidates; the twin of :mod:`samesense.inference.negatives`."""


def same(text):
    return " ".join(text.lower().split())


def mined(
    rows, corpus, score, *, count, first, last, absolute=None, relative=None, highest=None, lowest=None, rank=None
):
    """Negatives of each (anchor, positives, negatives); ``rank`` orders the candidates, ``score`` decides."""
    pool = {}
    for text in [text for side in (1, 2) for row in rows for text in row[side]] + list(corpus):
        pool.setdefault(same(text), text)
    together = {(same(anchor), same(text)) for anchor, positives, _ in rows for text in positives}
    found = []
    for anchor, positives, negatives in rows:
        known = {same(anchor), *map(same, negatives)}
        free = [
            text
            for key, text in pool.items()
            if key not in known and not {(same(anchor), key), (key, same(anchor))} & together
        ]
        near = sorted(free, key=lambda text: -(rank or score)(anchor, text))[first:last]
        worst = min((score(anchor, text) for text in positives), default=None)
        if worst is None:
            found.append([])
            continue
        kept = [
            text
            for text in sorted(near, key=lambda text: -score(anchor, text))
            if (absolute is None or score(anchor, text) <= worst - absolute)
            and (relative is None or score(anchor, text) <= worst - relative * abs(worst))
            and (highest is None or score(anchor, text) <= highest)
            and (lowest is None or score(anchor, text) >= lowest)
        ]
        found.append(kept[:count])
    return found
