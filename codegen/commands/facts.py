"""The facts of a derivation, by which two of them are compared.

In: a forward, and the module that was derived of it. Out: a `ForwardFacts`, which is plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sympy import Expr, count_ops

from codegen.commands.comparison import FORWARD, TAKES, DerivationFact, ForwardFacts
from codegen.files.digest import digest
from codegen.files.quality import Collectives, Emitted, Moves, Quality, Traffic
from derive.language.errors import QuestionError
from derive.language.formulas.text import formula
from derive.language.notation.definition import Definition, Statement
from derive.language.notation.forward import Forward
from derive.language.notation.layout import layouts_of, shape
from derive.language.symbols import Tensor

LARGEST_INLINED = 2000  # operations of one expression; larger ones keep their names


def derivation_facts(forward: type[Forward], emitted: Emitted) -> ForwardFacts:
    """The facts about ``forward`` in `Emitted`."""
    facts = [*_of_definition(forward.definition)]
    facts += _of_quality(emitted.quality)
    return ForwardFacts(emitted.quality.name, tuple(facts))


def _of_definition(definition: Definition) -> Iterator[DerivationFact]:
    layouts, optional = layouts_of(definition), dict(definition.optional)
    takes = [
        f"{t} {shape(layouts[t.name])}" + (f" = {optional[t.name]:g}" if t.name in optional else "")
        for t in definition.arguments
    ]
    takes += [name for name, _ in definition.size_arguments]
    takes += [f"{t} = {default}" for t, default in definition.scalars]
    takes += [f"{each.label} ignored where {each.default}" for each in definition.ignoring]
    takes += [f"reduction {word}" for word, _ in definition.reductions]
    yield DerivationFact(TAKES, tuple(takes))
    if definition.demands:
        demands = (f"{d.expression} {d.domain}" for d in definition.demands)
        yield DerivationFact("refuses other values than", tuple(demands))
    yield DerivationFact(
        FORWARD,
        tuple(f"{s.tensor} = {formula(s.expression)}" for s in definition.statements),
        _function(definition),
    )


def _function(definition: Definition) -> str:
    """A hash of the outputs as expressions in the arguments, for each reduction: independent of the
    names of intermediate values.
    """
    outputs, reductions = definition.outputs, definition.reductions
    before = [s for s in definition.statements if s.tensor not in outputs]
    last = reductions or [("", definition.by_name[t.name]) for t in outputs]
    try:
        found = [f"{word} {'; '.join(_inlined([*before, s]))}" for word, s in last]
    except QuestionError:  # an expression that cannot stand in another one
        return ""
    return digest(*found)


def _inlined(statements: Iterable[Statement]) -> list[str]:
    """The last statement with the others inlined; before it those that are too large for that."""
    known: dict[Tensor, Expr] = {}
    large, whole = [], None
    for statement in statements:
        whole = statement.expression.xreplace(known)
        if count_ops(whole) > LARGEST_INLINED:
            large.append(f"{statement.tensor} = {whole}")
        else:
            known[statement.tensor] = whole
    return [*large, str(whole)]


def _of_quality(quality: Quality) -> Iterator[DerivationFact]:
    for line in quality.closed_form:
        yield DerivationFact(line.partition(" = ")[0], (line,))
    yield DerivationFact("saved for backward", quality.saved)
    yield from _moved("forward", quality.forward)
    yield from _moved("backward", quality.backward)
    yield DerivationFact("backward, reductions", quality.reductions)
    yield DerivationFact("backward, operations in its formulas", (str(quality.operations),))
    yield DerivationFact("may be infinite, NaN or far off", quality.unsafe)
    yield DerivationFact("proved", (quality.proved,), in_names=False)
    for split in quality.split:
        yield DerivationFact(
            f"split over ranks along {split.axis}", tuple(_told(split)), in_names=False
        )


def _moved(what: str, traffic: Traffic) -> Iterator[DerivationFact]:
    lines = [f"at least {_shown(traffic.kernel)}", f"{_shown(traffic.lines)} in torch"]
    lines += [f"{_shown(loops)} in a kernel" for loops in traffic.loops]
    yield DerivationFact(f"{what}, tensors of full size", tuple(lines), in_names=False)
    yield DerivationFact(f"{what}, larger than full size", traffic.larger)


def _shown(moves: Moves) -> str:
    return f"{moves.reads} read and {moves.writes} written"


def _told(split: Collectives) -> Iterator[str]:
    if split.refused:
        yield split.refused
        return
    yield f"forward: {'; '.join(split.forward) or 'nothing'}"
    yield f"backward: {'; '.join(split.backward) or 'nothing'}"
