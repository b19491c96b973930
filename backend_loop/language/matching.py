"""hassil's matching, with what cannot match cut out of the templates first.

hassil walks every alternative of every template; a family's grammar has thousands. Most of their words are not in the
sentence, which takes a look each: what is left over is walked in a millisecond, however much can be said.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hassil import Intents
from hassil.expression import (
    Alternative,
    Expression,
    ListReference,
    Permutation,
    RuleReference,
    Sentence,
    Sequence,
    TextChunk,
)
from hassil.intents import IntentData, RangeSlotList, SlotList, TextSlotList, TextSlotValue
from hassil.string_matcher import MatchContext, MatchSettings, match_expression
from hassil.util import check_excluded_context, check_required_context, fold_case


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a sentence."""

    intent: str
    slots: Mapping[str, Any]
    context: Mapping[str, Any]
    response: str | None


def readings(text: str, intents: Intents, lists: Mapping[str, SlotList]) -> Iterator[Reading]:
    """All ways in which the templates read a folded text.

    Args:
        text: what to read.
        intents: the templates.
        lists: slot lists beside those of the templates: the names that the text holds.
    """
    pruned = _Pruned(text, {**intents.slot_lists, **lists}, intents.expansion_rules)
    spaced = text if intents.settings.ignore_whitespace else f"{text} "  # hassil's mark for the end of the last word
    for name, intent in intents.intents.items():
        for data in intent.data:
            local = pruned.within(data)
            settings = MatchSettings(
                slot_lists=local.lists,
                ignore_whitespace=intents.settings.ignore_whitespace,
                language=intents.language,
            )
            for sentence in data.sentences:
                if not local.may_hold(sentence) or (expression := local.cut(sentence.expression)) is None:
                    continue
                begin = MatchContext(text=spaced, intent_data=data, original_text=spaced)
                for end in match_expression(settings, begin, expression):
                    if end.is_match and _in_place(data, end):
                        slots = {**data.slots, **{entity.name: entity.value for entity in end.entities}}
                        yield Reading(name, slots, end.intent_context, data.response)


def prepare(intents: Intents) -> None:
    """Work out once which words each template needs, so that no sentence waits for it."""
    for intent in intents.intents.values():
        for data in intent.data:
            rules = {**intents.expansion_rules, **data.expansion_rules}
            for sentence in data.sentences:
                sentence.get_required_clauses(rules)


def _in_place(data: IntentData, end: MatchContext) -> bool:
    return check_required_context(data.requires_context, end.intent_context) and not (
        data.excludes_context and not check_excluded_context(data.excludes_context, end.intent_context)
    )


class _Pruned:
    """Templates, lists and rules without the alternatives whose words a text does not hold."""

    def __init__(self, text: str, lists: Mapping[str, SlotList], rules: Mapping[str, Sentence]) -> None:
        self._text = fold_case(text)
        self._numbers = any(sign.isdigit() for sign in text)
        self._all, self._rules = lists, dict(rules)
        self._held = dict[str, bool]()
        self._cut = dict[str, Expression | None]()
        self.lists = dict[str, SlotList]()

    def within(self, data: IntentData) -> "_Pruned":
        """The same for a block that has lists and rules of its own."""
        if not data.slot_lists and not data.expansion_rules:
            return self
        local = _Pruned(self._text, {**self._all, **data.slot_lists}, {**self._rules, **data.expansion_rules})
        local._held = self._held
        return local

    def may_hold(self, sentence: Sentence) -> bool:
        """The text holds the words without which the sentence is none."""
        return all(any(map(self._holds, words)) for words in sentence.get_required_clauses(self._rules))

    def cut(self, expression: Expression) -> Expression | None:
        """What is left of an expression; None: it cannot match."""
        if isinstance(expression, TextChunk):
            return expression if self._holds(expression.text) else None
        if isinstance(expression, Alternative):
            left = [item for item in map(self.cut, expression.items) if item is not None]
            return left[0] if len(left) == 1 else Alternative(items=left) if left else None
        if isinstance(expression, Sequence | Permutation):
            return self._whole(expression)
        if isinstance(expression, RuleReference):
            return self._rule(expression.rule_name)
        kept = not isinstance(expression, ListReference) or self._listed(expression.list_name)
        return expression if kept else None

    def _whole(self, group: Sequence | Permutation) -> Expression | None:
        items = list[Expression]()
        for item in group.items:
            if (part := self.cut(item)) is None:
                return None
            items.append(part)
        return type(group)(items=items)

    def _holds(self, words: str) -> bool:
        if (held := self._held.get(words)) is None:
            held = self._held[words] = fold_case(words.strip()) in self._text
        return held

    def _rule(self, name: str) -> Expression | None:
        if name not in self._cut:
            self._cut[name] = self.cut(self._rules[name].expression)
        return self._cut[name]

    def _listed(self, name: str) -> bool:
        if name not in self.lists:
            self.lists[name] = self._of_list(self._all[name])
        entries = self.lists[name]
        if isinstance(entries, TextSlotList):
            return bool(entries.values)
        return self._numbers or not isinstance(entries, RangeSlotList)

    def _of_list(self, entries: SlotList) -> SlotList:
        if not isinstance(entries, TextSlotList):
            return entries
        return TextSlotList(
            name=entries.name,
            values=[
                TextSlotValue(text_in=left, value_out=value.value_out, context=value.context, metadata=value.metadata)
                for value in entries.values
                if (left := self.cut(value.text_in)) is not None
            ],
        )
