"""The rooms whose functions are broken one after the other, with the tests that watch them.

Every function of a room is broken automatically (``breaking.wrongs``), so that a new rule, identity
or stage is watched from the day on which it is written; `BY_HAND` has what no machine would think
of: a condition dropped, a sign, a factor. A rule is watched if one of the tests of its room fails.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import partial

from mutants.breaking import Mutant, exchange, functions_of, rewrite, wrongs
from mutants.by_hand import BY_HAND
from mutants.unnoticed import UNNOTICED

TEXTBOOKS = "test_closed_form_quality.py::test_the_closed_form_is_the_textbooks"
COUNTED = "test_closed_form_quality.py::test_no_more_is_read_saved_and_summed_than_by_hand"
REST = (
    "test_watched_rules.py",
    "test_line_proof.py",
    TEXTBOOKS,
    COUNTED,
    "test_derivation.py",
    "test_proof.py",
)
SLOW = (  # for what nobody of these notices: ``make mutants`` with --slow
    "test_closed_form_quality.py",
    "test_steps.py",
    "test_choices.py",
    "test_chosen_by_number.py",
    "test_masked_scores.py",
    "test_hard_forwards.py",
    "test_own_mathematics.py",
    "test_stability.py",
    "test_rounding.py",
    "test_flatten.py",
    "test_split.py",
    "test_ignored_labels.py",
    "test_codegen.py::test_generated_files_are_up_to_date",
)
EMITTED = (
    "test_bound_axes.py",
    "test_captured_axes.py",
    "test_rounding.py",
    "test_printer_tables.py",
    "test_own_mathematics.py",
    "test_flatten.py",
    "test_choices.py",
    "test_chosen_by_number.py",
    "test_hard_forwards.py",
)
READ = ("test_reading.py", "test_check_formulas.py")
ZERO = ("test_exact.py", "test_every_size.py", "test_small_batch.py", "test_hard_forwards.py")
NOTATION = ("test_class_body.py", "test_forward.py", "test_mistakes.py")
PROVED = ("test_proof.py", "test_hard_forwards.py", "test_exact.py")

# A module, and the tests that watch it.
ROOMS: dict[str, tuple[str, ...]] = {
    "derive.gradient.closing.identities": ("test_identities.py", *REST),
    "derive.gradient.closing.product_rules": ("test_identities.py", *REST),
    "derive.gradient.closing.sum_rules": ("test_identities.py", *REST),
    "derive.gradient.closing.choice_rules": ("test_identities.py", *REST),
    "derive.gradient.closing.label_rules": ("test_identities.py", *REST),
    "derive.gradient.closing.diagonal_rules": ("test_identities.py", "test_diagonals.py", *REST),
    "derive.language.at_numbers": ("test_at_numbers.py",),
    "derive.language.called": ("test_called.py",),
    "derive.language.diagonals": ("test_diagonals.py",),
    "derive.gradient.closing.conditions": ("test_identities.py", "test_pieces.py", *REST),
    "derive.gradient.values.hyperbolic_rules": ("test_canonical.py", "test_by_people.py", *REST),
    "derive.gradient.values.logarithm_rules": ("test_canonical.py", "test_by_people.py", *REST),
    "derive.gradient.values.canonical": ("test_canonical.py", "test_stability.py", *REST),
    "derive.gradient.chain.chain": ("test_chain.py", *REST),
    "derive.proof.proving.chain_proof": ("test_chain_proof.py",),
    "derive.proof.proving.inner_gradients": ("test_gradient.py",),
    "derive.proof.proving.parts": ("test_sharding.py",),
    "derive.proof.proving.alike": ("test_alike.py", "test_proof.py"),
    "derive.proof.proving.claim": ("test_random_point.py", "test_proof.py", "test_chain_proof.py"),
    "derive.proof.proving.random_point": ("test_random_point.py", "test_proof.py"),
    "derive.language.scans": ("test_nodes.py", "test_scans.py", "test_scan_theorems.py"),
    "derive.gradient.chain.ties": ("test_recurrences.py",),
    "derive.language.log_scans": ("test_nodes.py", "test_scans.py"),
    "derive.language.maxima_so_far": ("test_nodes.py", "test_scans.py"),
    "derive.proof.proving.largest_of": ZERO,
    "derive.proof.proving.largest_up_to": ("test_scans.py",),
    "derive.proof.proving.products_between": ("test_scan_theorems.py", "test_scans.py"),
    "derive.gradient.closing.scan_rules": ("test_identities.py", "test_scans.py"),
    "codegen.lowering.scans": ("test_scans.py",),
    "derive.language.array_node": ("test_nodes.py", "test_chain.py", *NOTATION),
    "derive.language.finite": ("test_nodes.py",),
    "derive.language.one_hots": ("test_nodes.py", "test_chain.py", *NOTATION),
    "derive.language.renaming": ("test_bound_axes.py", *NOTATION),
    "derive.language.reshaping": ("test_nodes.py", "test_flatten.py", *NOTATION),
    "derive.language.sums": ("test_nodes.py", "test_chain.py", *REST),
    "derive.language.matrices": ("test_nodes.py", "test_matrices.py"),
    "derive.language.cofactors": ("test_matrices.py", "test_matrix_theorems.py"),
    "derive.proof.proving.matrix_entries": ("test_matrix_theorems.py", "test_matrices.py"),
    "codegen.lowering.matrices": ("test_matrices.py",),
    "derive.language.extremes": ("test_nodes.py", "test_choices.py", "test_class_body.py"),
    "derive.language.functions": ("test_special_functions.py",),
    "derive.language.choices": (
        "test_exact.py",
        "test_nested_choices.py",
        "test_ignored_labels.py",
        "test_choices.py",
        "test_masked_scores.py",
        "test_position.py",
    ),
    "derive.language.kept_labels": (
        "test_exact.py",
        "test_nested_choices.py",
        "test_ignored_labels.py",
        "test_choices.py",
        "test_masked_scores.py",
        "test_position.py",
    ),
    "derive.gradient.closing.closed_form": (*REST, "test_canonical.py", "test_findings.py"),
    "derive.gradient.closing.simplifying": (*REST, "test_canonical.py", "test_findings.py"),
    "derive.gradient.closing.drafting": (*REST, "test_canonical.py", "test_findings.py"),
    "derive.gradient.closing.stages": (*REST, "test_canonical.py", "test_findings.py"),
    "derive.gradient.closing.rewriting": REST,
    "derive.gradient.closing.facts": (
        *REST,
        "test_steps.py::test_facts_about_the_forward_are_found_and_not_listed",
    ),
    "derive.gradient.values.graph": ("test_graph.py", "test_risks.py", *REST),
    "derive.gradient.values.parts": ("test_risks.py", *REST),
    "derive.gradient.values.aliases": ("test_risks.py", *REST),
    "derive.gradient.values.naming": ("test_risks.py", *REST),
    "derive.gradient.values.equations": ("test_equations.py", "test_identities.py", *REST),
    "derive.gradient.values.read_back": ("test_segments.py", *REST),
    "derive.gradient.values.moments": ("test_moments.py", *REST),
    "derive.gradient.values.relations": ("test_risks.py", *REST),
    "derive.gradient.closing.factoring": (*REST, "test_check.py"),
    "derive.gradient.closing.common_sums": REST,
    "derive.gradient.closing.sharing": REST,
    "derive.gradient.closing.forms": (
        "test_bounds.py",
        "test_canonical.py",
        "test_stability.py",
        *REST,
        "test_steps.py",
    ),
    "derive.gradient.closing.recomputation": REST,
    "derive.gradient.closing.cost": REST,
    "derive.gradient.closing.eager": REST,
    "derive.gradient.closing.sweeps": REST,
    "derive.gradient.closing.search": (*REST, "test_canonical.py", "test_limits.py"),
    "derive.gradient.range.scaled": (
        "test_bounds.py",
        "test_line_proof.py",
        "test_stability.py",
        *REST,
    ),
    "derive.gradient.range.scale_rules": (
        "test_bounds.py",
        "test_line_proof.py",
        "test_stability.py",
        *REST,
    ),
    "derive.gradient.closing.risks": ("test_risks.py", "test_bounds.py", *REST),
    "derive.gradient.range.bounds": ("test_bounds.py",),
    "derive.gradient.range.exponents": ("test_bounds.py", "test_stability.py", *REST),
    "derive.gradient.range.exponential_quotients": ("test_stability.py", *REST),
    "derive.proof.proving.forward_plan": ("test_line_proof.py", "test_stability.py", *REST),
    "derive.proof.proving.line_proof": ("test_line_proof.py", "test_stability.py", *REST),
    "derive.proof.zero.exact": ZERO,
    "derive.proof.zero.indeterminates": ZERO,
    "derive.proof.zero.fingerprints": ZERO,
    "derive.proof.zero.indicator": ZERO,
    "derive.proof.zero.cases": ZERO,
    "derive.proof.zero.independent_parts": ZERO,
    "derive.proof.zero.positive": ZERO,
    "derive.proof.zero.fractions": ZERO,
    "derive.proof.zero.products": ("test_polynomials.py",),
    "derive.proof.proving.every_size": ("test_nodes.py", "test_every_size.py", *PROVED),
    "derive.proof.proving.contraction": ("test_every_size.py", *PROVED),
    "derive.proof.proving.numbering": ("test_every_size.py", *PROVED),
    "derive.proof.proving.index_nodes": ("test_every_size.py", *PROVED),
    "derive.proof.proving.total_derivative": ("test_small_batch.py", *PROVED),
    "derive.gradient.values.reductions": ("test_equations.py", *REST),
    "derive.language.segments": ("test_segments.py", "test_identities.py"),
    "codegen.lowering.segments": ("test_segments.py",),
    "derive.proof.proving.indexed_sum": (*ZERO, "test_masked_scores.py"),
    "derive.proof.proving.small_batch": ("test_nodes.py", "test_small_batch.py", *PROVED),
    "derive.proof.proving.proof": ("test_proof.py", *REST),
    "derive.gradient.orders.forwards": ("test_orders.py", "test_second_order_shown.py"),
    "derive.gradient.orders.kinks": ("test_kinks.py",),
    "derive.gradient.orders.third": ("test_third_order.py",),
    "derive.gradient.orders.second": ("test_orders.py", "test_second_order_shown.py"),
    "derive.proof.proving.certified": ("test_certificate.py",),
    "derive.proof.proving.proved": ("test_proof.py", *REST),
    "derive.proof.proving.forward_in_parts": ("test_proof.py", *REST),
    "derive.proof.proving.written_out": ("test_proof.py", *REST),
    "derive.proof.proving.batch_sizes": ("test_at_numbers.py", "test_proof.py", *REST),
    "derive.language.traversal": REST,
    "codegen.lowering.by_value": ("test_pieces.py", *EMITTED),
    "codegen.lowering.choices": ("test_pieces.py", *EMITTED),
    "codegen.lowering.conditions": EMITTED,
    "codegen.lowering.products": EMITTED,
    "codegen.lowering.pullbacks": EMITTED,
    "codegen.lowering.terms": EMITTED,
    "codegen.lowering.constants": ("test_printer_tables.py",),
    "codegen.lowering.context": EMITTED,
    "derive.language.operations": REST,
    "codegen.lowering.expressions": EMITTED,
    "codegen.lowering.frames": EMITTED,
    "codegen.lowering.differentiated": ("test_forward_mode.py",),
    "codegen.lowering.fused": ("test_fused.py", *EMITTED),
    "codegen.lowering.gates": ("test_pieces.py", "test_printer_tables.py", *EMITTED),
    "codegen.lowering.idioms": EMITTED,
    "codegen.lowering.indices": EMITTED,
    "codegen.lowering.nodes": EMITTED,
    "codegen.lowering.picks": EMITTED,
    "codegen.lowering.pieces": ("test_pieces.py", *EMITTED),
    "codegen.lowering.repeated": ("test_repeated.py",),
    "codegen.lowering.reshapings": EMITTED,
    "codegen.lowering.sums": EMITTED,
    "derive.language.detached": ("test_detach.py",),
    "derive.language.reading_at": ("test_nodes.py", "test_reading_at.py"),
    "codegen.lowering.convolutions": ("test_reading_at.py",),
    "codegen.lowering.joined": ("test_reading_at.py",),
    "codegen.lowering.overlaps": ("test_reading_at.py",),
    "codegen.lowering.reads": ("test_reading_at.py",),
    "derive.language.guarded": ("test_unusual_forwards.py",),
    "derive.language.quotients": ("test_check_as_called.py", "test_unusual_forwards.py"),
    "derive.gradient.range.decided": ("test_check_conditions.py",),
    "derive.proof.zero.conditions": ("test_unusual_forwards.py", *ZERO),
    "codegen.lowering.bounded": ("test_every_use.py",),
    "codegen.lowering.paths": ("test_every_use.py",),
    "codegen.lowering.vanishing": ("test_every_use.py",),
    "codegen.lowering.zero_factors": ("test_every_use.py",),
    "codegen.lowering.powers": ("test_every_use.py",),
}


# Tables of words, of which every entry is left out and exchanged for another one.
TABLES: dict[tuple[str, str], tuple[str, ...]] = {
    ("codegen.targets.torch.vocabulary", "FUNCTIONS"): ("test_printer_tables.py",),
    ("codegen.targets.torch.vocabulary", "PULLBACKS"): (
        "test_printer_tables.py",
        "test_rounding.py",
    ),
    ("codegen.targets.torch.vocabulary", "ROOTS"): ("test_printer_tables.py",),
    ("codegen.targets.torch.vocabulary", "IN_NUMBERS"): ("test_printer_tables.py",),
    ("codegen.targets.torch.vocabulary", "REDUCTIONS"): ("test_bound_axes.py", "test_stability.py"),
    ("codegen.targets.torch.vocabulary", "UNSHIFTED"): ("test_stability.py",),
    ("derive.claims.reading.operations.vocabulary", "OPERATIONS"): READ,
    ("derive.claims.reading.operations.vocabulary", "RELATIONS"): READ,
    ("derive.claims.reading.operations.vocabulary", "ATTRIBUTES"): READ,
    ("derive.claims.reading.operations.vocabulary", "BUILTINS"): READ,
    ("derive.claims.reading.operations.vocabulary", "MODULES"): READ,
}

# What holds no rules, rooms and single modules: the notation, records, words and what is shown.
ELSEWHERE = (
    *(
        "derive.running",
        "derive.language.source",
        "derive.language.torch_ops",
        "derive.language.notation",
        "derive.language.formulas",
        "derive.gradient.found",
    ),
    *(
        "derive.show",
        "derive.certificate",
        "derive.claims.reading",
        "derive.claims.checking",
        "derive.commands",
    ),
    *("derive.language.errors", "derive.language.symbols", "derive.language.entries"),
    *("derive.language.nodes", "derive.language.declarations"),
    *("derive.language.words", "derive.language.lexicon"),
    *("derive.language.domain", "derive.language.float_range", "derive.language.names"),
    *("derive.language.identity", "derive.gradient.closing.steps", "derive.language.distributions"),
    *(
        "derive.language.lengths",
        "derive.language.divisors",
        "derive.language.windows",
        "derive.language.awaited",
    ),
    *("derive.language.pending", "derive.language.gradient"),
    *("derive.gradient.range.following", "derive.gradient.values.solving"),
    *("derive.language.sympy_mended", "derive.language.axes_meant", "derive.language.nearest"),
    *("derive.derivation", "derive.version", "derive.math"),
    *(
        "derive.gradient.orders.check",
        "derive.gradient.orders.sections",
        "derive.gradient.orders.together",
        "derive.gradient.orders.verdict",
    ),
)


def names_of_mutants() -> Iterator[str]:
    """The names of all that could be tried, those that nobody would notice included."""
    for room in ROOMS:
        for name, function in functions_of(room).items():
            yield from (f"{room}: {name}: {words}" for words, _ in wrongs(function))


def mutants() -> Iterator[Mutant]:
    """All of them, room by room; those that are known to change nothing are left out."""
    for room, watchers in ROOMS.items():
        for name, function in functions_of(room).items():
            for words, wrong in wrongs(function):
                mutant = f"{room}: {name}: {words}"
                if mutant not in UNNOTICED:
                    yield Mutant(mutant, watchers, partial(exchange, function, wrong))
    for (room, name), changes in BY_HAND.items():
        function = functions_of(room)[name]
        for old, new in changes:
            words = f"{room}: {name}: {old!r} -> {new!r}"
            yield Mutant(words, ROOMS[room], partial(rewrite, function, old, new))
    for (module, name), watchers in TABLES.items():
        table = getattr(importlib.import_module(module), name)
        for key, other in zip(table, [*list(table)[1:], next(iter(table))], strict=True):
            words = f"{module}: {name}: {key!r}"
            yield Mutant(f"{words}: left out", watchers, partial(table.pop, key))
            if table[other] != table[key]:
                exchanged = partial(table.update, {key: table[other]})
                yield Mutant(f"{words}: that of {other!r}", watchers, exchanged)
