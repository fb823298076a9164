"""What may be broken without a wrong or a worse result, each with the reason."""

FILTER = "what passes the filter is proved; without it that takes longer"

SIGN = "it is only asked whether that is zero, or which sign it has: so is twice that"

BOTH = "both sides of an equality are: so are both times 2"

UNREAD = "the inputs are, in a list that is not read"

DRAFTED = "of a draft the gradients are read, not the statements"

UNNOTICED: dict[str, str] = {
    "derive.zero.fingerprints: Fingerprints.may_be_equal: always": FILTER,
    "derive.zero.fingerprints: Fingerprints.of: off": FILTER,
    "derive.zero.fingerprints: Fingerprints._marked: off": FILTER,
    "derive.zero.exact: ZeroTest._differs_from_zero: never": FILTER,
    "derive.zero.indeterminates: _without_squares: wrong": SIGN,
    "derive.language.choices: replaced_finally: wrong": SIGN,
    "derive.zero.independent_parts: under_one_sum: wrong": SIGN,
    "derive.zero.independent_parts: _with_symbols: wrong": SIGN,
    "derive.zero.independent_parts: independent: wrong": SIGN,
    "derive.zero.independent_parts: apart: wrong": SIGN,
    "derive.zero.independent_parts: _terms: wrong": SIGN,
    "derive.zero.cases: _continued: wrong": SIGN,
    "derive.zero.cases: _factored: wrong": SIGN,
    "derive.closing.closed_form: draft: wrong": DRAFTED,
    "derive.closing.closed_form: ClosedForm.draft: wrong": DRAFTED,
    "derive.closing.sharing: _products_in: wrong": "twice a product has the same factors",
    "derive.closing.recomputation: computed_again: wrong": FILTER,
    "derive.range.scaled: Scales.risks: wrong": "they are only counted",
    "derive.closing.risks: _risked: wrong": "they are only counted",
    "derive.values.naming: _primitive: wrong": "two such sums are compared: so are both times 2",
    "derive.zero.positive: scaled: wrong": "under what is not taken out, a root is only looked up",
    "derive.zero.fractions: Fractions.of: wrong": SIGN,
    "codegen.lowering.nodes: counted: wrong": "both sides of a condition are counted",
    "derive.proving.claim: may_hold: always": "what does not hold is not proved; that takes longer",
    "derive.proving.claim: Derivative.indexed: wrong": SIGN,
    "derive.proving.claim: Equality.indexed: wrong": SIGN,
    "derive.proving.claim: Batch.unfolded: wrong": SIGN,
    "derive.proving.every_size: IndexedForward.unfolded: wrong": SIGN,
    "derive.proving.small_batch: with_definitions: wrong": SIGN,
    "derive.proving.random_point: RandomPoint._real: wrong": "two such numbers are compared",
    "derive.proving.forward_in_parts: ForwardInParts._respelled: wrong": UNREAD,
    "derive.proving.written_out: inlined: wrong": BOTH,
    "derive.proving.written_out: without_parts: wrong": BOTH,
    "derive.proving.proof: Proofs._in_parts: wrong": BOTH,
    "derive.chain.rules: _nowhere: off": "it has nothing to give",
    "derive.chain.rules: _nowhere: wrong": "twice nothing is nothing",
}
