"""Calibration errors bin by bin, and isotonic regression by pooling neighbours, in plain loops."""


def bins_of(values, labels, count):
    """Pairs in order of value; a value's bin is that of its first place, and equal values share it."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    found, bin_of = {}, {}
    for place, at in enumerate(order):
        number = bin_of.setdefault(values[at], place * count // len(values))
        found.setdefault(number, []).append((values[at], labels[at]))
    return list(found.values())


def calibration_error(values, labels, count=10):
    total = 0.0
    for members in bins_of(values, labels, count):
        total += abs(sum(value for value, _ in members) - sum(label for _, label in members))
    return total / len(values)


def isotonic(scores, labels):
    """Fitted value of each distinct score, ascending: neighbours that fall are pooled until none do."""
    blocks = []
    for score in sorted(set(scores)):
        own = [label for one, label in zip(scores, labels, strict=True) if one == score]
        blocks.append([[score], sum(own), len(own)])
        while len(blocks) > 1 and blocks[-2][1] / blocks[-2][2] >= blocks[-1][1] / blocks[-1][2]:
            members, total, size = blocks.pop()
            blocks[-1] = [blocks[-1][0] + members, blocks[-1][1] + total, blocks[-1][2] + size]
    return {score: total / size for members, total, size in blocks for score in members}
