"""What handlers answer, as far as their source says it plainly: so that a misspelt event is found at import.

Only what is sure is said: a call of the outcome itself with a word written out. What a helper returns, or a word made
at run time, is nobody's guess; the machine ends such a mission with a sentence, should the word be wrong.
"""

import ast
import linecache
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from backend_loop.outcomes import Fail, Go, Retry, Sleep, Stop, WaitFor, WaitForChildren

_WITH_EVENT = (Go, WaitFor)
_WITHOUT = (Fail, Retry, Sleep, Stop)
_PERHAPS = (WaitForChildren,)  # with an event, or none


class Said(NamedTuple):
    """The words of one handler.

    Attributes:
        goes: events of a Go. waits: events of a WaitFor. joins: events of a WaitForChildren.
        kinds: names of the outcomes that it makes.
        whole: there is nothing else that it could answer.
    """

    goes: frozenset[str]
    waits: frozenset[str]
    joins: frozenset[str]
    kinds: frozenset[str]
    whole: bool


def said_by(handler: Callable[..., Any]) -> Said | None:
    """None: its source is not at hand, or it is wrapped by something that may answer for it."""
    code = getattr(handler, "__code__", None)
    if code is None or hasattr(handler, "__wrapped__"):
        return None
    tree = _tree(code.co_filename)
    body = None if tree is None else _function(tree, code.co_name, code.co_firstlineno)
    return None if body is None else _read(body, _Names(handler))


def awaited_in(handler: Callable[..., Any]) -> frozenset[str] | None:
    """Events that anything in the handler's file waits for; None: a word is made at run time, or there is no source."""
    code = getattr(handler, "__code__", None)
    return None if code is None else _awaited(code.co_filename)


@lru_cache(maxsize=256)
def _awaited(filename: str) -> frozenset[str] | None:
    tree, words = _tree(filename), set()
    if tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == WaitFor.__name__:
            if (word := _word(node)) is None:
                return None
            words.add(word)
    return frozenset(words)


@lru_cache(maxsize=4)  # types come file by file, and a tree is large
def _tree(filename: str) -> ast.Module | None:
    text = "".join(linecache.getlines(filename))
    try:
        return ast.parse(text) if text else None
    except SyntaxError:  # the file is not what was imported any more
        return None


def _function(tree: ast.Module, name: str, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == line:
                return node
    return None


class _Names:
    """What a name means inside a handler, where that cannot change."""

    def __init__(self, handler: Any) -> None:
        code = handler.__code__
        self._globals = handler.__globals__
        self._own = {*code.co_varnames, *code.co_freevars, *code.co_cellvars}

    def outcome(self, node: ast.expr) -> type | None:
        """The outcome's class that this expression names."""
        found: Any = None
        if isinstance(node, ast.Name) and node.id not in self._own:
            found = self._globals.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in self._own:
            found = getattr(self._globals.get(node.value.id), node.attr, None)
        return found if found in (*_WITH_EVENT, *_WITHOUT, *_PERHAPS) else None


def _read(function: ast.FunctionDef | ast.AsyncFunctionDef, names: _Names) -> Said:
    words: dict[Any, set[str]] = {Go: set(), WaitFor: set(), WaitForChildren: set()}
    kinds, whole = set[str](), True
    for node in _own_nodes(function):
        if isinstance(node, ast.Return):
            whole = whole and _is_plain(node.value, names)
        elif isinstance(node, ast.Call) and (kind := names.outcome(node.func)) is not None:
            kinds.add(kind.__name__)
            if kind in words and (word := _word(node, named=kind in _PERHAPS)) is not None:
                words[kind].add(word)
    goes, waits, joins = (frozenset(words[kind]) for kind in (Go, WaitFor, WaitForChildren))
    return Said(goes, waits, joins, frozenset(kinds), whole)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Without functions and classes within."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own_nodes(child)


def _is_plain(value: ast.expr | None, names: _Names) -> bool:
    """An outcome with its word written out, or a choice between such ones."""
    if isinstance(value, ast.IfExp):
        return _is_plain(value.body, names) and _is_plain(value.orelse, names)
    if not isinstance(value, ast.Call):
        return False
    kind = names.outcome(value.func)
    if kind in _PERHAPS:
        given = {one.arg: one.value for one in value.keywords}  # None: more of them, made at run time
        return None not in given and isinstance(given.get("event"), ast.Constant | None)
    return kind is not None and (kind in _WITHOUT or _word(value) is not None)


def _word(call: ast.Call, *, named: bool = False) -> str | None:
    given = (
        call.args[0]
        if call.args and not named
        else next((one.value for one in call.keywords if one.arg == "event"), None)
    )
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None
