"""The matrix rule x layer: from the rules and what is known of each layer, and from a run.

``python -m tests.conformance.matrix`` writes the expected one into docs/channel-layers.md. It is
the measured one, too, as long as the suite passes: a layer that breaks another rule, or no longer
breaks one, fails it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from itertools import chain
from pathlib import Path

from .base import applies
from .subject import Subject
from .suite import SECTIONS

PAGE = Path(__file__).parents[2] / "docs" / "channel-layers.md"
BEGIN = "<!-- matrix: written by `python -m tests.conformance.matrix` -->"
END = "<!-- end of matrix -->"
KEEPS, BREAKS, NOT_APPLICABLE = "yes", "no", "n/a"


@dataclass(frozen=True)
class Rule:
    """One rule: the name of its test, and its sentence."""

    name: str
    sentence: str
    section: str
    test: Callable[..., object]


def rules() -> list[Rule]:
    """Return every rule of the suite, in the order of the specification."""
    return [
        Rule(name, " ".join(cleandoc(test.__doc__ or "").split()), section, test)
        for section, holder in SECTIONS.items()
        for name, test in vars(holder).items()
        if name.startswith("test_")
    ]


def expected(rule: Rule, subject: Subject) -> str:
    """Return what the suite expects of ``subject``: yes, no or n/a."""
    if not applies(subject, rule.test):
        return NOT_APPLICABLE
    return BREAKS if rule.name in subject.breaks else KEEPS


def markdown(subjects: Sequence[Subject]) -> str:
    """Return the expected matrix as Markdown, each "no" with the number of its reason."""
    reasons = list(dict.fromkeys(chain(*(one.breaks.values() for one in subjects))))
    lines = [row("Rule", *(one.name for one in subjects)), row("---", *[":-:"] * len(subjects))]
    section = None
    for rule in rules():
        if rule.section != section:
            section = rule.section
            lines.append(row(f"**{section}**", *[""] * len(subjects)))
        lines.append(row(rule.sentence, *(cell(rule, one, reasons) for one in subjects)))
    lines.append(row("**rules kept**", *(kept(one) for one in subjects)))
    lines += ["", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))]
    return "\n".join(lines) + "\n"


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def cell(rule: Rule, subject: Subject, reasons: Sequence[str]) -> str:
    answer = expected(rule, subject)
    if answer == BREAKS:
        return f"**{answer}** ({reasons.index(subject.breaks[rule.name]) + 1})"
    return answer


def kept(subject: Subject) -> str:
    answers = [expected(rule, subject) for rule in rules()]
    return f"{answers.count(KEEPS)} of {len(answers) - answers.count(NOT_APPLICABLE)}"


def written(page: str, table: str) -> str:
    """Return ``page`` with ``table`` between the markers; ValueError where they are missing."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n\n{table}\n{END}{after}"


def in_terminal(outcomes: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield the lines of what a run found: ``outcomes`` by rule and layer."""
    names = list(dict.fromkeys(layer for _, layer in outcomes))
    yield " " * 66 + "".join(f"{name:>14}" for name in names)
    for rule in rules():
        cells = [outcomes.get((rule.name, name)) for name in names]
        if any(cells):
            yield f"{rule.name:66}" + "".join(f"{one or '-':>14}" for one in cells)


def main() -> None:
    from .layers import SUBJECTS

    PAGE.write_text(written(PAGE.read_text(), markdown(SUBJECTS)))
    sys.stdout.write(f"wrote {PAGE}\n")


if __name__ == "__main__":
    main()
