"""A verdict as text, in full and in brief."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from sympy import Expr, Float, Rational

from derive.claims.checking.answers import Answer, Answers, Refutation
from derive.claims.checking.explaining.fitting import is_simple_size_function
from derive.claims.checking.explaining.terms import TermComparison, TermDifference
from derive.claims.checking.numbers.example import Counterexample, rows
from derive.claims.checking.numbers.further import ExactAgreement
from derive.claims.checking.words.spoken import formula as written
from derive.claims.checking.words.spoken import speaking
from derive.language.quotients import cancelled
from derive.language.symbols import is_constant
from derive.proof.proving.proved import in_words as proof_in_words

MOST_DIFFERENCES = 4  # listed at once; fixing them reveals the next
LONGEST_NUMBER = 24  # characters; longer numbers are shown by digits
TOO_LONG = 10**40  # numbers above are shown by their first digits
FIRST_DIGITS, DIGITS = 8, 10  # of such a number, and of an irrational one
SHOWN_DIGITS = range(DIGITS, 50, 2)  # enough digits to tell two numbers apart, and one or two more
MOST_ITEMS, SHOWN_ITEMS = 12, 3  # longer lists are abbreviated; --json has all items
LONGEST_LINE = 90  # characters of a source line in brief output
INDENT = "    "
AT_KINK = (
    "it differs only at a zero or a tie, where the forward is not differentiable; expected is the "
    "value by the forward's convention"
)

NEIGHBOUR = "it is the right gradient of a slightly different forward:"


def formula(e: Expr) -> str:
    """Write an expression, with numbers that are too long to read cut to their first digits."""
    long = {n: Float(n, FIRST_DIGITS) for n in e.atoms(Rational) if max(abs(n.p), n.q) >= TOO_LONG}
    return written(e.xreplace(long))


def text_of(verdict: Answers) -> str:
    """The full text: wrong gradients first, then right ones."""
    with speaking(verdict.spoken):
        return "\n".join(_lines(verdict))


def _lines(verdict: Answers) -> Iterator[str]:
    yield from (*_headline(verdict), *verdict.remarks)
    for answer in verdict.answers:
        if verdict.single or answer.outcome not in ("right", "narrower"):
            yield from (f"{INDENT * (not verdict.single)}{line}" for line in _details(answer))
    indent = ""
    if verdict.shapes and verdict.in_every_shape:
        yield f"read where {verdict.shapes}"
        indent = INDENT
    yield from (f"{indent}where {words}" for words in verdict.other_shapes)


def brief_of(verdict: Answers) -> str:
    """The outcome for each gradient and the correction, in a few lines."""
    with speaking(verdict.spoken):
        return "\n".join(_brief(verdict))


def _brief(verdict: Answers) -> Iterator[str]:
    forward = verdict.definition.snake
    for outcome, answers in groupby(verdict.answers, outcome_of):
        own = [*answers]
        yield f"{outcome}: {', '.join(a.name for a in own)} of {forward}"
        for answer in own:
            yield from (f"{INDENT}{line}" for line in _in_brief(answer))


def _in_brief(answer: Answer) -> Iterator[str]:
    """Lines about one gradient: its mistake, or the missing check."""
    yield from (f"for {condition}" for condition in answer.conditions)
    if answer.outcome == "wrong":
        where = f"line {answer.line}: " if answer.line > 1 else ""
        yield f"{where}{_cut(answer.source.strip())}"
        why = answer.refutation
        advice = [*_advice(answer, why)] if why is not None else []
        if not advice and why is not None and why.counterexample is not None:
            advice = [*_counterexample(why.counterexample)][-2:]
        yield from advice[:MOST_DIFFERENCES]
        if why is not None and why.neighbour is not None:
            yield f"{NEIGHBOUR} {why.neighbour.change}"
    elif answer.outcome == "undecided":
        yield answer.cut_short or "neither proved nor refuted"
    elif answer.proved is not None and not answer.proved.every_size:
        yield _further(answer.agreement)
    yield from _sampled(answer)


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."


def _headline(verdict: Answers) -> Iterator[str]:
    forward = verdict.definition.snake
    shapes = "" if verdict.in_every_shape else verdict.shapes
    if verdict.single:
        answer = verdict.answers[0]
        yield f"{outcome_of(answer, shapes)}: {answer.name} of {forward}{_under(answer)}"
        return
    wrong, where = verdict.first_wrong, shapes and f" where {shapes}"
    if wrong is not None:
        first = f"the first wrong gradient of {forward} is {wrong.name}, line {wrong.line}"
        yield f"wrong{where}: {first}"
    else:
        gradients = _counted(len(verdict.answers), "gradient")
        yield f"{verdict.outcome}{where}: {gradients} of {forward}"
    width = max(len(a.name) for a in verdict.answers)
    for answer in verdict.answers:
        state = outcome_of(answer)
        if answer.inherits and state == "right":
            state = "right once the wrong lines above are fixed"
        proved = f"  {_proved(answer)}" if answer.proved and not answer.inherits else ""
        note = f"  ({answer.note})" if answer.note else ""
        yield f"{INDENT}line {answer.line:>3}  {answer.name:{width}}  {state}{proved}{note}"
    for condition in dict.fromkeys(c for a in verdict.answers for c in a.conditions):
        yield f"{INDENT}for {condition}"
    for words in dict.fromkeys(words for a in verdict.answers for words in a.rounded):
        yield f"{INDENT}{words}"
    for answer in verdict.answers:
        yield from (f"{INDENT}{answer.name} {words}" for words in _sampled(answer))


def outcome_of(answer: Answer, shapes: str = "") -> str:
    """``right``, and for which ``shapes`` and data."""
    narrowing = answer.narrowing and f"{answer.narrowing}; torch gives NaN elsewhere"
    where = ", ".join(filter(None, (shapes, narrowing)))
    outcome = "right" if narrowing else answer.outcome
    outcome += " up to rounding" * bool(answer.rounded)
    return f"{outcome}{where and f' where {where}'}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _under(answer: Answer) -> str:
    return "".join(f", for {condition}" for condition in answer.conditions)


def _proved(answer: Answer) -> str:
    if answer.proved.every_size:
        return "proved for every size"
    return f"proved for {_sizes(answer.proved.sizes)}; {_further(answer.agreement)}"


def _sizes(batches) -> str:
    """``NxC = 2x3, 3x4``"""
    names = "x".join(axis for axis, _ in batches[0])
    return f"{names} = {', '.join('x'.join(str(n) for _, n in batch) for batch in batches)}"


def _further(found: ExactAgreement) -> str:
    """Describe the agreement at sizes other than those proved."""
    if found.is_exact:
        sizes = _sizes(found.sizes)
        return f"agrees exactly at sizes {sizes}; not proved for every size"
    return f"not proved for every size, nor compared exactly at further sizes ({found.unknown})"


def _sampled(answer: Answer) -> Iterator[str]:
    for where in answer.sampled:
        yield f"where {where}: not proved; agrees at the zeros and ties that were sampled"


def _details(answer: Answer) -> Iterator[str]:
    if answer.outcome in ("right", "narrower"):
        yield from answer.rounded
        yield f"proved: {proof_in_words((answer.proved,))}"
        yield from _sampled(answer)
        if answer.agreement is not None:
            yield f"further sizes: {_further(answer.agreement)}"
            yield f"{INDENT}(claim and gradient compared at random data, modulo 60-bit primes)"
        if answer.note:
            yield f"note: it {answer.note}"
        return
    if answer.outcome == "undecided":
        if answer.cut_short:
            yield f"{answer.name}: neither proved nor refuted; {answer.cut_short}"
            return
        if answer.proved is not None:
            batches = _sizes(answer.proved.sizes)
            yield f"agrees at three small batches, {batches}; {_further(answer.agreement)}"
        else:
            yield f"{answer.name}: neither proved nor refuted"
        yield f"{INDENT}{_evidence(answer)}"
        return
    yield f"line {answer.line}: {answer.source.strip()}" if answer.line > 1 else answer.source
    yield from _why(answer, answer.refutation)
    if answer.cut_short:
        yield answer.cut_short


def _evidence(answer: Answer) -> str:
    if answer.difference is None:
        return "it is undefined at every random point that was tried"
    return (
        "in 50-digit arithmetic, at random points with sizes 2 to 11, the largest difference from "
        f"the gradient is {answer.difference:.1e} times its largest entry"
    )


def _why(answer: Answer, why: Refutation) -> Iterator[str]:
    if why is None:
        return
    yield from _advice(answer, why)
    if why.neighbour is not None:
        yield NEIGHBOUR
        yield f"{INDENT}{why.neighbour.change}"
    if why.counterexample is not None:
        if why.counterexample.at_kink:
            yield AT_KINK
        yield "the smallest counterexample:"
        yield from (f"{INDENT}{line}" for line in _counterexample(why.counterexample))


def _advice(answer: Answer, why: Refutation) -> Iterator[str]:
    """Lines that say how to correct the formula."""
    if why.misaligned is not None:
        yield from str(why.misaligned).splitlines()
    if why.edit is not None:
        if why.edit.line not in (0, answer.line):
            yield f"line {why.edit.line}: {why.edit.source}"
        yield why.edit.words
    elif why.comparison is not None:
        yield from _terms(answer, why.comparison)
    yield from why.hints


def _terms(answer: Answer, comparison: TermComparison) -> Iterator[str]:
    outside = formula(comparison.outside)
    if comparison.factor is not None:
        got, expected = comparison.factor
        ratio = cancelled(expected / got)
        if is_constant(ratio):
            yield f"multiply the whole formula by {formula(ratio)}"
        else:
            words = f"the overall factor is {formula(got)}, it must be {formula(expected)}"
            yield f"{words}{_ratio(got, expected)}"
    shown = comparison.differences[:MOST_DIFFERENCES]
    signs = [d for d in shown if d.kind == "sign"]
    if len(signs) > 1:  # a single finding
        yield _signs_in_words(signs)
    for difference in shown:
        if difference.kind != "sign" or len(signs) == 1:
            yield in_words(difference)
    if len(comparison.differences) > len(shown):
        left = len(comparison.differences) - len(shown)
        yield f"and {_counted(left, 'more term')} differ{'s' * (left == 1)}"
    if outside != "1" and shown:
        yield f"(terms inside the brackets of {answer.name} = {outside}*( ... ))"


def in_words(difference: TermDifference) -> str:
    """Describe the correction of one term."""
    product, got, expected = difference.product, difference.got, difference.expected
    if difference.kind == "missing":
        return f"the term {formula(expected * product)} is missing"
    if difference.kind == "extra":
        return f"the term {formula(got * product)} is extra: remove it"
    if difference.kind == "sign":
        term, right = formula(got * product), formula(expected * product)
        return f"the sign of {term} is wrong: it must be {right}"
    of = "the constant" if product == 1 else f"the coefficient of {formula(product)}"
    return f"{of} is {formula(got)}, it must be {formula(expected)}{_ratio(got, expected)}"


def _signs_in_words(signs: Sequence[TermDifference]) -> str:
    """Describe the correction of several terms whose signs are wrong."""
    terms = [formula(d.got * d.product) for d in signs]
    right = [formula(d.expected * d.product) for d in signs]
    return f"the signs of {_listed(terms)} are wrong: they must be {_listed(right)}"


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _ratio(got: Expr, expected: Expr) -> str:
    """Name the missing factor, if it is one a person would name."""
    ratio = cancelled(expected / got)
    if ratio == 1:
        return ""
    if not is_constant(ratio):
        return f" (multiply by {formula(ratio)})" if ratio.count_ops() <= 2 else ""
    return f" (the factor {formula(ratio)} is missing)" if is_simple_size_function(ratio) else ""


def _counterexample(found: Counterexample) -> Iterator[str]:
    table = rows(found)
    width = max(map(len, table))
    data, compared = list(table.items())[:-2], list(table.items())[-2:]
    for name, value in data:
        yield f"{name:{width}} = {_nested(value)}"
    digits = next(
        (n for n in SHOWN_DIGITS if len({_nested(v, n) for _, v in compared}) > 1), DIGITS
    )
    for name, value in compared:
        yield f"{name:{width}} = {_nested(value, digits)}"


def _nested(value, digits: int = DIGITS) -> str:
    """Nested numbers as text; irrational or long ones with so many digits."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_abbreviated(list(map(_nested, value))))}]"
    text = str(value)  # 1/8, not 0.125: these numbers are exact
    if isinstance(value, Expr) and (value.has(Float) or len(text) > max(digits, LONGEST_NUMBER)):
        return f"about {value.evalf(digits)}"
    return text


def _abbreviated(items: list[str]) -> Iterator[str]:
    """Shorten a long list: merge equal neighbours, then keep only the first and last items."""
    if len(items) <= MOST_ITEMS:
        yield from items
        return
    runs = [(item, len(list(run))) for item, run in groupby(items)]
    middle = len(runs) - 2 * SHOWN_ITEMS
    for i, (item, count) in enumerate(runs):
        if middle < 2 or not SHOWN_ITEMS <= i < SHOWN_ITEMS + middle:
            yield item if count == 1 else f"{item} ({count} times)"
        elif i == SHOWN_ITEMS:
            yield f"... ({sum(n for _, n in runs[i : i + middle])} more)"
