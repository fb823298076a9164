"""Every kind of array node: what its entries are, as three readers and two oracles have them, and
whether anything of it is missing.

The readers share the node's ``entry``; the oracles, ``tests/evaluate.py`` and the interpreter of
statements on torch tensors, share nothing with it.
"""

import ast
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random

import pytest
import torch
from evaluate import Numbers, close, irrational
from indexed import written_out
from sympy import Expr, Integer, Symbol

import derive
from codegen.lowering.nodes import row_of
from codegen.targets.torch.interpret import Interpreter
from derive import Flatten, Forward, Input, Label, OneHot, Position, Rename, Solve, Sum
from derive.claims.checking.numbers.arithmetic import Floating
from derive.claims.checking.numbers.evaluation import Evaluation, Point
from derive.gradient.chain.chain import derive_chain
from derive.language import nodes
from derive.language.diagonals import Identity
from derive.language.formulas.latex import latex_formula
from derive.language.formulas.mathml import mathml
from derive.language.formulas.text import formula
from derive.language.formulas.unicode import unicode_formula
from derive.language.matrices import Unordered
from derive.language.nodes import ArrayNode
from derive.language.reading_at import At
from derive.language.symbols import Axis, axes_of
from derive.language.traversal import everywhere
from derive.proof.proving.every_size import IndexedForward
from derive.proof.proving.small_batch import LargestOf, SmallBatch
from derive.proof.zero.indicator import Indicator

N, M, T, E, K, C, J, L = map(Axis, ("N", "M", "T", "E", "K", "C", "J", "L"))
P = Axis("P", 4)
SIZES = {N: 3, M: 3, T: 4, E: 2, K: 8, C: 3, J: 2, L: 2, P: 4}


class Everything(Forward):
    """Something of every sort, so that the sample nodes have tensors and axes."""

    x = Input(N, T)
    z = Input(N, T, E)
    a = Input(T)
    table = Input(C)
    matrix = Input(J, L)
    right = Input(J)
    labels = Label(N)
    flat = Flatten(z, T, E, into=K)
    pairs = x + Sum(Rename(x, N, M), M)
    read = At(x, T, 2 * Position(P) - 1)
    picked = Sum(OneHot(labels, C) * table, C)
    solved = Sum(Solve(matrix, right, J, L), L)
    y = Sum(flat, K) + Sum(a * pairs, T) + Sum(read, P) + picked + solved


DEFINITION = Everything.definition
x, z, a, _, matrix, right, labels = DEFINITION.inputs
LARGEST = nodes.ArgMax.over(x, [T])
ZERO, ONE = Integer(0), Integer(1)
STATES = (nodes.Recurrence, nodes.RecurrenceBefore), (nodes.Transposed, nodes.TransposedBefore)
# Of every kind of node some that show all that it can do; a new one goes in here.
SAMPLES: dict[type[ArrayNode], tuple[Expr, ...]] = {
    nodes.Sum: (Sum.over(x, [T]), Sum.over(x * a, [N, T])),
    **{kind: (kind.over(x, [T]),) for kind in (nodes.Max, nodes.Peak, nodes.SubtractedPeak)},
    nodes.ArgMax: (LARGEST,),
    nodes.OneHot: (
        OneHot.over(labels, [C]),
        OneHot.over(Integer(2), [P]),
        OneHot.over(LARGEST, [T]),
    ),
    nodes.Position: (Position(T), Position(K)),
    Identity: (Identity(N, M), Identity(M, N)),
    nodes.Broadcast: (),  # gone before anything is derived
    nodes.Flatten: (Flatten.over(z, (T, E), (K,)),),
    nodes.Unflatten: (nodes.Unflatten.over(DEFINITION.by_name["flat"].tensor, (K,), (T, E)),),
    At: (
        At.over(x, T, 2 * Position(P) - 1),
        At.over(x, T, (Position(P) + 1) / 2, Integer(7)),
        At.over(x, T, T - 1 - Position(T)),
    ),
    **{k: (k.over(x, a, Sum.over(a, [T]), [T]), k.over(x, ONE, ZERO, [T])) for k in STATES[0]},
    **{k: (k.over(x, a, ZERO, [T]), k.over(x, ONE, ZERO, [T])) for k in STATES[1]},
    **{
        kind: (kind.over(x, [T]),)
        for kind in (
            *(nodes.LogCumSumExp, nodes.LogCumSumExpBack),
            *(nodes.LargestSoFar, nodes.NewMax),
        )
    },
    **{kind: (kind.over(matrix, (J, L)),) for kind in (nodes.Inverse, nodes.LogDet)},
    nodes.Cholesky: (nodes.Cholesky.over(matrix, (J, L)),),
    nodes.Solve: (Solve.over(matrix, right, (J, L)), Solve.over(matrix, right * x, (J, L))),
}
EVERY = [(kind, e) for kind, samples in SAMPLES.items() for e in samples]
ROOT = Path(derive.__file__).parents[1]
BASES = {
    *(nodes.Reduction, nodes.Reindexing, nodes.Reshaping, nodes.Whole, nodes.GoneAlong),
    *(nodes.MatrixNode, Unordered, nodes.Min),  # which becomes another node at once
}


def data() -> dict[str, dict[tuple[int, ...], int]]:
    """Small whole numbers, so that there are ties; factors that differ, and a matrix that is
    positive definite.
    """
    random, found = Random(5), {}
    for t in DEFINITION.inputs:
        places = product(*(range(SIZES[axis]) for axis in t.home))
        lowest, most = (0, SIZES[C]) if t == labels else (-1, 2)
        found[t.name] = {i: random.randrange(lowest, most) for i in places}
    found["a"] = {(0,): 2, (1,): -1, (2,): 3, (3,): 5}
    found["right"] = {(0,): 1, (1,): 2}
    found["matrix"] = {(0, 0): 3, (0, 1): 1, (1, 0): 1, (1, 1): 2}
    return found


DATA = data()


def order(e: Expr) -> tuple[Axis, ...]:
    return tuple(axis for axis in SIZES if axis in axes_of(e))


def number(e: Expr):
    return (
        Fraction(int(e.p), int(e.q)) if e.is_Rational else irrational(e.evalf(30)._to_mpmath(100))
    )


def by_small_batch(e: Expr) -> list:
    """Scalars, each exchanged for its number at the end."""
    batch = SmallBatch(DEFINITION, {axis: SIZES[axis] for axis in DEFINITION.independent_axes})
    known = {
        symbol: Integer(DATA[t.name][i])
        for t in DEFINITION.inputs
        for i, symbol in batch.symbols(t).items()
    }

    def of(part: Expr) -> Expr | None:
        if isinstance(part, Indicator) and part.values:
            values = [everywhere(value, of) for value in part.values]
            return Integer(int(values.index(max(values)) == part.place))
        if isinstance(part, Indicator):
            (place,) = (i for i in DATA["labels"] if f"[{i[0] + 1}]" in part.group)
            return Integer(int(DATA["labels"][place] == part.place))
        if isinstance(part, LargestOf):
            return max(everywhere(value, of) for value in part.args)
        return known.get(part)

    return [number(everywhere(entry, of)) for entry in batch.written_out(e, order(e)).values()]


def by_every_size(e: Expr) -> list:
    """Indexed sums, each at indices that are numbers at the end, counted from 1."""
    forward = IndexedForward(DEFINITION)
    indices = {axis: forward.index(axis) for axis in order(e)}
    known = {forward.sizes(axis)[0]: Integer(size) for axis, size in SIZES.items() if axis != K}
    for t in DEFINITION.inputs:
        for place, value in DATA[t.name].items():
            there = {axis: (Integer(k + 1),) for axis, k in zip(t.home, place, strict=True)}
            known[forward.entry(t, there)] = Integer(value + (t == labels))
    written, found = forward.written(e, indices), []
    for places in product(*(range(SIZES[axis]) for axis in order(e))):
        own = {}
        for axis, place in zip(order(e), places, strict=True):
            for index, part in reversed([*zip(indices[axis], forward.parts(axis), strict=True)]):
                place, inner = divmod(place, SIZES[part])
                own[index] = Integer(inner + 1)
        found.append(number(written_out(written, known | own, size_of).doit()))
    return found


def size_of(index: Symbol) -> int:
    return SIZES[Axis(index.name.partition("_")[2])]


def by_numbers(e: Expr) -> list:
    chain = derive_chain(DEFINITION)
    sizes = tuple((axis.name, SIZES[axis]) for axis in DEFINITION.independent_axes)
    values = {n: {i: Integer(v) for i, v in of.items()} for n, of in DATA.items()}
    return [*Evaluation(chain, Point(sizes, values), Floating()).entries(e, order(e)).values()]


def by_evaluate(e: Expr) -> list:
    oracle = Numbers(SIZES, definitions=DEFINITION.statements)
    oracle.known = {(n, i): Fraction(v) for n, of in DATA.items() for i, v in of.items()}
    return oracle.entries(e, order(e))


def by_torch(e: Expr) -> list:
    arguments = {}
    for t in DEFINITION.inputs:
        dtype = torch.long if t == labels else torch.float64
        shape = [SIZES[axis] for axis in t.home]
        arguments[t.name] = torch.tensor([*DATA[t.name].values()], dtype=dtype).reshape(shape)
    interpreter = Interpreter(DEFINITION, arguments)
    interpreter.run()
    own = order(e)
    whole = interpreter.value(e).broadcast_to(
        [SIZES[axis] if axis in own else 1 for axis in DEFINITION.axes]
    )
    kept = [axis for axis in DEFINITION.axes if axis in own]
    whole = whole.reshape([SIZES[axis] for axis in kept])
    return whole.permute([kept.index(axis) for axis in own]).double().flatten().tolist()


READERS = {"small batch": by_small_batch, "every size": by_every_size, "numbers": by_numbers}


@pytest.mark.parametrize(
    ("kind", "e"), EVERY, ids=[f"{kind.__name__} {k}" for k, (kind, _) in enumerate(EVERY)]
)
def test_the_entries_are_those_of_two_oracles(kind, e):
    assert type(e) is kind
    wanted = by_evaluate(e)
    found = {"torch": by_torch(e)} | {name: read(e) for name, read in READERS.items()}
    for name, entries in found.items():
        assert len(entries) == len(wanted)
        assert all(map(close, entries, wanted)), f"{name} has {entries}, not {wanted}"


def kinds(of: type[ArrayNode] = ArrayNode) -> Iterator[type[ArrayNode]]:
    """All classes of nodes, however they are named and wherever they stand."""
    for kind in of.__subclasses__():
        yield from kinds(kind)
        if kind.__module__.startswith("derive.") and kind not in BASES:
            yield kind


def missing(kind: type[ArrayNode]) -> list[str]:
    """What a class of nodes has to have, and has not."""
    samples, lacks = SAMPLES.get(kind, ()), []
    if kind not in SAMPLES:
        lacks.append("a sample in tests/test_nodes.py")
    if kind.entry is ArrayNode.entry:
        lacks.append("entry")
    if kind is nodes.Broadcast:  # gone before anything is derived
        return lacks
    if kind.adjoint is ArrayNode.adjoint or not kind.reason:
        lacks.append("adjoint and reason")
    if kind is not nodes.ArgMax and row_of(kind) is None:  # an index alone is not code
        lacks.append("a row in codegen/lowering/nodes.py")
    for shown in (formula, unicode_formula, latex_formula, mathml):
        try:
            [shown(e) for e in samples]
        except (TypeError, KeyError, NotImplementedError):
            lacks.append(shown.__name__)
    return lacks


@pytest.mark.parametrize("kind", [*kinds()], ids=lambda kind: kind.__name__)
def test_nothing_of_a_node_is_missing(kind):
    assert not missing(kind)


def test_what_is_missing_of_a_node_is_named():
    class Bare(nodes.GoneAlong):
        pass

    assert missing(Bare) == [
        "a sample in tests/test_nodes.py",
        "entry",
        "adjoint and reason",
        "a row in codegen/lowering/nodes.py",
    ]


def functions(file: Path, name: str) -> Iterator[ast.AST]:
    tree = ast.parse(file.read_text())
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)


def attributes(tree: ast.AST) -> set[str]:
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_the_proof_compares_two_statements():
    """No prover takes a node's adjoint, and no adjoint is made of its entries, or these of it."""
    for file in (ROOT / "derive" / "proof").rglob("*.py"):
        assert not {"adjoint", "reason"} & attributes(ast.parse(file.read_text())), file
    for file in (ROOT / "derive" / "language").glob("*.py"):
        for made, other in (("adjoint", "entry"), ("entry", "adjoint")):
            for function in functions(file, made):
                assert other not in attributes(function), f"{file}:{function.lineno}"
