"""The verdict on a Function at one choice of its options: on each gradient, and the rest."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, replace

from codegen.backwards.like import InNumbers
from codegen.backwards.several import ORDER, OfFunction, right_for
from codegen.backwards.steps import DERIVATIVE, StepReading
from codegen.backwards.subsets import Partly
from derive.claims.checking.report import outcome_of
from derive.claims.checking.verdict import Verdict

RUN = "this check imported its file, and ran its forward and its backward"
MOST_LINES = 3  # of a problem, in brief
SAMPLED = "exit status 0 says that no number differed from --like, not that anything is proved"


@dataclass(frozen=True, repr=False)
class FunctionVerdict(OfFunction):
    """A verdict for each gradient of the Function ``name``; ``problem`` is why there is none, and
    ``blamed`` the gradients that it is about; ``warnings`` are surprises in a correct backward;
    ``needs`` are the only sizes that it supports.
    """

    name: str
    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...] = ()
    problem: str = ""
    numbers: tuple[InNumbers, ...] = ()
    blamed: tuple[str, ...] = ()
    partly: tuple[Partly, ...] = ()  # wrong where only some gradients are asked for
    remarks: tuple[str, ...] = ()
    covered: str = ""  # subsets of gradients that were tried: "every subset of gradients"
    file: str = ""  # where the lines stand
    reading: StepReading = DERIVATIVE  # of steps without a derivative
    needs: tuple[str, ...] = ()
    every: tuple[str, ...] = ()  # floats that are names, not one value
    where: tuple[str, ...] = ()  # conditions on those: "eps > 0"
    fixed: tuple[str, ...] = ()  # floats of which one value was looked at

    @property
    def outcome(self) -> str:
        outcomes = [v.outcome for v in self.verdicts] + [self.reading.outcome]
        outcomes += ["wrong"] * (bool(self.problem) + len(self.partly))
        outcomes += [n.outcome for n in self.numbers]
        return next((o for o in ORDER if o in outcomes), "right")

    @property
    def wrong(self) -> list[str]:
        """The gradients that are wrong."""
        compared = [f"d{n.name}" for n in self.numbers if n.outcome == "wrong"]
        judged = [a.name for v in self.verdicts for a in v.answers if a.outcome == "wrong"]
        partly = [name for p in self.partly for name in p.blamed]
        return [*dict.fromkeys((*self.blamed, *compared, *judged, *partly))]

    @property
    def judged(self) -> dict[str, str]:
        """The outcome for each gradient, as its verdict words it."""
        return {a.name: outcome_of(a) for v in self.verdicts for a in v.answers}

    @property
    def first_line(self) -> str:
        """Where all is right: the gradients and subsets that were checked; empty for a single
        gradient, of which its own verdict says so.
        """
        if not self.right or (len(self.judged) == 1 and not self.covered):
            return ""
        return right_for(self.name, self.judged, [self.covered])

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.first_line, self.body, self.ran)))

    @property
    def ran(self) -> str:
        return RUN

    @property
    def body(self) -> str:
        lines = [self.problem] if self.problem else []
        for p in self.partly:
            lines.append(p.said(self.name, linecache.getline(self.file, p.line).strip()))
        lines += ["where all gradients are asked for:"] if self.partly else []
        lines += [self.reading.words] if self.reading.words else []
        lines += [self._named(str(verdict), verdict) for verdict in self.verdicts]
        needs = f"for sizes with {', '.join(self.needs)}; no others were looked at"
        lines += [needs] if self.needs else []
        lines += map(str, self.numbers)
        lines += [SAMPLED] if self.outcome == "agrees" else []
        lines += self.remarks
        lines += [f"warning: {words}" for words in self.warnings]
        return "\n".join(lines)

    @property
    def brief(self) -> str:
        """The problems, and what was not checked."""
        lines = [self.first_line] if self.first_line else []
        lines += self.problem.splitlines()[:MOST_LINES]
        lines += [p.said(self.name, "").splitlines()[0] for p in self.partly]
        lines += [self.reading.words] if self.reading.words else []
        briefs = [self._named(verdict.brief, verdict) for verdict in self.verdicts]
        lines += [words for words in briefs if "\n" in words or not self.first_line]
        lines += [str(n).splitlines()[0] for n in self.numbers]
        unseen = [f"sizes other than {', '.join(self.needs)}"] if self.needs else []
        unseen += [f"other values of {', '.join(self.fixed)}"] if self.fixed else []
        lines += [f"not looked at: {'; '.join(unseen)}"] if unseen else []
        lines += [f"warning: {w.splitlines()[0]}" for w in self.warnings]
        return "\n".join(lines) or self.outcome

    def _named(self, words: str, verdict: Verdict) -> str:
        """Text that names the class, not the forward that it became."""
        words = words.replace(f" of {verdict.definition.snake}", f" of {self.name}", 1)
        return self.reading.qualified(words)

    @property
    def unexplained(self) -> FunctionVerdict:
        bare = (replace(v, answers=v.unexplained.answers) for v in self.verdicts)
        return replace(self, verdicts=tuple(bare))

    def as_json(self) -> dict:
        return {
            "function": self.name,
            "outcome": self.outcome,
            "status": self.status,
            "gradients": [g for v in self.verdicts for g in v.as_json()["gradients"]],
            "in_numbers": [
                {"gradient": f"d{n.name}", "outcome": n.outcome, "distance": n.distance}
                for n in self.numbers
            ],
            "partly": [
                {"gradients": list(p.blamed), "where": p.where, "line": p.line, "problem": p.words}
                for p in self.partly
            ],
            "remarks": [*filter(None, [self.reading.words]), *self.remarks],
            "needs": list(self.needs),
            "warnings": list(self.warnings),
            "problem": self.problem,
            "ran": RUN,
        }
