"""What may be broken without a wrong or a worse result, each with the reason."""

FILTER = "what passes the filter is proved; without it that takes longer"

SIGN = "it is only asked whether that is zero, or which sign it has: so is twice that"

BOTH = "both sides of an equality are: so are both times 2"

DRAFTED = "of a draft the gradients are read, not the statements"

UNNOTICED: dict[str, str] = {
    "derive.exact: ZeroTest._may_be_equal: always": FILTER,
    "derive.exact: ZeroTest._fingerprint: off": FILTER,
    "derive.exact: ZeroTest._marked: off": FILTER,
    "derive.exact: ZeroTest._differs_from_zero: never": FILTER,
    "derive.exact: _without_squares: wrong": SIGN,
    "derive.choices: replaced_finally: wrong": SIGN,
    "derive.cases: _under_one_sum: wrong": SIGN,
    "derive.cases: _with_symbols: wrong": SIGN,
    "derive.cases: independent: wrong": SIGN,
    "derive.cases: _apart: wrong": SIGN,
    "derive.cases: _terms: wrong": SIGN,
    "derive.cases: _continued: wrong": SIGN,
    "derive.cases: _factored: wrong": SIGN,
    "derive.closed_form: draft: wrong": DRAFTED,
    "derive.closed_form: ClosedForm.draft: wrong": DRAFTED,
    "derive.closed_form: with_statements: wrong": "what tests break with it is broken twice",
    "derive.sharing: _products_in: wrong": "twice a product has the same factors",
    "derive.recomputation: computed_again: wrong": FILTER,
    "derive.scaled: Scales.risks: wrong": "they are only counted",
    "derive.risks: _risked: wrong": "they are only counted",
    "derive.parts: _primitive: wrong": "two such sums are compared: so are both times 2",
    "derive.positive: scaled: wrong": "under what is not taken out, a root is only looked up",
    "derive.fractions: Fractions.of: wrong": SIGN,
    "codegen.lowering.nodes: counted: wrong": "both sides of a condition are counted",
    "derive.claim: may_hold: always": "what does not hold is not proved; it takes longer to say",
    "derive.claim: Derivative.indexed: wrong": SIGN,
    "derive.claim: Equality.indexed: wrong": SIGN,
    "derive.claim: Batch.unfolded: wrong": SIGN,
    "derive.every_size: IndexedForward.unfolded: wrong": SIGN,
    "derive.small_batch: with_definitions: wrong": SIGN,
    "derive.random_point: RandomPoint._real: wrong": "two such numbers are compared",
    "derive.proof: Proofs._respelled: wrong": "the inputs are, in a list that is not read",
    "derive.proof: inlined: wrong": BOTH,
    "derive.proof: without_parts: wrong": BOTH,
    "derive.proof: Proofs._in_parts: wrong": BOTH,
    "derive.rules: _nowhere: off": "it has nothing to give",
    "derive.rules: _nowhere: wrong": "twice nothing is nothing",
}
