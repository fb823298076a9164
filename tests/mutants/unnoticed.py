"""What may be broken without a wrong or a worse result, each with the reason."""

FILTER = "what passes the filter is proved; without it that takes longer"

SIGN = "it is only asked whether that is zero, or which sign it has: so is twice that"

BOTH = "both sides of an equality are: so are both times 2"

UNREAD = "the inputs are, in a list that is not read"

DRAFTED = "of a draft the gradients are read, not the statements"

UNNOTICED: dict[str, str] = {
    "derive.proof.zero.fingerprints: Fingerprints.may_be_equal: always": FILTER,
    "derive.proof.zero.fingerprints: Fingerprints.of: off": FILTER,
    "derive.proof.zero.fingerprints: Fingerprints._marked: off": FILTER,
    "derive.proof.zero.exact: ZeroTest._differs_from_zero: never": FILTER,
    "derive.proof.zero.indeterminates: _without_squares: wrong": SIGN,
    "derive.language.choices: replaced_finally: wrong": SIGN,
    "derive.proof.zero.independent_parts: under_one_sum: wrong": SIGN,
    "derive.proof.zero.independent_parts: _with_symbols: wrong": SIGN,
    "derive.proof.zero.independent_parts: independent: wrong": SIGN,
    "derive.proof.zero.independent_parts: apart: wrong": SIGN,
    "derive.proof.zero.independent_parts: _terms: wrong": SIGN,
    "derive.proof.zero.cases: _continued: wrong": SIGN,
    "derive.proof.zero.cases: _factored: wrong": SIGN,
    "derive.gradient.closing.closed_form: draft: wrong": DRAFTED,
    "derive.gradient.closing.closed_form: ClosedForm.draft: wrong": DRAFTED,
    "derive.gradient.closing.sharing: _products_in: wrong": "twice a product has the same factors",
    "derive.gradient.closing.recomputation: computed_again: wrong": FILTER,
    "derive.gradient.range.scaled: Scales.risks: wrong": "they are only counted",
    "derive.gradient.closing.risks: _risked: wrong": "they are only counted",
    "derive.gradient.values.naming: _primitive: wrong": (
        "two such sums are compared: so are both times 2"
    ),
    "derive.proof.zero.positive: scaled: wrong": (
        "under what is not taken out, a root is only looked up"
    ),
    "derive.proof.zero.fractions: Fractions.of: wrong": SIGN,
    "codegen.lowering.nodes: counted: wrong": "both sides of a condition are counted",
    "derive.proof.proving.claim: may_hold: always": (
        "what does not hold is not proved; that takes longer"
    ),
    "derive.proof.proving.claim: Derivative.indexed: wrong": SIGN,
    "derive.proof.proving.claim: Equality.indexed: wrong": SIGN,
    "derive.proof.proving.claim: Batch.unfolded: wrong": SIGN,
    "derive.proof.proving.every_size: IndexedForward.unfolded: wrong": SIGN,
    "derive.proof.proving.small_batch: with_definitions: wrong": SIGN,
    "derive.proof.proving.random_point: RandomPoint._real: wrong": "two such numbers are compared",
    "derive.proof.proving.forward_in_parts: ForwardInParts._respelled: wrong": UNREAD,
    "derive.proof.proving.written_out: inlined: wrong": BOTH,
    "derive.proof.proving.written_out: without_parts: wrong": BOTH,
    "derive.proof.proving.proof: Proofs._in_parts: wrong": BOTH,
    "derive.language.array_node: nowhere: off": "it has nothing to give",
    "derive.language.array_node: nowhere: wrong": "twice nothing is nothing",
}
