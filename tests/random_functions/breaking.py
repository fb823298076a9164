"""Ways in which people get a backward wrong. Each changes a case, or says that it cannot."""

from __future__ import annotations

from random import Random

from random_functions.grammar import Case, Statement


def broken(case: Case, rng: Random) -> None:
    """Break a case in one way that is possible in it; ``case.broken`` is its name."""
    for way in rng.sample([*WAYS], len(WAYS)):
        if WAYS[way](case, rng):
            case.broken = way
            return


def _one(case: Case, rng: Random, possible) -> Statement | None:
    found = [s for s in case.statements if possible(s)]
    return rng.choice(found) if found else None


def _factor(case: Case, rng: Random) -> bool:
    s = _one(case, rng, lambda s: len(s.factors) > 1)
    if s:
        s.factors.pop(rng.randrange(1, len(s.factors)))
    return bool(s)


def _sign(case: Case, rng: Random) -> bool:
    _one(case, rng, bool).factors.append("-1")
    return True


def _one_branch(case: Case, rng: Random) -> bool:
    s = _one(case, rng, lambda s: s.branch is not None)
    if s:
        s.factors.append("2")
    return bool(s)


def _replaced(old: str, new: str):
    def change(case: Case, rng: Random) -> bool:
        s = _one(case, rng, lambda s: old in str(s))
        if s:
            s.text = str(s).replace(old, new, 1)
        return bool(s)

    return change


def _unsummed(case: Case, rng: Random) -> bool:
    s = _one(case, rng, lambda s: s.sums)
    if s:
        s.sums = ""
    return bool(s)


def _subset(case: Case, rng: Random) -> bool:
    if not case.asks or len(case.inputs) < 2:
        return False
    place = rng.randrange(len(case.inputs))
    case.asked[place] = (case.asked[place] + 1) % len(case.inputs)
    return True


def _none(case: Case, rng: Random) -> bool:
    case.returned[rng.randrange(len(case.returned))] = "None"
    return True


def _swapped(case: Case, rng: Random) -> bool:
    case.returned.reverse()
    return len(case.returned) > 1


def _writes_upstream(case: Case, rng: Random) -> bool:
    s = _one(case, rng, lambda s: len(s.factors) > 1 and s.factors[0] == "dy" and not s.sums)
    if s:
        s.text = f"dy.mul_({' * '.join(s.factors[1:])})"
    return bool(s)


def _writes_saved(case: Case, rng: Random) -> bool:
    names = [t.name for t in case.inputs] + [y.name for y, _, _ in case.lines]
    case.last.append(f"{rng.choice(names)}.{rng.choice(['mul_(2)', 'neg_()', 'zero_()'])}")
    return True


def _writes_argument(case: Case, rng: Random) -> bool:
    line = rng.choice(["{}.mul_(2)", "{}.abs_()", "{}.data.add_(1)", "{}.view(-1).mul_(2)"])
    case.first.append(line.format(rng.choice(case.inputs).name))
    return True


def _views_upstream(case: Case, rng: Random) -> bool:
    s = _one(case, rng, lambda s: s.factors[0] == "dy")
    if s:
        s.factors[0] = "dy.view(-1).view_as(y)"
    return bool(s)


WAYS = {
    "a factor is dropped": _factor,
    "a sign": _sign,
    "twice in one branch": _one_branch,
    "sums dimension 1 for 0": _replaced(".sum(0", ".sum(1"),
    "sums dimension 0 for 1": _replaced(".sum(1", ".sum(0"),
    "sums all": _replaced(".sum(0)", ".sum()"),
    "another mean": _replaced(".shape[0]", ".numel()"),
    "keepdim is lost": _replaced(", keepdim=True", ""),
    "squeezes everything": _replaced(".squeeze(1)", ".squeeze()"),
    "unsqueezes elsewhere": _replaced(".unsqueeze(0)", ".unsqueeze(1)"),
    "unsqueezes first": _replaced(".unsqueeze(1)", ".unsqueeze(0)"),
    "not transposed": _replaced(".t()", ""),
    "a sum is dropped": _unsummed,
    "another subset": _subset,
    "None": _none,
    "another order": _swapped,
    "writes into the upstream gradient": _writes_upstream,
    "writes into what is saved": _writes_saved,
    "writes into an argument": _writes_argument,
    "views the upstream gradient": _views_upstream,
}
