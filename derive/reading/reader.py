"""Reads a formula: text in, claims about gradients out, as expressions in named axes.

The stages: `Source` bounds the text and parses it; `Program` runs its lines over the whitelist of
`Expressions`; what every gradient holds at the end is laid on the gradient's own axes (`laid_on`).
A text of several lines is run a second time, with every gradient that it assigned and reads again
standing for the true one, so that a line is not blamed for those above it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sympy import Expr

from derive.chain.chain import adjoint_of
from derive.language.symbols import Tensor
from derive.notation.definition import Definition
from derive.reading.laying import laid_on
from derive.reading.lines import Line
from derive.reading.memory import Cell, Version
from derive.reading.names import Names
from derive.reading.notation import uses_notation
from derive.reading.pasted import Pasted, pasted_in
from derive.reading.program import Program
from derive.reading.refusals import Misaligned as Misaligned
from derive.reading.refusals import Mismatch, Refusal
from derive.reading.refusals import NotUnderstood as NotUnderstood
from derive.reading.source import Source
from derive.reading.unknown import UnknownNames, check_known, lines_for
from derive.reading.values import Space, Value


@dataclass(frozen=True)
class Claim:
    """A text says that the gradient of ``of`` is ``actual``; ``line`` and ``source`` finished it.

    Both expressions are along the axes of ``of``. ``actual`` is in values of the forward, the
    upstream gradient, and gradients that the text does not assign. In ``given`` every other
    gradient that the text assigned, and that was read as it stands at the end, keeps its name: as
    if those lines were right. Both are None where the shapes do not fit (``misaligned``). ``note``
    tells of a shape that is equal up to broadcasting. ``lines`` are those that gave values their
    names on the way to ``given``.
    """

    of: Tensor
    line: int
    source: str
    actual: Expr | None
    given: Expr | None
    misaligned: Misaligned | None = None
    note: str = ""
    written: Expr | None = None
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Reading:
    """What a text claims. ``definition`` has the twins of axes that the text needed; ``upstream``
    is the number that it assigned to the gradient that arrives; ``single`` says that it is one
    expression and not a backward of several lines, ``by_name`` that it is in the notation.
    ``remarks`` are about what torch does with it and that is not seen in it; ``returned`` the names
    of the gradients that a function returns.
    """

    definition: Definition
    claims: tuple[Claim, ...]
    upstream: Expr | None
    mentions_upstream: bool
    single: bool
    by_name: bool = False
    remarks: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()


def read(
    text: str,
    definition: Definition,
    of: Tensor,
    let: Mapping[str, str | Value] | None = None,
    source: str = "formula",
    sizes: Mapping[str, Expr] = {},
    only: str | None = None,
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
        return _read_pasted(text, tree, definition, of, let or {}, sizes, only)
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


def _read_pasted(
    text: Source,
    tree: ast.Module,
    definition: Definition,
    of: Tensor,
    let: Mapping[str, str | Value],
    sizes: Mapping[str, Expr],
    only: str | None,
) -> Reading:
    """The text with what it computes forward; where that is not read, what is saved there goes by
    its names.

    Long: the arguments are those of `read`.
    """
    notation, problem = uses_notation(tree), None
    for pasted in dict.fromkeys((pasted_in(tree), pasted_in(tree, with_forward=False))):
        upstreams = (adjoint_of(output).name for output in definition.outputs)
        arriving = dict(zip(pasted.arriving, upstreams, strict=False))
        names = Names(definition, {**arriving, **let}, sizes)
        if only is not None:
            pasted = replace(pasted, lines=tuple(lines_for(pasted, only)), returned=(only,))
        try:
            check_known(pasted, names)
            return _read(text, pasted, notation, names, of)
        except UnknownNames as error:
            if isinstance(problem, UnknownNames):
                problem.without_forward = error
            else:
                problem = error
        except Refusal as error:
            problem = problem or error
    raise problem


def _read(text: Source, pasted: Pasted, notation: bool, names: Names, of: Tensor) -> Reading:
    lines = list(pasted.lines)
    space = Space(names.definition, notation)
    first = Program(text, space, names, of)
    first.run(lines)
    computed = names.adjoints.keys() - {*names.upstreams}
    claimed = {n: c for n, c in first.cells.items() if n in computed}
    if not claimed:
        raise _no_claim(names, lines)
    second = first
    if len(lines) > 1:
        finals = {name: cell.version for name, cell in claimed.items()}
        second = _again(first, Space(space.definition, notation), lines, finals)
    claims = [_claim(name, first, second) for name in claimed]
    last = second
    third = _again(first, Space(second.space.definition, notation, as_written=True), lines)
    if third is not first:
        claims = [_as_written(claim, third) for claim in claims]
        last = third
    if not notation and not space.by_position and any(c.misaligned for c in claims):
        last = _again(first, Space(last.space.definition, by_name=True), lines)
        claims = [_with_name(claim, last) for claim in claims]
    return Reading(
        last.space.definition,
        tuple(sorted(claims, key=lambda claim: claim.line)),
        _upstream(first),
        first.reads_upstream or bool(pasted.arriving),
        len(lines) == 1,
        notation,
        tuple(first.space.remarks),
        tuple(map(names.ours, pasted.returned)),
    )


def _again(
    first: Program, space: Space, lines: list[ast.stmt], finals: Mapping[str, Version] | None = None
) -> Program:
    """The same lines under other assumptions; ``first`` where they cannot be read so."""
    program = Program(first.source, space, first.names, first.of, finals)
    try:
        program.run(lines)
    except Refusal:
        return first
    return program


def _upstream(program: Program) -> Expr | None:
    mapped = program.names.let.get(program.names.upstreams[0])
    return mapped.expression if isinstance(mapped, Value) else program.upstream


def _no_claim(names: Names, lines: list[ast.stmt]) -> Refusal:
    return Refusal(
        "no line assigns a gradient",
        f"write the formula alone, or one of {', '.join(names.adjoints)} left of =; "
        "a name of your own: --let grad_x=dx",
        lines[-1],
    )


def _claim(name: str, first: Program, second: Program) -> Claim:
    """The claim that the cell called ``name`` makes, in both runs."""
    of = first.names.adjoints[name]
    cell = first.cells[name]
    node = max(cell.node, first.bound[name], key=lambda node: node.lineno)
    claim = Claim(of, node.lineno, first.source.line_of(node), None, None)
    try:
        actual, note = _laid(first, cell, of)
    except Mismatch as error:
        return _misaligned_claim(claim, error, first, second, name)
    try:
        given, _ = _laid(second, second.cells[name], of)
    except Mismatch:  # with the true gradients its shapes fit no longer: it is judged as it stands
        given = actual
    lines = tuple(line for _, line in second.written if line.number <= node.lineno)
    return replace(claim, actual=actual, given=given, note=note, lines=lines)


def _misaligned_claim(
    claim: Claim, error: Mismatch, first: Program, second: Program, name: str
) -> Claim:
    """A claim that does not fit; where only the gradients that it reads do not, it is judged as if
    those were right.
    """
    cell, again = first.cells[name], second.cells[name]
    try:
        given, note = _laid(second, again, claim.of)
        return replace(claim, actual=given, given=given, note=note)
    except Mismatch:
        place = error.node or cell.node.value or cell.node
        spot = first.source.spot_of(place)
        misaligned = cell.broken or Misaligned(error.problem, error.remedy, spot)
        return replace(claim, misaligned=misaligned)


def _as_written(claim: Claim, program: Program) -> Claim:
    """A claim with what was typed."""
    cell = program.cells.get(f"d{claim.of.name}")
    if claim.actual is None or cell is None:
        return claim
    try:
        return replace(claim, written=_laid(program, cell, claim.of)[0])
    except Mismatch:
        return claim


def _laid(program: Program, cell: Cell, of: Tensor) -> tuple[Expr, str]:
    if cell.broken is not None:
        raise Mismatch(cell.broken.problem, cell.broken.remedy)
    return laid_on(program.space, cell.value, of, program.names.dims(of))


def _with_name(claim: Claim, by_name: Program) -> Claim:
    """A misaligned claim with what it says if its axes are aligned by name, where that fits."""
    cell = by_name.cells.get(f"d{claim.of.name}")
    if claim.misaligned is None or cell is None or not by_name.space.by_name:
        return claim
    try:
        expression, _ = _laid(by_name, cell, claim.of)
    except Mismatch:
        return claim
    return replace(claim, misaligned=replace(claim.misaligned, by_name=expression))
