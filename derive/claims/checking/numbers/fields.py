"""Finite fields with square roots and exponentials.

Three primes, each twice the next one and one more. Modulo such a prime p, -1 is no square, so the
field has a root i of it, and every number modulo p has its square root among the ``a + b*i``. And a
number that is known modulo the next prime q = (p - 1)/2 is an exponent: ``4**a`` modulo p depends
on a modulo q alone, and ``4**(a + b) = 4**a * 4**b``, as it is with an exponential.
"""

from __future__ import annotations

# About 2**61, 2**60 and 2**59: different numbers are practically never equal modulo these.
PRIMES = (2305843009213972799, 1152921504606986399, 576460752303493199)
LEVELS = range(len(PRIMES))
BASES = ((4, 9), (4, 9))  # bases for exponentials of a and of b*i; squares, and so of order q

Element = tuple[int, int]  # a + b*i


class NoRoot(ArithmeticError):
    """Raised where the field has no such root."""


def added(a: Element, b: Element, p: int) -> Element:
    return (a[0] + b[0]) % p, (a[1] + b[1]) % p


def multiplied(a: Element, b: Element, p: int) -> Element:
    if not a[1] and not b[1]:
        return a[0] * b[0] % p, 0
    return (a[0] * b[0] - a[1] * b[1]) % p, (a[0] * b[1] + a[1] * b[0]) % p


def power(a: Element, exponent: int, p: int) -> Element:
    """``a**exponent``; raises `ZeroDivisionError` for a negative power of 0."""
    if exponent < 0:
        a, exponent = _inverse(a, p), -exponent
    if not a[1]:
        return pow(a[0], exponent, p), 0
    result = (1, 0)
    while exponent:
        if exponent & 1:
            result = multiplied(result, a, p)
        a, exponent = multiplied(a, a, p), exponent >> 1
    return result


def _inverse(a: Element, p: int) -> Element:
    norm = (a[0] * a[0] + a[1] * a[1]) % p
    if not norm:
        raise ZeroDivisionError
    shrink = pow(norm, -1, p)
    return a[0] * shrink % p, -a[1] * shrink % p


def root(a: Element, degree: int, p: int) -> Element:
    """A root of ``a`` of this degree; of two opposite ones the square, if one is.

    Raises `NoRoot`.
    """
    while degree % 2 == 0:
        a, degree = _square_root(a, p), degree // 2
    if degree == 1:
        return a
    if a[1] or p % degree == 1 or degree >= PRIMES[-1]:
        raise NoRoot
    return pow(a[0], pow(degree, -1, p - 1), p), 0


def _square_root(a: Element, p: int) -> Element:
    if not a[1]:
        found = pow(a[0], (p + 1) // 4, p)
        if found * found % p == a[0]:
            return found, 0
        return 0, pow(-a[0], (p + 1) // 4, p)
    length = _root_of_square((a[0] * a[0] + a[1] * a[1]) % p, p)
    if length is None:
        raise NoRoot
    half = pow(2, -1, p)
    for side in (length, -length):
        found = _root_of_square((a[0] + side) * half % p, p)
        if found:
            return found, a[1] * pow(2 * found, -1, p) % p
    raise NoRoot


def _root_of_square(a: int, p: int) -> int | None:
    found = pow(a, (p + 1) // 4, p)
    return found if found * found % p == a else None


def exponential(level: int, exponent: Element) -> Element:
    """The exponential modulo the prime of ``level``, of an exponent known modulo the next prime."""
    (a, b), p = exponent, PRIMES[level]
    real, imaginary = BASES[level]
    return pow(real, a, p) * pow(imaginary, b, p) % p, 0
