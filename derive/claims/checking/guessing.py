"""Infer undefined names of a text from the values that make its claims right.

In: the names, and the mathematics. Out: for each the one value of the forward, its reciprocal or a
part of it, with which what the text says of the gradients is right. A claim is asked after those
that read fewer such names, and what is found for one holds for the others; so a wrong line does not
keep the names of the right ones from being found. What a name is taken for is always said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import permutations, product

from sympy import Expr

from derive.claims.checking.ground import EQUAL, Ground, for_any_upstream
from derive.claims.checking.judging import given_upstream
from derive.claims.checking.numbers.arithmetic import Unevaluable
from derive.claims.checking.numbers.comparison import difference_at
from derive.claims.reading import Claim, Reading, TextNames, TextValue, UnknownNames
from derive.claims.reading.roles import is_target, meant_by_words
from derive.claims.reading.values import INDEX, NUMBER, TENSOR, Dims
from derive.gradient.values.naming import written_out
from derive.language.errors import QuestionError
from derive.language.formulas.text import formula
from derive.language.nodes import along
from derive.language.symbols import Tensor, tensors_in

MOST_READINGS = 400  # readings of a text, while the names of one claim are searched for
MOST_TRIED = 1000  # combinations of values with the same shapes, for one claim
Read = Callable[[Mapping[str, "str | TextValue"], "str | None"], Reading]


@dataclass(frozen=True)
class Candidate:
    """A possible meaning of a name: ``expression`` as a tensor laid out as ``dims``."""

    expression: Expr
    dims: Dims
    kind: str = TENSOR

    @property
    def value(self) -> TextValue:
        return TextValue(self.expression, self.dims, self.kind)

    @property
    def is_upstream(self) -> bool:
        return isinstance(self.expression, Tensor) and self.expression.role == "adjoint"

    @property
    def meaning(self) -> str | TextValue:
        """The meaning as `read` accepts it: the name of an upstream gradient, or the value."""
        return self.expression.name if self.is_upstream else self.value


There = tuple[Ground, Mapping[tuple, Sequence[Candidate]]]  # the candidates by kind and shape


@dataclass
class Guess:
    """The inferred names: ``known`` meanings, and how many claims they make right. They are
    ``certain`` even for a wrong claim if shapes leave only one.
    """

    known: dict[str, str | TextValue] = field(default_factory=dict)
    right: int = 0
    certain: bool = True

    @property
    def words(self) -> list[str]:
        return [f"{name}={_said(meant)}" for name, meant in self.known.items()]


def _said(meant: str | TextValue) -> str:
    return meant if isinstance(meant, str) else formula(meant.expression)


def guessed(
    unknown: UnknownNames, ground: Ground, read: Read, settled: Collection[str] = ()
) -> Guess:
    """Infer as many of the ``unknown`` names as possible; ``read`` reads the lines of one claim, or
    all of them, with some names known. Names in ``settled``, and their gradients, are excluded.

    Common synonyms of an input are used if they make a claim right or nothing else does; synonyms
    of a target always.
    """
    names = TextNames(ground.original, {})
    words = meant_by_words(unknown.names, names)
    sure = [n for n, ours in words.items() if is_target(n) or n.lower() == ours.lower()]
    certain = {name: words[name] for name in sure}
    best = Guess(certain=False)
    for known in dict.fromkeys((tuple(certain.items()), tuple(words.items()))):
        guess = _guessed_beside(dict(known), unknown, ground, read, settled)
        best = max(best, guess, key=lambda g: (g.right, g.certain, len(g.known)))
        if best.right and set(unknown.names) <= set(best.known):
            break
    return best


def _guessed_beside(
    known: Mapping[str, str],
    unknown: UnknownNames,
    ground: Ground,
    read: Read,
    settled: Collection[str],
) -> Guess:
    """The same, with ``known`` synonyms."""
    groups = _groups(ground, settled)
    gradients = [name for name in unknown.gradients if name not in known]
    taken = {*unknown.read, *known.values()}
    inputs = [t.name for t in ground.original.differentiable if t.name not in taken]
    best = Guess(certain=False)
    if len(inputs) == len(gradients) == 1:
        pairs = {**known, gradients[0]: inputs[0]}
        return _with_inputs(pairs, unknown, (ground, groups), read)
    for own in permutations(inputs, len(gradients)):
        pairs = {**known, **dict(zip(gradients, own, strict=True))}
        guess = _with_inputs(pairs, unknown, (ground, groups), read)
        best = max(best, guess, key=lambda g: (g.right, len(g.known)))
    return best


def _with_inputs(
    inputs: Mapping[str, str], unknown: UnknownNames, there: There, read: Read
) -> Guess:
    guess = Guess(dict(inputs))
    claims = sorted(unknown.claims.items(), key=lambda pair: len(pair[1]))
    for name, needed in claims:
        left = [n for n in needed if n not in guess.known]
        found = _fitting(left, name, guess.known, there, read)
        if found is not None:
            guess.known |= found.known
            guess.right += found.right
        guess.certain &= found is not None and (found.right > 0 or found.certain)
    return guess


def _fitting(
    left: Sequence[str], claim: str | None, known: Mapping, there: There, read: Read
) -> Guess | None:
    """Values for the names ``left`` that make the claim right, or the only ones that fit."""
    ground, groups = there
    if len(groups) ** len(left) > MOST_READINGS:
        return None
    refused: list[str] = []
    fitting: list[dict[str, TextValue]] = []
    for shapes in product(groups.items(), repeat=len(left)):
        many = len(refused) > len(groups) ** (len(left) - 1)
        if many and len({*refused}) == 1 and refused[0]:
            return None  # right for any values
        opaque = {n: _opaque(n, group[0]) for n, (_, group) in zip(left, shapes, strict=True)}
        try:
            reading = read({**known, **opaque}, claim)
        except QuestionError as error:
            refused.append(error.problem)
            continue
        refused.append("")
        if any(c.misaligned or c.note for c in reading.claims):
            continue
        if not _all_matter(opaque, reading):
            return None  # right or wrong for any values: nothing learned
        pairs = list(zip(left, shapes, strict=True))
        likely = {(n, c): _unlikeness(n, c) for n, (_, group) in pairs for c in group}
        choices = sorted(
            product(*(group for _, (_, group) in pairs)),
            key=lambda cs: sum(likely[n, c] for n, c in zip(left, cs, strict=True)),
        )
        for chosen in choices[:MOST_TRIED]:
            meant = dict(zip(left, chosen, strict=True))
            found = {name: candidate.meaning for name, candidate in meant.items()}
            if all(_is_right(c, meant, ground, reading) for c in reading.claims):
                return Guess(found, 1)
            fitting.append(found)
    return Guess(fitting[0]) if len(fitting) == 1 else None


def _unlikeness(name: str, candidate: Candidate) -> float:
    """Sort key: the dissimilarity of names, so that the most similar of equal values wins."""
    return -SequenceMatcher(None, name.lower(), str(candidate.expression).lower()).ratio()


def _opaque(name: str, like: Candidate) -> TextValue:
    """A value of which only the shape is known; a label stays a label."""
    if like.kind == INDEX:
        return like.value
    axes = [axis for axis in like.dims if axis is not None]
    return TextValue(Tensor(f"unknown {name}", axes, role="statement"), like.dims, like.kind)


def _all_matter(opaque: Mapping[str, TextValue], reading: Reading) -> bool:
    """Whether every value affects the claimed gradients."""
    met = {t.name for c in reading.claims for t in tensors_in(c.actual)}
    return all(value.expression.name in met for value in opaque.values())


def _is_right(
    claim: Claim, meant: Mapping[str, Candidate], ground: Ground, reading: Reading
) -> bool:
    e = claim.actual
    names = {f"unknown {name}": c.expression for name, c in meant.items()}
    e = e.xreplace({t: along(names[t.name], t) for t in tensors_in(e) if t.name in names})
    arrives = any(c.is_upstream for c in meant.values())
    upstream = None if arrives else given_upstream(reading)
    if upstream is not None:
        e = for_any_upstream(e, ground.chain, upstream)
    evaluations = ground.names.evaluations
    try:
        if not difference_at(evaluations[:1], claim.of, e) < EQUAL:
            return False
        return difference_at(evaluations, claim.of, e) < EQUAL
    except (Unevaluable, KeyError):
        return False


def _groups(ground: Ground, settled: Collection[str]) -> dict[tuple, list[Candidate]]:
    """The candidates by kind and shape."""
    groups: dict[tuple, list[Candidate]] = {}
    for candidate in dict.fromkeys(_candidates(ground, settled)):
        key = (candidate.kind, candidate.dims)
        key += (candidate.expression,) if candidate.kind == INDEX else ()
        groups.setdefault(key, []).append(candidate)
    return groups


def _candidates(ground: Ground, settled: Collection[str]) -> Iterator[Candidate]:
    definition = ground.original
    names = TextNames(definition, {})
    whole = max((names.dims(t) for t in definition.differentiable), key=len, default=())
    own = {s.name for s in definition.statements}
    parts = {s.name: s.expression for s in ground.definition.statements if s.name not in own}
    for label in definition.labels:
        yield Candidate(label, names.dims(label), INDEX)
    inputs = [t for t in definition.inputs if t.role != "label"]
    statements = [s.tensor for s in definition.statements]
    unnamed = [s.tensor for s in ground.definition.statements if s.name in parts]
    for tensor in (*inputs, *statements, *unnamed, *ground.chain.upstreams):
        if {tensor.name, f"d{tensor.name}"} & {*settled}:
            continue
        e = written_out(tensor, parts)
        for dims in dict.fromkeys(_layouts(tensor, whole, definition)):
            yield Candidate(e, dims)
            if tensor.role == "statement" and e.is_nonnegative and {*tensor.home} != {*whole}:
                yield Candidate(1 / e, dims)
    for scalar, _ in definition.scalars:
        yield Candidate(scalar, (), NUMBER)
    for axis in definition.independent_axes:
        yield Candidate(axis, (), NUMBER)


def _layouts(tensor: Tensor, whole: Dims, definition) -> Iterator[Dims]:
    """Layouts of a tensor: its own axes, and those after a reduction with keepdim."""
    home = {*tensor.home}
    yield tuple(definition.in_order(home))
    kept = tuple(axis if axis in home else None for axis in whole)
    while kept and kept[0] is None:  # a leading size 1 makes no difference
        kept = kept[1:]
    if home < {*whole} and home:
        yield kept


def with_found(remedy: str, guess: Guess, unknown: UnknownNames) -> str:
    """The remedy for names that remain undefined, with the meanings of the others."""
    if len(unknown.names) == 1 or not guess.right:
        return remedy
    said = {name: _said(meant) for name, meant in guess.known.items()}
    line = " ".join(f"--let {name}={said.get(name, '...')}" for name in unknown.names)
    _, *rest = remedy.split("\n")
    return "\n".join([f"say what they are: {line}", *rest])
