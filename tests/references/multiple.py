"""Holm's procedure as he states it: reject one after another until a p-value is too large."""


def rejected(p_values, level):
    """Which hypotheses are rejected when the chance of any false rejection may be ``level``."""
    result = [False] * len(p_values)
    left = sorted(range(len(p_values)), key=p_values.__getitem__)
    while left and p_values[left[0]] <= level / len(left):
        result[left.pop(0)] = True
    return result
