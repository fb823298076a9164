"""Wrong closed forms, and whether Coq refuses them: ``make certificates``.

Each is a closed form of the gallery with one thing wrong: a sign, ``N`` for ``N - 1``, a term left
out, a factor twice, a sum over another axis. The forward and the chain stay what they are.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from sympy import Add, Expr, Mul, Pow

from derive.certificate import Certificate, checked
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import ClosedForm, close
from derive.language.nodes import Sum, renamed
from derive.language.notation.library import as_forward
from derive.language.symbols import Axis, axes_of

# Of each of these as many wrong forms as its number: forty in all.
WRONG = {
    "batch_norm": 6,
    "layer_norm": 4,
    "rms_norm": 4,
    "softmax_nll": 3,
    "softmax": 4,
    "linear": 4,
    "bilinear": 4,
    "mse": 2,
    "swiglu": 4,
    "var": 3,
    "l2_normalize": 2,
}
SECONDS = 60.0  # of Coq; what it has not accepted by then counts as refused


def wrong_forms(form: ClosedForm) -> Iterator[tuple[str, ClosedForm]]:
    """Wrong forms, the kinds taking turns, each with its words."""
    kinds = [[*kind(form)] for kind in (_signs, _terms, _sizes, _axes, _factors)]
    for turn in range(max(map(len, kinds))):
        for found in kinds:
            if turn < len(found):
                k, e, words = found[turn]
                statements = list(form.statements)
                statements[k] = replace(statements[k], expression=e)
                yield (
                    f"{words} in {statements[k].tensor}",
                    replace(form, statements=tuple(statements)),
                )


def _nodes(form: ClosedForm, kind: type) -> Iterator[tuple[int, Expr, Expr]]:
    for k, s in enumerate(form.statements):
        for node in sorted(s.expression.atoms(kind), key=str):
            yield k, s.expression, node


def _signs(form: ClosedForm):
    for k, s in enumerate(form.statements):
        yield k, -s.expression, "a sign"
    for k, e, node in _nodes(form, Add):
        first, *rest = node.args
        yield k, e.xreplace({node: Add(-first, *rest)}), f"the sign of {first}"


def _terms(form: ClosedForm):
    for k, e, node in _nodes(form, Add):
        for term in node.args:
            yield k, e.xreplace({node: node - term}), f"without {term}"


def _sizes(form: ClosedForm):
    for k, s in enumerate(form.statements):
        for node in sorted(s.expression.atoms(Pow), key=str):
            if node.exp == -1 and node.base.atoms(Axis) == node.base.free_symbols:
                other = node.base - 1 if node.base.is_Symbol else node.base + 1
                yield k, s.expression.xreplace({node: 1 / other}), f"{other} for {node.base}"


def _axes(form: ClosedForm):
    """A sum along an axis fewer: times the size, where the entries would be summed."""
    for k, e, node in _nodes(form, Sum):
        inner = node.operand
        for axis in node.axes:
            others = [a for a in axes_of(inner) if a not in node.axes and a != axis]
            for other in others[:1]:
                swapped = renamed(
                    Sum.over(renamed(inner, {axis: other, other: axis}), node.axes), {}
                )
                yield k, e.xreplace({node: swapped}), f"{other} for {axis}"


def _factors(form: ClosedForm):
    for k, e, node in _nodes(form, Mul):
        for factor in node.args:
            if not factor.is_number:
                yield k, e.xreplace({node: node * factor}), f"{factor} twice"


def main(names: list[str]) -> int:
    """Print each wrong form that Coq accepts; 1 if there is one."""
    accepted, tried = [], 0
    for name, count in WRONG.items():
        if names and name not in names:
            continue
        form = close(derive_chain(as_forward(name).definition))
        for words, wrong in islice(wrong_forms(form), count):
            tried += 1
            said = checked(Certificate(wrong).text(), SECONDS).said
            sys.stdout.write(f"{name}, {words}: {said or 'ACCEPTED'}\n")
            if not said:
                accepted.append(f"{name}, {words}")
    sys.stdout.write(f"{tried - len(accepted)} of {tried} wrong closed forms refused\n")
    return 1 if accepted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
