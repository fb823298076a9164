"""Wrong conditions, signs and factors, written by hand: the text of a function, and another."""

Changes = tuple[tuple[str, str], ...]

BY_HAND: dict[tuple[str, str], Changes] = {
    ("derive.rules", "_nowhere"): (("return []", "return [(node.operand, upstream)]"),),
    # what does not vary along an axis
    ("derive.identities", "_move_out"): (
        ("not axes_of(f) & carried", "not axes_of(f) >= carried"),
        (
            "summed(Mul(*inside), node.axes",
            "summed(Mul(*inside), sorted(axes_of(Mul(*inside)), key=str)",
        ),
    ),
    ("derive.identities", "_reshaped_back"): (
        ("and node.axes == inner.into and node.into == inner.axes", ""),
    ),
    ("derive.identities", "_reshaped_outside"): (
        ("not axes_of(f) & set(node.binds)", "True"),
        ("if not outside or any(axes_of(f) & set(node.brings) for f in outside)", "if not outside"),
    ),
    ("derive.identities", "_reshaped_total"): (
        ("if not set(inner.brings) <= set(node.axes)", "if not set(inner.brings) & set(node.axes)"),
    ),
    ("derive.identities", "_cancel"): ((">= 1", ">= -1"),),
    ("derive.choice_rules", "choose_once"): (
        ("[condition for _, condition in f.args] == conditions", "len(f.args) == len(conditions)"),
    ),
    ("derive.choice_rules", "choose_one_of"): (
        ("if all(0 in pair for pair in pairs)", "if True"),
        (" or conditions[:alike] != wider[:alike]", ""),
    ),
    ("derive.choice_rules", "one_hot_total"): (("if axis != node.operand.axis", ""),),
    ("derive.choice_rules", "one_hot_power"): (("and node.exp.is_positive", ""),),
    ("derive.choice_rules", "one_hot_picks"): (
        ("picked.axes == (hot.axis,)", "True"),
        ("hot in factors and", ""),
    ),
    ("derive.choice_rules", "picked_over_itself"): (
        ("hots and all(f in node.args for f in factors)", "hots"),
        ("and picked.axes == (f.axis,)", ""),
    ),
}
