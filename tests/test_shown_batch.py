"""The small batch: every entry is the closed form at that place, and reads as mathematics."""

import pytest
from evaluate import Numbers, close
from forwards import HEAD, told_apart
from sampling import sampled
from sympy import I, Integer, Max, Rational

import derive
from derive.language.formulas.entries import ArgMaxOfEntries, Chosen, entry_of
from derive.language.formulas.mathml import mathml
from derive.language.formulas.unicode import words_of
from derive.language.symbols import Tensor
from derive.proof.proving.small_batch import LargestOf
from derive.show import document_of
from derive.show.divisors import divisors_explained
from derive.show.document import Equations, Matrix, Prose
from derive.show.small import small_batches

FORWARDS = told_apart()

ROW_MAXIMUM = '''

class RowMaximum(Forward):
    """The largest entry of every row, whose tensor ends in a number."""
    x_1 = Input(N, C)
    y = Max(x_1, C)
'''
DIVIDING = '''

class Dividing(Forward):
    """A sum over N - 2."""
    x = Input(N, C)
    y = Sum(x**2, N) / (N - 2)
'''


def own(folder, text):
    file = folder / "own.py"
    file.write_text(HEAD + text)
    return derive.derive(file)


def numbers_for(proved, sizes):
    definition, chain = proved.definition, proved.closed_form.chain
    indexed = {
        hot.operand.name: hot.axis
        for s in definition.statements
        for hot in s.expression.atoms(derive.OneHot)
        if isinstance(hot.operand, Tensor)
    }
    values = [*proved.closed_form.relations.values, *proved.closed_form.statements]
    numbers = Numbers(definition.sizes_from(sizes), 3, values, indexed)
    numbers.tensors = {t.name: t for t in [*definition.inputs, *chain.upstreams]}
    numbers.tensors |= {t.name: t for t, _ in definition.scalars}
    numbers.tensors |= {s.tensor.name: s.tensor for s in definition.statements}
    both = (*proved.closed_form.spelled.adjoints, *chain.adjoints)
    numbers.tensors |= {a.name: a.tensor for a in both}
    return numbers


def value(numbers, e):
    """An entry of a matrix, as a number; complex where a logarithm of a negative one is in it."""
    known = {}
    for symbol in e.free_symbols:
        name, places = entry_of(symbol)
        tensor = numbers.tensors[name]
        number = numbers.entry(tensor, tuple(int(place) - 1 for place in places))
        number += tensor.role == "label"  # counted from 1
        known[symbol] = Rational(str(number.real)) + I * Rational(str(number.imag))
    e = e.xreplace(known)
    e = e.replace(ArgMaxOfEntries, lambda *row: Integer(row.index(max(row)) + 1))
    e = e.replace(Chosen, lambda place, number: Integer(place == number))
    return complex(e.replace(LargestOf, Max))


@pytest.mark.parametrize("name", sampled(FORWARDS))
def test_every_entry_is_the_closed_form_at_its_place(name, derived):
    proved = derived(name)
    axes = proved.definition.independent_axes
    numbers = numbers_for(proved, {axis: 3 if axis == axes[0] else 2 for axis in axes})
    matrices = [
        block for block in small_batches(proved, set(), None, 3, False) if isinstance(block, Matrix)
    ]
    for matrix in matrices:
        expected = numbers.entries(matrix.name, matrix.name.home)
        found = [value(numbers, e) for row in matrix.rows for e in row]
        assert len(found) == len(expected)
        assert all(map(close, found, map(complex, expected))), matrix.name


def test_an_arg_max_reads_as_mathematics_in_every_format(tmp_path):
    document = document_of(own(tmp_path, ROW_MAXIMUM), entries=2)
    (section,) = (s for s in document.sections if s.title == "The small batch")
    prose, matrix = section.blocks
    assert "[argmax(x_1₁₁, x_1₁₂) = 1] is 1 where that holds, else 0" in words_of(prose.words)
    assert words_of(matrix.rows[1][0]) == "[argmax(x_1₂₁, x_1₂₂) = 1]·dy₂"
    assert "mtext" not in mathml(matrix.rows[1][0])


def test_a_label_is_compared_with_the_entry_it_stands_in(shown):
    (section,) = (s for s in shown("softmax_nll").sections if s.title == "The small batch")
    prose, matrix = section.blocks
    minus = "\N{MINUS SIGN}"
    assert words_of(matrix.rows[2][1]) == f"dloss·(probs₃₂ {minus} [labels₃ = 2])/3"
    assert "SymPy's own derivative" in words_of(prose.words)


def test_a_size_that_the_forward_cannot_have_is_refused(tmp_path):
    proved = own(tmp_path, DIVIDING)
    with pytest.raises(derive.QuestionError, match=r"y divides by N - 2, which is 0 where N = 2"):
        document_of(proved, entries=2)
    document_of(proved, entries=1)


@pytest.mark.parametrize("name", ["batch_norm", "CubeRootNorm", "softmax_nll"])
def test_with_the_size_outside_of_the_bracket_it_is_the_same(name, derived):
    proved = derived(name)
    form = proved.closed_form
    blocks = list(divisors_explained(form.definition, form.statements))
    lines = [line for block in blocks if isinstance(block, Equations) for line in block.lines]
    assert bool(lines) == ("Norm" in name or "norm" in name)
    for line in lines:
        assert (line.right - form.by_name[line.left.name].expression).expand() == 0
    said = [words_of(block.words) for block in blocks if isinstance(block, Prose)]
    assert all("because var divides by N \N{MINUS SIGN} 1" in words for words in said)
