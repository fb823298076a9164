"""Reads a formula: text in, claims about gradients out, as expressions in named axes.

The stages: `Source` bounds the text and parses it; `TextProgram` runs its lines over the whitelist
of `Expressions`; what every gradient holds at the end is laid on the gradient's own axes
(`laid_on`). A text of several lines is run a second time, with every gradient that it assigned and
reads again standing for the true one, so that a line is not blamed for those above it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sympy import Expr

from derive.claims.reading.claims import Claim as Claim
from derive.claims.reading.claims import as_written, claim_of, with_name
from derive.claims.reading.memory import Version
from derive.claims.reading.names import TextNames, exact
from derive.claims.reading.notation import uses_notation
from derive.claims.reading.pasted import Pasted, pasted_in
from derive.claims.reading.program import TextProgram
from derive.claims.reading.refusals import Misaligned as Misaligned
from derive.claims.reading.refusals import NotUnderstood as NotUnderstood
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.roles import upstream_arguments
from derive.claims.reading.source import Source
from derive.claims.reading.unknown import UnknownNames, check_known, lines_for
from derive.claims.reading.values import Space, TextValue
from derive.gradient.chain.chain import adjoint_of
from derive.language.notation.definition import Definition
from derive.language.notation.layout import shape
from derive.language.symbols import Tensor


@dataclass(frozen=True)
class Reading:
    """What a text claims. ``definition`` has the twins of axes that the text needed; ``upstream``
    is the number that it assigned to the gradient that arrives; ``single`` says that it is one
    expression and not a backward of several lines, ``by_name`` that it is in the notation.
    ``remarks`` are about what torch does with it and that is not seen in it; ``returned`` the names
    of the gradients that a function returns. ``of_function`` says that it is a function with
    arguments, and ``roles`` what those are taken for.
    """

    definition: Definition
    claims: tuple[Claim, ...]
    upstream: Expr | None
    mentions_upstream: bool
    single: bool
    by_name: bool = False
    remarks: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    of_function: bool = False
    roles: tuple[str, ...] = ()


def read(
    text: str,
    definition: Definition,
    of: Tensor,
    let: Mapping[str, str | TextValue] | None = None,
    source: str = "formula",
    sizes: Mapping[str, Expr] = {},
    only: str | None = None,
    scales: Mapping[str, Expr] = {},
) -> Reading:
    """What ``text`` claims about the gradients of ``definition``.

    A bare expression is about the gradient of ``of``; ``dgain = expression`` about that of gain.
    ``let`` maps names of the text to those of the mathematics, or to numbers; ``source`` is what
    the text is called in messages, ``sizes`` are names of sizes that no axis has, and ``only`` is
    the gradient whose lines alone are read. Raises `NotUnderstood` for whatever cannot be read.

    Long: all but three may be left out.
    """
    text = Source(text, source)
    tree = text.parsed()
    try:
        known = KnownNames(definition, let or {}, sizes, scales)
        return _read_pasted(text, tree, known, of, only)
    except Refusal as error:
        raise text.placed(error) from None
    except RecursionError:
        raise text.refused("this is nested too deeply", "name its parts") from None


def takes_in(text: str) -> tuple[set[str], set[str]]:
    """The arguments of the forward, where a text has its signature, and those of them that nothing
    reads.
    """
    try:
        tree = Source(text, "").parsed()
        takes = {*pasted_in(tree).takes}
    except (NotUnderstood, Refusal, RecursionError):
        return set(), set()
    names = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    return takes, takes - {n.id for n in names if isinstance(n.ctx, ast.Load)}


@dataclass(frozen=True)
class KnownNames:
    """What is known of the names of a text: the arguments of `read`."""

    definition: Definition
    let: Mapping[str, str | TextValue]
    sizes: Mapping[str, Expr]
    scales: Mapping[str, Expr]

    def names(self, arriving: Mapping[str, str]) -> TextNames:
        names = TextNames(self.definition, {**arriving, **self.let}, self.sizes)
        names.scales = self.scales
        return names


def _read_pasted(
    text: Source, tree: ast.Module, known: KnownNames, of: Tensor, only: str | None
) -> Reading:
    """The text with what it computes forward; where that is not read, what is saved there goes by
    its names.
    """
    notation, problem = uses_notation(tree), None
    for pasted in _both(tree):
        upstreams = (adjoint_of(output).name for output in known.definition.outputs)
        names = known.names(dict(zip(pasted.arriving, upstreams, strict=False)))
        if pasted.arguments is not None:
            arriving = upstream_arguments(pasted.arguments, names)
            names = known.names(arriving)
            names.of_function = True
            pasted = replace(pasted, arriving=tuple(arriving), lines=_with_defaults(pasted, names))
        if only is not None:
            pasted = replace(pasted, lines=tuple(lines_for(pasted, only)), returned=(only,))
        try:
            check_known(pasted, names)
            return _in_fitting_layout(text, pasted, notation, names, of)
        except UnknownNames as error:
            if isinstance(problem, UnknownNames):
                problem.without_forward = error
            else:
                problem = error
        except Refusal as error:
            problem = problem or error
    raise problem


def _in_fitting_layout(
    text: Source, pasted: Pasted, notation: bool, names: TextNames, of: Tensor
) -> Reading:
    """The reading; where its shapes do not fit, and those of examples in columns all do, that."""
    reading = _read(text, pasted, notation, names, of)
    turned = names.in_columns() if any(c.misaligned for c in reading.claims) else None
    if turned is None:
        return reading
    try:
        other = _read(text, pasted, notation, turned, of)
    except Refusal:
        return reading
    if any(c.misaligned for c in other.claims):
        return reading
    said = ", ".join(f"{name} {shape(dims)}" for name, dims in turned.turned.items())
    return replace(other, remarks=(f"read with examples in columns: {said}", *other.remarks))


def _both(tree: ast.Module) -> list[Pasted]:
    """The text with what it computes forward, where that is read, and without it."""
    try:
        first = pasted_in(tree)
    except Refusal as error:
        try:
            return [pasted_in(tree, with_forward=False)]
        except Refusal:
            raise error from None
    other = pasted_in(tree, with_forward=False)
    try:
        same = [*map(ast.dump, first.lines)] == [*map(ast.dump, other.lines)]
    except ValueError:  # a number that is too long to print, which either reading refuses
        same = True
    return [first] if same else [first, other]


def _with_defaults(pasted: Pasted, names: TextNames) -> tuple[ast.stmt, ...]:
    """The lines, with the numbers that arguments have as defaults and that nothing else says."""
    free = [t.name for t, _ in names.definition.scalars if t.name not in (pasted.arguments or ())]
    lines = []
    for name, default in pasted.defaults.items():
        if not names.knows(name) and not free:
            node = ast.Assign([ast.Name(name, ast.Store())], default)
            lines.append(ast.copy_location(node, default))
    return (*lines, *pasted.lines)


def _read(text: Source, pasted: Pasted, notation: bool, names: TextNames, of: Tensor) -> Reading:
    lines = list(pasted.lines)
    first = _first(text, names, of, lines, notation)
    space = first.space
    computed = names.adjoints.keys() - {*names.upstreams}
    claimed = {n: c for n, c in first.cells.items() if n in computed}
    left = [n for n in map(names.ours, pasted.returned) if n in computed and n not in claimed]
    if left:
        raise Refusal(f"{', '.join(left)} is returned but not computed", "paste the lines that do")
    if not claimed:
        raise _no_claim(names, lines)
    second = first
    if len(lines) > 1:
        finals = {name: cell.version for name, cell in claimed.items()}
        second = _again(first, Space(space.definition, notation), lines, finals)
    claims = [claim_of(name, first, second) for name in claimed]
    last = second
    third = _again(first, Space(second.space.definition, notation, as_written=True), lines)
    if third is not first:
        claims = [as_written(claim, third) for claim in claims]
        last = third
    if not notation and not space.by_position and any(c.misaligned for c in claims):
        last = _again(first, Space(last.space.definition, by_name=True), lines)
        claims = [with_name(claim, last) for claim in claims]
    return Reading(
        last.space.definition,
        tuple(sorted(claims, key=lambda claim: claim.line)),
        _upstream(first, pasted),
        first.reads_upstream or bool(pasted.arriving),
        len(lines) == 1,
        notation,
        (*(f"read with {words}, its default" for words in pasted.assumed), *first.space.remarks),
        tuple(map(names.ours, pasted.returned)),
        pasted.arguments is not None,
        _roles(pasted, names),
    )


def _roles(pasted: Pasted, names: TextNames) -> tuple[str, ...]:
    """The arguments that are upstream gradients under names of their own."""
    pairs = ((own, names.ours(own)) for own in (*(pasted.arguments or ()), *pasted.arriving))
    return tuple(f"{own}={up}" for own, up in dict(pairs).items() if own != up in names.upstreams)


def _first(
    text: Source, names: TextNames, of: Tensor, lines: list[ast.stmt], notation: bool
) -> TextProgram:
    """The lines as they stand; of what sizes are taken to be multiples is known in all of them."""
    first = TextProgram(text, Space(names.definition, notation), names, of)
    first.run(lines)
    if not first.space.divided:
        return first
    remarks = first.space.remarks
    again = _again(first, Space(first.space.definition, notation), lines)
    again.space.remarks = remarks | again.space.remarks
    return again


def _again(
    first: TextProgram,
    space: Space,
    lines: list[ast.stmt],
    finals: Mapping[str, Version] | None = None,
) -> TextProgram:
    """The same lines under other assumptions; ``first`` where they cannot be read so."""
    program = TextProgram(first.source, space, first.names, first.of, finals)
    try:
        program.run(lines)
    except Refusal:
        return first
    return program


def _upstream(program: TextProgram, pasted: Pasted) -> Expr | None:
    """The number that arrives: one that the text says, or the default of an argument that nothing
    reads.
    """
    unread = [n for n in pasted.arriving if n in pasted.defaults and not program.reads_upstream]
    if len(unread) == len(program.names.upstreams) == 1:
        return exact(str(pasted.defaults[unread[0]].value)).expression
    mapped = program.names.let.get(program.names.upstreams[0])
    return mapped.expression if isinstance(mapped, TextValue) else program.upstream


def _no_claim(names: TextNames, lines: list[ast.stmt]) -> Refusal:
    return Refusal(
        "no line assigns a gradient",
        f"write the formula alone, or one of {', '.join(names.adjoints)} left of =; "
        "a name of your own: --let grad_x=dx",
        lines[-1],
    )
