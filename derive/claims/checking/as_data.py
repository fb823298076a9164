"""A verdict as plain data for programs."""

from __future__ import annotations

from derive.claims.checking.answers import Answer, Answers, Refutation
from derive.claims.checking.numbers.example import rows
from derive.claims.checking.report import formula
from derive.claims.checking.words.spoken import speaking


def json_of(verdict: Answers) -> dict:
    """The ``outcome`` and ``status`` of the whole, and one entry for each gradient."""
    with speaking(verdict.spoken):
        return _as_data(verdict)


def _as_data(verdict: Answers) -> dict:
    return {
        "forward": verdict.definition.snake,
        "outcome": verdict.outcome,
        "status": verdict.status,
        "shapes": verdict.shapes,
        "other_shapes": list(verdict.other_shapes),
        "in_every_shape": verdict.in_every_shape,
        "remarks": list(verdict.remarks),
        "gradients": [_answer_as_data(answer) for answer in verdict.answers],
    }


def _answer_as_data(answer: Answer) -> dict:
    data = {
        "gradient": answer.name,
        "line": answer.line,
        "source": answer.source.strip(),
        "outcome": answer.outcome,
        "conditions": list(answer.conditions),
        "inherits": answer.inherits,
        "note": answer.note,
        "cut_short": answer.cut_short,
        "sampled": list(answer.sampled),
        "rounded": list(answer.rounded),
        "where": [] if answer.narrowing is None else list(answer.narrowing.where),
        "difference": None if answer.difference is None else float(answer.difference),
        "proved": None,
    }
    if answer.proved is not None:
        data["proved"] = {
            "sizes": [dict(batch) for batch in answer.proved.sizes],
            "every_size": answer.proved.every_size,
        }
    data["further"] = None
    if answer.agreement is not None:
        data["further"] = {
            "sizes": [dict(batch) for batch in answer.agreement.sizes],
            "exact": answer.agreement.is_exact,
            "unknown": answer.agreement.unknown,
        }
    if answer.refutation is not None:
        data |= _refutation_as_data(answer.refutation)
    return data


def _refutation_as_data(why: Refutation) -> dict:
    data: dict = {"hints": list(why.hints)}
    data["misaligned"] = None if why.misaligned is None else str(why.misaligned)
    data["edit"] = why.edit and {"line": why.edit.line, "words": why.edit.words}
    data["neighbour"] = None if why.neighbour is None else why.neighbour.change
    data["counterexample"] = None
    if why.counterexample is not None:
        data["counterexample"] = {
            name: _plain(value) for name, value in rows(why.counterexample).items()
        }
        data["at_kink"] = why.counterexample.at_kink
    data["terms"] = (
        []
        if why.comparison is None or why.edit is not None
        else [
            {
                "kind": d.kind,
                "term": formula(d.product),
                "coefficient": formula(d.got),
                "expected": formula(d.expected),
            }
            for d in why.comparison.differences
        ]
    )
    factor = why.comparison.factor if why.comparison and not why.edit else None
    data["factor"] = factor and {"got": formula(factor[0]), "expected": formula(factor[1])}
    return data


def _plain(value):
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value if isinstance(value, int) else str(value)
