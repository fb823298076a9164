"""One program of several that differ in how the output is reduced: the argument ``reduction``.

Each function takes what any of them takes, and returns what any of them returns; the lines of all
are printed as one text, with a branch where they differ (``targets/torch/branches.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from codegen.program import NUMBERS, Again, Function, Parameter, Plain, Program, Second
from derive.notation.definition import REDUCTION

Pair = TypeVar("Pair", Program, Plain)


def merged(program: Program) -> Program:
    """``program`` and its ``reductions`` as one; as it is, where there are none.

    In the result ``reductions`` are all of them, also the default.
    """
    if not program.reductions:
        return program
    word = program.reduction
    every = {**dict(program.reductions), word: replace(program, reductions=())}
    kept = all(p.plain is not None for p in every.values())
    every = every if kept else {w: replace(p, plain=None) for w, p in every.items()}
    second = all(p.second is not None for p in every.values())
    every = every if second else {w: replace(p, second=None) for w, p in every.items()}
    pairs = {w: p.plain for w, p in every.items()}
    return replace(
        _pair(every, word, program),
        atoms=_function([p.atoms for p in every.values()], program.atoms, word),
        chain=_function([p.chain for p in every.values()], program.chain, word),
        plain=_pair(pairs, word, program.plain) if kept else None,
        requirements=_all_of(p.requirements for p in every.values()),
        reductions=tuple(every.items()),
    )


def in_order(program: Program) -> tuple[str, ...]:
    """The words of a merged program as they are named to a person: the default last."""
    words = [word for word, _ in program.reductions]
    return tuple(sorted(words, key=lambda word: word == program.reduction))


def _pair(every: Mapping[str, Pair], word: str, default: Pair) -> Pair:
    """Forward, backward, and what comes behind it."""
    backward = _function([p.backward for p in every.values()], default.backward, word)
    forward = _function([p.forward for p in every.values()], default.forward, word)
    output = default.forward.results[0]
    results = (output, *(p.name for p in backward.parameters[1:] if p.name != output))
    second = None
    if all(p.second is not None for p in every.values()):
        second = _second([p.second for p in every.values()], every[word].second, backward, word)
    forward = replace(forward, results=results)
    return replace(default, forward=forward, backward=backward, second=second)


def _second(seconds: list[Second], default: Second, backward: Function, word: str) -> Second:
    pullbacks = [s.pullback for s in seconds]
    if all(sum(p.role == "adjoint" for p in f.parameters) == 1 for f in pullbacks):
        seconds = [replace(s, pullback=None, third=s.third[:1]) for s in seconds]
        default, pullbacks = replace(default, pullback=None), []
    names = _all_of(s.cotangents for s in seconds)
    order = {p.name: i for i, p in enumerate(backward.parameters)}
    behind = _function([s.behind for s in seconds], default.behind, word)
    pullback = _function(pullbacks, default.pullback, word) if pullbacks else None
    thirds = zip(*(s.third for s in seconds), strict=True) if all(s.third for s in seconds) else ()
    return replace(
        default,
        pullback=pullback,
        behind=behind,
        jvp=_function([s.jvp for s in seconds], default.jvp, word),
        double=_function([s.double for s in seconds], default.double, word),
        cotangents=tuple(sorted(names, key=lambda pair: order[pair[0]])),
        third=tuple(
            _again([*agains], of, word)
            for agains, of in zip(thirds, (behind, pullback), strict=False)
        ),
    )


def _again(agains: list[Again], of: Function, word: str) -> Again:
    """What comes behind the function ``of``: its vectors stand before what that takes."""
    default = agains[-1]  # which is the last everywhere
    vectors = _all_of(a.vectors for a in agains)
    function = _function([a.function for a in agains], default.function, word)
    order = [*(name for _, name in vectors), *(p.name for p in of.parameters)]
    own = {p.name: p for p in function.parameters}
    return replace(
        default,
        function=replace(function, parameters=tuple(own[name] for name in order)),
        vectors=vectors,
        gradients=_all_of(a.gradients for a in agains),
    )


def _function(every: list[Function], default: Function, word: str) -> Function:
    """What any of ``every`` takes and returns, and the word; the lines are those of the
    ``default``.
    """
    own = {p.name: p for function in (default, *every) for p in reversed(function.parameters)}
    own |= {p.name: p for p in default.parameters}
    names = list(dict.fromkeys(p.name for f in (default, *every) for p in f.parameters))
    there = [{p.name for p in function.parameters} for function in every]
    found = [replace(own[n], sometimes=not all(n in given for given in there)) for n in names]
    found.sort(key=lambda p: 2 if p.role in NUMBERS else p.role != "adjoint")
    results = _all_of(function.results for function in (default, *every))
    return replace(
        default,
        parameters=(*found, Parameter(REDUCTION, (), REDUCTION, word)),
        results=results,
    )


def _all_of(several: Iterable[Iterable]) -> tuple:
    """What is in any of them, each once."""
    return tuple(dict.fromkeys(each for one in several for each in one))
