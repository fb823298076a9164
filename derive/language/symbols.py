"""The atoms of the notation: named axes and tensors, and what may be asked about expressions.

A tensor is a SymPy symbol that carries *named axes*; it broadcasts by name, so there is no
dimension number and no keepdim to get wrong. An axis stands for its own size: ``Sum(x, N) / N`` is
the mean over ``N``. ``exp``, ``log``, ``sqrt``, ``Piecewise`` and all other pointwise functions are
SymPy's own; the nodes that it lacks are in ``nodes.py``.

    >>> N, C = Axis("N"), Axis("C")
    >>> x = Tensor("x", (N, C))
    >>> x - Sum(x, N) / N
    x - Sum(x, N)/N
    >>> [str(axis) for axis in axes_of(Sum(x, N))]
    ['C']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from sympy import Atom, Basic, Expr, Integer, S, Symbol
from sympy.core.cache import cacheit

from derive.language.errors import NotationError, shortened
from derive.language.lengths import checked_length
from derive.language.names import checked_name

MOST_ENTRIES = 2**63  # along an axis: torch counts with 64 bits, one of them the sign


class Axis(Symbol):
    """A named axis, which is also the positive integer symbol of its own size.

    ``Axis("N")`` written twice is the same axis. ``Axis("Gate", 4)`` always has four entries;
    ``length`` is that number, None if the size is not fixed. ``Axis("To", (T - K) // 2 + 1)`` has
    its size from those of others; ``formula`` is that expression, None if nothing is said.
    """

    __slots__ = ("formula", "length")

    def __new__(cls, name: str, length: int | Expr | None = None, *more: object) -> Axis:
        formula = checked_length(name, length) if isinstance(length, Expr) else None
        length = None if isinstance(length, Expr) else length
        several = [*str(name).replace(",", " ").split(), *(n for n in (length, *more) if n)]
        if len(several) > 1 and all(isinstance(n, str) and n.isidentifier() for n in several):
            made = ", ".join(f'{cls.__name__}("{n}")' for n in several)
            raise NotationError(
                f"{' '.join(several)!r} cannot be the name of an axis: they are {len(several)}",
                f"write {', '.join(several)} = {made}",
            )
        if isinstance(name, int):
            raise NotationError(
                f"{cls.__name__}({name}): an axis has a name",
                f'write {cls.__name__}("N"), or {cls.__name__}("N", {name}) for as many entries',
            )
        if length is not None and (isinstance(length, bool) or not isinstance(length, int)):
            raise NotationError(
                f"Axis({name!r}, {shortened(length)}): the length is not a whole number",
                f"write Axis({name!r}, 4), or Axis({name!r}) where it is open",
            )
        if length is not None and length >= MOST_ENTRIES:
            raise NotationError(
                f"Axis({name!r}, ...): no tensor has so many entries", "give it fewer than 2**63"
            )
        if length is not None and length < 1:
            raise NotationError(f"Axis({name!r}, {length}) has no entry", "give it at least one")
        self = Symbol.__xnew__(cls, checked_name(name, "an axis"), integer=True, positive=True)
        self.length, self.formula = length, formula
        return self

    def __getnewargs_ex__(self):
        return (self.name, self.formula or self.length), {}

    def _hashable_content(self):
        return (*super()._hashable_content(), self.length or 0, str(self.formula or ""))

    @property
    def dims(self) -> str:
        """The axis as a dimension of a shape: ``N``, or ``*N`` for an `Axes`."""
        return self.name

    @property
    def identity(self) -> str:
        """The key that sets it apart from others: name, kind, and the length if it has one."""
        size = self.formula or self.length
        return self.dims if size is None else f"{self.dims}:{size}"

    @property
    def declaration(self) -> str:
        """The call that declares it."""
        size = self.formula or self.length
        length = "" if size is None else f", {size}"
        return f'{type(self).__name__}("{self.name}"{length})'


class Axes(Axis):
    """``N = Axes("N")``: any number of dimensions (even none), flattened into one axis; its size
    is their product.

    In the mathematics it is one axis like any other. In the generated code it may be any number of
    dimensions, and in a composition any number of axes.
    """

    __slots__ = ()

    @classmethod
    def class_key(cls) -> tuple[int, int, str]:
        """SymPy sorts it among the other axes, by its name."""
        return Axis.class_key()

    @property
    def dims(self) -> str:
        return f"*{self.name}"


def check_axes(axes: Iterable[Axis], what: object) -> None:
    """Refuse axes that cannot be told apart in ``what``: an `Axis` and an `Axes` of one name, or
    two `Axes`, whose dimensions would run into one another. Raises `NotationError`.
    """
    axes = set(axes)
    same_name(axes)
    several = ordered(axis for axis in axes if isinstance(axis, Axes))
    if len(several) > 1:
        names = " and ".join(axis.name for axis in several)
        raise NotationError(
            f"{what} lies along {names}, and each stands for any number of dimensions: where one "
            "ends and the next begins, no shape could say",
            f'make all but one of them a single axis: {several[1]} = Axis("{several[1]}")',
        )


def same_name(axes: Iterable[Axis]) -> None:
    """Refuse two different axes of one name, such as an `Axis` and an `Axes`. Raises
    `NotationError`.
    """
    known: dict[str, Axis] = {}
    for axis in axes:
        if known.setdefault(axis.name, axis) != axis:
            one, other = sorted([axis, known[axis.name]], key=lambda a: a.dims, reverse=True)
            raise NotationError(
                f"{axis} is {one.declaration} in one place and {other.declaration} in another",
                "declare it once and use that everywhere, or give one of them another name",
            )


class Tensor(Symbol):
    """A named tensor, seen along ``axes``.

    ``home`` are the axes under which it was declared, in the order of its dimensions; they differ
    from ``axes`` only where an axis was renamed (the same tensor met a second time along another
    axis). ``role`` is one of 'input', 'given', 'label', 'kept' (which
    labels count), 'scalar', 'statement', 'adjoint', and while something is being put together
    'call' and 'pullback'.
    """

    __slots__ = ("axes", "content", "home", "role")

    def __new__(cls, name, axes=(), home=None, role="input", **assumptions):
        axes = tuple(axes)
        home = axes if home is None else tuple(home)
        if "extended_real" not in assumptions:  # of what may be -oo
            assumptions = {"real": True, **assumptions}
        return cls._made(name, axes, home, role, **assumptions)

    @classmethod
    @lru_cache(maxsize=16384)  # what is the same object need not be compared
    def _made(cls, name, axes, home, role, **assumptions) -> Tensor:
        self = Symbol.__xnew__(cls, name, **assumptions)
        self.axes, self.home, self.role = axes, home, role
        met, declared = ([axis.identity for axis in own] for own in (axes, home))
        along = " ".join((*met, "of", *declared))
        self.content = (name, role, along, *self._assumptions0)  # SymPy compares it all the time
        return self

    def __getnewargs_ex__(self):
        return (self.name, self.axes, self.home, self.role), self._assumptions_orig

    def _hashable_content(self):
        return self.content

    @cacheit
    def sort_key(self, order=None):
        """Tells the same tensor along other axes apart, so that printing has one order only."""
        return self.class_key(), (1, (str(self), self.role)), S.One.sort_key(), S.One

    @property
    def free_axes(self) -> frozenset[Axis]:
        return frozenset(self.axes)

    def __gt__(self, other):
        """Also ``x > -oo``: where a score takes part. SymPy would say that all real numbers do."""
        return super().__gt__(MINUS_INFINITY if other == S.NegativeInfinity else other)

    def along(self, axes: Iterable[Axis]) -> Tensor:
        """The same tensor, met along other axes."""
        return Tensor(self.name, tuple(axes), self.home, self.role, **self._assumptions_orig)

    @property
    def at_home(self) -> Tensor:
        """The tensor as it was declared."""
        return self.along(self.home)

    def _sympystr(self, printer):
        if self.axes == self.home:
            return self.name
        return f"{self.name}[{', '.join(axis.name for axis in self.axes)}]"


class Along(Atom):
    """The axes a node binds. An atom, so that substituting a *size* never touches a bound axis."""

    __slots__ = ("axes", "content")

    def __new__(cls, axes: Iterable[Axis]) -> Along:
        self = super().__new__(cls)
        self.axes = tuple(axes)
        self.content = tuple(axis.identity for axis in self.axes)
        return self

    def __getnewargs__(self):
        return (self.axes,)

    def _hashable_content(self):
        return self.content

    def _sympystr(self, printer):
        return ", ".join(axis.name for axis in self.axes)


class MinusInfinity(Symbol):
    """``-oo`` in a formula: a masked score, whose exponential is 0.

    To SymPy it is a real number that nothing is known of. A proof that treats it so holds for every
    number, and so in the limit; and no arithmetic of infinities gets into a derivation.
    """

    __slots__ = ()

    def __new__(cls) -> MinusInfinity:
        return Symbol.__xnew__(cls, "-oo", real=True)

    def __getnewargs_ex__(self):
        return (), {}


MINUS_INFINITY = MinusInfinity()


def ordered(axes: Iterable[Axis]) -> list[Axis]:
    return sorted(axes, key=lambda axis: axis.name)


@lru_cache(maxsize=65536)
def axes_of(e: Basic) -> frozenset[Axis]:
    """The axes along which ``e`` varies.

    An axis that stands for its size is a number and does not count.
    """
    own = getattr(e, "free_axes", None)  # of a tensor or an array node
    if own is not None:
        return own
    return frozenset().union(*map(axes_of, e.args)) if e.args else frozenset()


@cacheit
def _has_tensor(e: Basic) -> bool:
    return isinstance(e, Tensor) or bool(axes_of(e)) or any(map(_has_tensor, e.args))


def is_number_or_size(e: Basic) -> bool:
    """Whether ``e`` is built of numbers and sizes alone, so that it is known before any data is."""
    return not _has_tensor(e)


@lru_cache(maxsize=65536)
def is_constant(e: Basic) -> bool:
    """Whether ``e`` is built of numbers, sizes and scalar arguments alone: no tensor is in it."""
    return all(t.role == "scalar" for t in e.atoms(Tensor)) and not axes_of(e)


@lru_cache(maxsize=16384)
def tensors_in(e: Basic) -> tuple[Tensor, ...]:
    """The tensors met in ``e``, each in every way it is met, in canonical order."""
    return tuple(sorted(e.atoms(Tensor), key=lambda t: (t.name, str(t))))


def with_sizes(e: Expr, sizes: Mapping[Axis, Expr]) -> Expr:
    """``e`` with the sizes of some axes written otherwise; axes as such are untouched."""
    return e.xreplace({axis: Integer(1) * size for axis, size in sizes.items()})
