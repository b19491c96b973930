"""Rules of a grammar, read: which words are a whole sentence of it. The part of JSGF that has no repetition."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(r"<(\w+)>|([()\[\]|])|([\w']+)")


class Expression(NamedTuple):
    """One part of a rule: ``word``, ``rule``, ``all`` (one after another), ``any`` or ``maybe``."""

    kind: str
    word: str = ""
    parts: "tuple[Expression, ...]" = ()


def parsed(body: str) -> Expression:
    """The right side of a rule.

    Raises:
        ValueError: brackets that do not match.
    """
    tokens = _TOKEN.finditer(body)
    found, end = _any(tokens)
    if end:
        raise ValueError(f"a {end} too many in {body!r}")
    return found


def ends(rule: str, rules: Mapping[str, Expression], words: Sequence[str]) -> frozenset[int]:
    """How many of the first words are a sentence of this rule: all such numbers."""
    known = dict[tuple[str, int], frozenset[int]]()
    none = frozenset[int]()

    def of_rule(name: str, start: int) -> frozenset[int]:
        if name == "VOID":
            return none
        if (name, start) not in known:
            known[name, start] = of(rules[name], start)
        return known[name, start]

    def of(one: Expression, start: int) -> frozenset[int]:
        match one.kind:
            case "word":
                return frozenset({start + 1}) if words[start : start + 1] == [one.word] else none
            case "rule":
                return of_rule(one.word, start)
            case "all":
                reached = frozenset({start})
                for part in one.parts:
                    reached = none.union(*(of(part, at) for at in reached))
                return reached
            case "maybe":
                return of(one.parts[0], start) | {start}
        return none.union(*(of(part, start) for part in one.parts))

    return of_rule(rule, 0)


def _any(tokens: Iterator[re.Match[str]]) -> tuple[Expression, str]:
    """Alternatives up to a closing bracket, or to the end; with that bracket."""
    choices, row = list[Expression](), list[Expression]()
    for token in tokens:
        rule, sign, word = token.groups()
        if rule or word:
            row.append(Expression("rule" if rule else "word", rule or word))
        elif sign == "|":
            choices.append(Expression("all", parts=tuple(row)))
            row = []
        elif sign in "([":
            inner, end = _any(tokens)
            if end != {"(": ")", "[": "]"}[sign]:
                raise ValueError(f"a {sign} is not closed")
            row.append(inner if sign == "(" else Expression("maybe", parts=(inner,)))
        else:
            return Expression("any", parts=(*choices, Expression("all", parts=tuple(row)))), sign
    return Expression("any", parts=(*choices, Expression("all", parts=tuple(row)))), ""
