"""Wrong conditions, signs and factors, written by hand: the text of a function, and another."""

Changes = tuple[tuple[str, str], ...]

BY_HAND: dict[tuple[str, str], Changes] = {
    ("derive.language.array_node", "nowhere"): (
        ("return []", "return [(node.operand, upstream)]"),
    ),
    # what does not vary along an axis
    ("derive.gradient.closing.sum_rules", "move_out"): (
        ("not axes_of(f) & carried", "not axes_of(f) >= carried"),
        (
            "summed(Mul(*inside), node.axes",
            "summed(Mul(*inside), sorted(axes_of(Mul(*inside)), key=str)",
        ),
    ),
    ("derive.gradient.closing.sum_rules", "reshaped_back"): (
        ("and node.axes == inner.into and node.into == inner.axes", ""),
    ),
    ("derive.gradient.closing.sum_rules", "reshaped_outside"): (
        ("not axes_of(f) & set(node.binds)", "True"),
        ("if not outside or any(axes_of(f) & set(node.brings) for f in outside)", "if not outside"),
    ),
    ("derive.gradient.closing.sum_rules", "reshaped_total"): (
        ("if not set(inner.brings) <= set(node.axes)", "if not set(inner.brings) & set(node.axes)"),
    ),
    ("derive.gradient.closing.product_rules", "cancel"): ((">= 1", ">= -1"),),
    ("derive.gradient.closing.choice_rules", "choose_once"): (
        ("[condition for _, condition in f.args] == conditions", "len(f.args) == len(conditions)"),
    ),
    ("derive.gradient.closing.choice_rules", "choose_one_of"): (
        ("if all(0 in pair for pair in pairs)", "if True"),
        (" or conditions[:alike] != wider[:alike]", ""),
    ),
    ("derive.gradient.closing.label_rules", "one_hot_total"): (("if axis != hot.axis", ""),),
    ("derive.gradient.closing.label_rules", "one_hot_power"): (("and node.exp.is_positive", ""),),
    ("derive.gradient.closing.label_rules", "picked"): (
        ("if hot not in node.args", "if hot is None"),
        (" and {*Mul.make_args(row)} <= {*node.args}", ""),
    ),
    ("derive.gradient.closing.label_rules", "same_for_segment"): (
        ("along_labels or power.is_positive or other in knowledge.relations.divisors", "True"),
        (" or axes_of(other) & {*node.axes}", ""),
    ),
    ("derive.gradient.closing.label_rules", "read_back"): (("found[0] == outer[0]", "True"),),
    ("derive.gradient.closing.label_rules", "one_hot_chosen"): (("value.is_number and", ""),),
    ("derive.language.segments", "picked_of"): (("and (f.axis,) == e.axes", ""),),
    ("derive.gradient.closing.conditions", "fewer_conditions"): (("if is_zero(", "if bool("),),
    ("derive.gradient.closing.conditions", "_asked_of_magnitudes"): (
        ("test.rhs.is_positive", "True"),
    ),
    ("derive.gradient.closing.conditions", "of_magnitude"): (
        (" or expand(upper.rhs + lower.rhs) != 0", ""),
    ),
    ("codegen.lowering.gates", "_measure"): (
        ("return sign, MINUS_ONE", "return sign, ZERO"),
        ("return None if passes else (sign, ZERO)", "return sign, ZERO"),
    ),
    ("codegen.lowering.gates", "choice_of"): (("not larger, no, yes", "larger, no, yes"),),
    ("codegen.lowering.choices", "_extreme"): (("if ratio.is_positive", "if True"),),
    ("codegen.lowering.pieces", "_joined"): ((" or b != 0", ""),),
    ("codegen.lowering.by_value", "lowest_at_edge"): (('(op == "<=")', "True"),),
    # the zero test: what it may not call zero, and what it must
    ("derive.proof.zero.indeterminates", "Indeterminates._note_share"): (("lcm(", "max("),),
    ("derive.proof.zero.indeterminates", "Indeterminates._signed"): (
        ("(-symbol if flip else symbol)", "symbol"),
    ),
    ("derive.proof.zero.indeterminates", "Indeterminates._choice"): (
        ("(1 - holds) * value", "value"),
    ),
    ("derive.proof.zero.indeterminates", "Indeterminates._generator"): (
        ("if known == args", "if True"),
    ),
    ("derive.proof.zero.exact", "ZeroTest._reduced"): (
        ("and s.group not in groups", ""),
        ("powers[i] % 2 if s in self.met.signs else 1", "1"),
    ),
    ("derive.proof.zero.cases", "vanishes_by_cases"): (
        ("return False  # a case", "pass  # a case"),
    ),
    ("derive.proof.zero.independent_parts", "under_one_sum"): (
        ("if not rest.free_symbols & set(sums[0].variables)", "if True"),
    ),
    ("derive.proof.zero.independent_parts", "_by_sizes"): (
        ("if len({*limits}) < len(limits)", "if False"),
    ),
    ("derive.proof.zero.independent_parts", "independent"): (
        ("if not f.free_symbols & bound", "if True"),
    ),
    ("derive.proof.zero.cases", "_vanishes"): (
        ("if between and case.has(*INFINITE)", "if case.has(*INFINITE)"),
        ("{**signs, asked: tuple(alike)}", "{**signs, asked: (side,)}"),
    ),
    ("derive.proof.zero.cases", "_possible"): (
        ("return OPEN", "return (1, -1)"),
        ("return OPEN", "return (1, 0)"),
        ("turned * side for", "side for"),
    ),
    ("derive.proof.zero.cases", "_chosen"): (
        ("turned * side in HOLDS", "side in HOLDS"),
        ("Integer(turned * side)", "Integer(side)"),
    ),
    ("derive.proof.zero.cases", "_solved"): (
        ("or not _implied(slope, others, test)", ""),
        ("place - line / slope", "place + line / slope"),
    ),
    ("derive.proof.zero.positive", "is_positive"): (
        ("all(map(_is_nonnegative", "any(map(_is_nonnegative"),
        ("all(map(is_positive", "any(map(is_positive"),
    ),
    ("derive.proof.zero.positive", "_is_nonnegative_where"): (
        ("orders and e == ", "orders and e != "),
    ),
    ("derive.proof.zero.positive", "split_log"): (("is_positive(f)]", "True]"),),
    ("derive.proof.zero.positive", "scaled"): (("if s.is_positive}", "}"),),
    ("derive.proof.zero.positive", "_log_of_sum"): (("exponent + log(content)", "exponent"),),
    # what is taken out of exponentials
    ("derive.gradient.range.scaled", "Scales._safe_product"): (
        ("if several else inside", "if False else inside"),
        ("len(growing) > 1", "growing"),
    ),
    ("derive.gradient.range.scaled", "Scales.finished"): (("self.give_name = None", "pass"),),
    ("derive.gradient.range.scaled", "Scales._may_be_none"): (("and not definition.has(Sum)", ""),),
    ("derive.proof.zero.fractions", "Fractions._over_common_denominator"): (
        ("max(common", "min(common"),
    ),
    ("derive.proof.zero.fractions", "Fractions._product"): (("+ power", ""),),
    ("derive.proof.zero.fractions", "Fractions._inverse"): (
        ("(1 / content), {primitive: 1}", "1, {primitive: 1}"),
    ),
    # the second route
    ("derive.proof.proving.contraction", "_contracted"): (("and not other.has(variable)", ""),),
    ("derive.proof.proving.contraction", "_summed_term"): (
        ("count * outside * numbered", "outside * numbered"),
        ("else count * term", "else term"),
        (
            "{v: Dummy(v.name, integer=True) for v in factor.variables}",
            "{v: v for v in factor.variables}",
        ),
    ),
    ("derive.proof.proving.numbering", "_first_free_number"): (("+ 1 for n", "for n"),),
    ("derive.proof.proving.numbering", "_connected"): (("if g[1] & own", "if False"),),
    ("derive.proof.proving.every_size", "IndexReader.position"): (
        ("place * size + i - 1", "place + i - 1"),
    ),
    ("derive.proof.proving.every_size", "IndexReader.is_label"): (("[label + 1]", "[label]"),),
    ("derive.proof.proving.every_size", "IndexReader.reshaped"): (("raise NotShown", "str"),),
    ("derive.proof.proving.contraction", "_vanishes_under_sums"): (
        ("if len(sums) == 1", "if sums"),
    ),
    # the first route
    ("derive.proof.proving.small_batch", "SmallBatch._is_numbered_first"): (
        ("if inner > met.get(part, 0)", "if inner"),
    ),
    ("derive.proof.proving.small_batch", "SmallBatch._treats_places_alike"): (
        ("node.is_equivariant", "True"),
    ),
    ("derive.proof.proving.largest_of", "indicators"): (("Integer(1) - Add(*free)", "Integer(0)"),),
    # the claims and the proof
    ("derive.proof.proving.claim", "ShownClaims.decide"): (("ground.decide()", "True"),),
    ("derive.proof.proving.claim", "proved_on"): (("return None", "continue"),),
    ("derive.proof.proving.claim", "Batch._named_in"): (("for v in s.values}", "for v in ()}"),),
    ("derive.proof.proving.claim", "Batch.may_vanish"): (("all(", "any("),),
    ("derive.proof.proving.random_point", "_asked_in"): (
        ("Eq, Ne", "Eq"),
        ("Eq, Ne", "Ne"),
    ),
    ("derive.proof.proving.random_point", "RandomPoint._place_of_one"): (("max(", "min("),),
    ("derive.proof.proving.random_point", "RandomPoint._drawn"): (
        ("< ASKED", "< 0"),
        ("scalar.is_positive or", ""),
    ),
    ("derive.proof.proving.proof", "Proofs.gradient"): (
        ("self.step(adjoint), ", ""),
        (", *map(self.closed, read)", ""),
        ("if a.name in met and a is not adjoint", "if False"),
    ),
    ("derive.proof.proving.forward_in_parts", "ForwardInParts._respelled"): (
        ("if written is not None and own != written.expression:", "if False:"),
    ),
    ("derive.proof.proving.written_out", "_is_computed_again"): (
        ("form.definition.by_name", "form.relations.by_name"),
    ),
    ("derive.proof.proving.proof", "Proofs._by_steps"): (("return None", "continue"),),
    ("derive.proof.proving.batch_sizes", "batches_of"): (
        ("if found is None:", "if found is not None:"),
    ),
    ("derive.proof.proving.written_out", "are_the_same"): (
        ("e.is_positive or None", "True"),
        ("entries.setdefault(e, ", "entries.setdefault(e.func, "),
    ),
    ("derive.proof.proving.chain_proof", "_claims"): (("and not reads", ""),),
    ("derive.proof.proving.line_proof", "proved_lines"): (
        ("how if in_order else UNPROVED", "how"),
        ("elif tensor.name in saved", "elif False"),
    ),
    ("derive.proof.proving.line_proof", "_how"): (("and claim.args == truth.args", ""),),
}
