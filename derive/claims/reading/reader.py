"""Reads a formula: text in, claims about gradients out, as expressions in named axes.

The stages: `Source` limits the text and parses it; `TextProgram` runs its lines over the whitelist
of `Expressions`; the final value of each gradient is laid out along that gradient's axes
(`laid_out`). A text of several lines is run a second time with the true gradient in place of every
gradient that it assigned and reads again, so that a line is not blamed for errors above it.
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
    """The claims of a text. ``definition`` includes the twin axes it needed; ``upstream`` is the
    number it assigned to the upstream gradient; ``single`` marks one expression, as opposed to a
    backward of several lines, and ``by_name`` one in the notation. ``remarks`` state torch
    behaviour that the text does not show; ``returned`` are the gradients a function returns.
    ``of_function`` marks a function with arguments, and ``roles`` says how those were understood.
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
    """Read the claims of ``text`` about the gradients of ``definition``.

    A bare expression is a claim about the gradient of ``of``; ``dgain = expression`` about that of
    gain. ``let`` maps names of the text to names of the forward or to numbers; ``source`` is how
    messages refer to the text, ``sizes`` are names of sizes that no axis has; with ``only``, the
    lines of that gradient alone are read. Raises `NotUnderstood`.

    Long: all but three arguments are optional.
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
    """The forward's parameters, if the text has its signature, and those that the text
    never reads.
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
    """The known names of a text: the arguments of `read`."""

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
    """Read the text with its forward; if that fails, without it, so that saved values are known by
    name.
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
    """Read the text; if its shapes do not fit but do with examples as columns, use that layout."""
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
    """The text with its forward, if it can be read, and without it."""
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
    except ValueError:  # an integer too long to print; both readings refuse it
        same = True
    return [first] if same else [first, other]


def _with_defaults(pasted: Pasted, names: TextNames) -> tuple[ast.stmt, ...]:
    """The lines, preceded by arguments' numeric defaults that nothing else defines."""
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
    """Upstream gradients among the arguments that have names of their own."""
    pairs = ((own, names.ours(own)) for own in (*(pasted.arguments or ()), *pasted.arriving))
    return tuple(f"{own}={up}" for own, up in dict(pairs).items() if own != up in names.upstreams)


def _first(
    text: Source, names: TextNames, of: Tensor, lines: list[ast.stmt], notation: bool
) -> TextProgram:
    """The lines as they stand; assumptions about divisible sizes hold in all of them."""
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
    """The same lines under other assumptions; ``first`` if they cannot be read so."""
    program = TextProgram(first.source, space, first.names, first.of, finals)
    try:
        program.run(lines)
    except Refusal:
        return first
    return program


def _upstream(program: TextProgram, pasted: Pasted) -> Expr | None:
    """The upstream gradient as a number: assigned in the text, or the default of an argument
    nothing reads.
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
