"""Names for values that the user did not name: ``one_minus_met``, ``exp_logits``, ``x_over_rms``.

In: the expression of the value. Out: names that say what it is, the best one first. They follow
from the expression alone, so they stay what they are where other mathematics changes. A name has
one reading: an operand made of several values ends it (``exp_of_x_minus_y``), and the operand of a
function or a sum is a product of names (``sum_dy_xhat``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache

from sympy import Abs, Add, Basic, Expr, Function, Mul, Piecewise, Pow, Rational, S, exp, log
from sympy.core.relational import Relational

from derive.language.choices import Compared
from derive.language.diagonals import Identity
from derive.language.extremes import Max, Min
from derive.language.kept_labels import kept_label, label_asked_of
from derive.language.nodes import OneHot, Reduction, Reindexing, Sum, Whole
from derive.language.symbols import MINUS_INFINITY, Axis, Tensor, tensors_in

LONGEST_NAME = 32  # characters, of a name that is made of others
MOST = 3  # terms, or factors, of which a name speaks
NUMBERS = ("zero", "one", "two", "three", "four")
RELATIONS = {
    ">": "above",
    ">=": "from",
    "<": "below",
    "<=": "up_to",
    "==": "is",
    "!=": "is_not",
}
# How tightly the words of a name hold together: a name, a function of one, a product, a sum, and
# what can only stand alone.
NAME, TAKEN, PRODUCT, SUM, ALONE = range(5)
REDUCTIONS = ("sum", "mean", "max", "min")
POWERS = {2: "squared", 3: "cubed"}

Said = tuple[str, int]


class _NoWordsError(Exception):
    """No short name exists."""


def names_of(e: Expr, where: str, before: str = "") -> Iterator[str]:
    """Names for ``e``, the best first; ``where`` is the value whose expression contains it, and
    ``before`` a fallback where the expression makes no short name.
    """
    found = words_of(e)
    if found is None:
        yield from [before] * bool(before)
    else:
        yield found
        if isinstance(e, Reduction):
            yield "_".join((found, "along", *(axis.name for axis in e.axes)))
    yield f"{_kind(e)}_in_{where}"


@lru_cache(maxsize=4096)
def words_of(e: Expr) -> str | None:
    """A short name for ``e``; None where there is none."""
    try:
        words, _ = _Speaker(e).said(e)
    except _NoWordsError:
        return None
    first, _, rest = words.partition("_")
    if first.isdigit() and int(first) < len(NUMBERS):
        words = f"{NUMBERS[int(first)]}_{rest}" if rest else NUMBERS[int(first)]
    fits = len(words) <= LONGEST_NAME and words.isidentifier()
    return words if fits and "_" in words and tensors_in(e) else None


class _Speaker:
    """Puts an expression into words, with how tightly these bind."""

    def __init__(self, e: Expr):
        read = defaultdict(set)
        for t in e.atoms(Tensor):
            read[t.name].add(t)
        self.twice = {name for name, met in read.items() if len(met) > 1}

    def said(self, e: Basic) -> Said:
        for kind, say in sayings.items():
            if isinstance(e, kind):
                return say(self, e)
        raise _NoWordsError

    def within(self, e: Basic, bound: int) -> str:
        """The words for ``e``, if they bind at least that tightly."""
        words, tight = self.said(e)
        if tight > bound:
            raise _NoWordsError
        return words

    def of(self, name: str, e: Expr) -> Said:
        """A function of ``e`` in words: a name, or a product of names, follows side by side;
        ``exp_of_x_minus_w`` where a name would come apart.
        """
        if _is_loose(e) and name not in REDUCTIONS:
            return f"{name}_of_{e.name}", ALONE
        sign = "minus_" if e.could_extract_minus_sign() and not isinstance(e, Add) else ""
        factors = Mul.make_args(-e if sign else e)
        if len(factors) <= MOST and not any(_is_divisor(f) for f in factors):
            try:
                words = self.beside(factors)
            except _NoWordsError:
                words = []
            if words:
                return f"{name}_{sign}{'_'.join(words)}", TAKEN
        return f"{name}_of_{self.said(e)[0]}", ALONE

    def beside(self, factors: Iterable[Expr]) -> list[str]:
        """The words for the factors of a product, the number before the first of them."""
        number = Mul(*(f for f in factors if f.is_number))
        words = [self.within(f, TAKEN) for f in factors if not f.is_number]
        if number == 1:
            return words
        if not words or any(map(_is_loose, factors)):
            raise _NoWordsError
        return [f"{_number(number)}_{words[0]}", *words[1:]]


def _is_loose(e: Basic) -> bool:
    """Whether ``e`` is a value whose name spells out a sum or a difference."""
    return isinstance(e, Tensor) and any(word in e.name for word in ("_plus_", "_minus_"))


def _number(e: Expr) -> str:
    """A number in front of other words."""
    if e == Rational(1, 2):
        return "half"
    return "twice" if e == 2 else "scaled"


def _in_order(words: list[str], factors: tuple[Expr, ...]) -> list[str]:
    """The words for factors: numbers first, gradients last."""

    def place(pair: tuple[str, Expr]) -> tuple[bool, bool]:
        e = pair[1]
        return not e.is_number, getattr(e, "role", "") == "adjoint"

    return [word for word, _ in sorted(zip(words, factors, strict=True), key=place)]


def _is_divisor(e: Expr) -> bool:
    return isinstance(e, Pow) and e.exp.is_number and bool(e.exp.is_negative)


def _tensor(speaker: _Speaker, e: Tensor) -> Said:
    elsewhere = e.name in speaker.twice and e.axes != e.home
    return (f"other_{e.name}", TAKEN) if elsewhere else (e.name, NAME)


def _size(speaker: _Speaker, e: Axis) -> Said:
    return e.name, NAME


def _whole_number(speaker: _Speaker, e: Expr) -> Said:
    if not e.is_Integer or e < 0:
        raise _NoWordsError
    return str(e), NAME


def _power(speaker: _Speaker, e: Pow) -> Said:
    base, power = e.as_base_exp()
    if power == -1 and isinstance(base - 1, exp):  # 1/(1 + exp(-z))
        return speaker.of("sigmoid", -(base - 1).exp)
    if power.is_number and power.is_negative:
        return f"one_over_{speaker.within(1 / e, TAKEN)}", PRODUCT
    if power == S.Half:
        return speaker.of("sqrt", base)
    words, tight = speaker.said(base)
    if tight != NAME:
        return (f"square_{speaker.within(base, TAKEN)}", TAKEN) if power == 2 else _none()
    if power in POWERS:
        return f"{words}_{POWERS[power]}", TAKEN
    return f"{words}_to_{speaker.within(power, SUM)}", TAKEN if power.is_Atom else ALONE


def _none() -> Said:
    raise _NoWordsError


def _product(speaker: _Speaker, e: Mul) -> Said:
    mean = _mean(speaker, e)
    if mean is not None:
        return mean
    number = Mul(*(f for f in e.args if f.is_number))
    rest = e / number
    if number == -1:
        return f"minus_{speaker.within(rest, PRODUCT)}", PRODUCT
    factors = Mul.make_args(rest)
    below = [f for f in factors if _is_divisor(f)]
    above = tuple(f for f in factors if f not in below)
    if len(above) + len(below) > MOST:
        raise _NoWordsError
    words = _in_order([speaker.within(f, TAKEN) for f in above], above)
    front = [] if number == 1 else [_number(number)]
    if number.is_negative or (front and any(map(_is_loose, above))):
        raise _NoWordsError
    divided = [f"over_{speaker.within(1 / f, TAKEN)}" for f in below]
    top = "_times_".join(words) or "one"
    tight = TAKEN if len(above) == 1 and not below else PRODUCT
    return "_".join([*front, top, *divided]), tight


def _mean(speaker: _Speaker, e: Mul) -> Said | None:
    """A sum over its axes, divided by their sizes."""
    sums = [f for f in e.args if isinstance(f, Sum)]
    if len(sums) != 1 or e != sums[0] / Mul(*sums[0].axes):
        return None
    return speaker.of("mean", sums[0].operand)


def _sum_of_terms(speaker: _Speaker, e: Add) -> Said:
    """The terms in words: numbers first, scalars last, and the subtracted terms behind these."""
    if len(e.args) > MOST:
        raise _NoWordsError
    terms = sorted(e.args, key=lambda term: (term.could_extract_minus_sign(), _place(term)))
    words = ""
    for term in terms:
        negative = term.could_extract_minus_sign()
        if negative and _is_loose(-term):
            raise _NoWordsError
        own = speaker.within(-term if negative else term, PRODUCT)
        sign = "minus" if negative else "plus"
        words = f"{words}_{sign}_{own}" if words else f"minus_{own}" if negative else own
    return words, SUM


def _place(term: Expr) -> int:
    return 0 if term.is_number else 1 + (getattr(term, "role", "") == "scalar")


def _reduction(speaker: _Speaker, e: Reduction) -> Said:
    name = "min" if isinstance(e, Min) else "max" if isinstance(e, Max) else type(e).__name__
    if isinstance(e, Sum):
        factors = Mul.make_args(e.operand)
        hot = next((f for f in factors if isinstance(f, OneHot) and e.axes == (f.axis,)), None)
        if isinstance(hot, Identity):
            return f"diagonal_{speaker.within(e.operand / hot, TAKEN)}", TAKEN
        if hot is not None:
            label = speaker.within(hot.operand, NAME)
            return f"{speaker.within(e.operand / hot, TAKEN)}_at_{label}", TAKEN
    return speaker.of(name.lower(), e.operand)


def _whole(speaker: _Speaker, e: Whole) -> Said:
    if not isinstance(e.subject, Tensor):
        raise _NoWordsError
    return f"{e.subject.name}_{e.word}", TAKEN


def _reindexed(speaker: _Speaker, e: Reindexing) -> Said:
    return f"{type(e).__name__.lower()}_{speaker.within(e.operand, NAME)}", TAKEN


def _function(speaker: _Speaker, e: Function) -> Said:
    if isinstance(e, Compared):
        return speaker.said(e.args[0])
    name = "abs" if isinstance(e, Abs) else type(e).__name__.lower()
    if len(e.args) == 2:
        one, other = (speaker.within(arg, NAME) for arg in e.args)
        return f"{name}_{one}_{other}", TAKEN
    if len(e.args) != 1:
        raise _NoWordsError
    return speaker.of(name, e.args[0])


def _logarithm(speaker: _Speaker, e: log) -> Said:
    """log(1 + exp(z)) is the softplus of z."""
    rest = e.args[0] - 1
    if isinstance(rest, exp):
        return speaker.of("softplus", rest.exp)
    return speaker.of("log", e.args[0])


def _choice(speaker: _Speaker, e: Piecewise) -> Said:
    """A choice with 0 or -oo elsewhere: the condition, or the value with its condition."""
    if (label := kept_label(e)) is not None:
        return f"kept_{label.name}", TAKEN
    if len(e.args) != 2:
        raise _NoWordsError
    (one, condition), (other, always) = e.args
    if always != S.true or other not in (0, MINUS_INFINITY):
        raise _NoWordsError
    where = _relation(speaker, condition)
    if one == 1 and other == 0:
        return where, PRODUCT
    if other == 0 and isinstance(one, Tensor) and condition in (one > 0, one >= 0):
        return f"relu_{one.name}", TAKEN
    return f"{speaker.within(one, TAKEN)}_where_{where}", ALONE


def _relation(speaker: _Speaker, e: Basic) -> str:
    if (label := label_asked_of(e)) is not None:
        return f"kept_{label.name}"
    if not isinstance(e, Relational):
        raise _NoWordsError
    left, right = (speaker.within(side, TAKEN) for side in (e.lhs, e.rhs))
    return f"{left}_{RELATIONS[e.rel_op]}_{right}"


# What is said of an expression, by what it is: the first that fits.
sayings = {
    Tensor: _tensor,
    Axis: _size,
    OneHot: lambda speaker, e: _none(),
    Reduction: _reduction,
    Whole: _whole,
    Reindexing: _reindexed,
    Piecewise: _choice,
    log: _logarithm,
    Pow: _power,
    Mul: _product,
    Add: _sum_of_terms,
    Function: _function,
    Expr: _whole_number,
}

# The same more briefly, where a value is part of another one.
kinds = {
    Sum: "sum",
    Max: "max",
    Add: "terms",
    Mul: "product",
    Piecewise: "choice",
    exp: "exp",
    log: "log",
}


def _kind(e: Expr) -> str:
    if isinstance(e, Pow):
        root = "root" if e.exp.is_Rational and not e.exp.is_Integer else "power"
        return f"inverse_{root}".replace("_power", "") if _is_divisor(e) else root
    if isinstance(e, Mul) and any(map(_is_divisor, e.args)):
        return "quotient"
    for kind, word in kinds.items():
        if isinstance(e, kind):
            return word
    return getattr(e, "word", "") or type(e).__name__.lower() if e.args else "part"
