"""Foreign bytes to JSON that can be kept: what passes here comes back exactly; all else is a problem with a pointer."""

import math
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from shared.envelope import Command
from shared.errors import Problem

Model = TypeVar("Model", bound=BaseModel)

MOST_ERRORS: Final = 20
_MESSAGE: Final = 300


class _Fault(Exception):  # noqa: N818  never leaves this file
    """A value that cannot be kept; each level on the way out adds its part of the pointer."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
        self.path: list[str | int] = []


def read_json(raw: bytes, max_depth: int) -> Any:
    """Parse JSON strictly: UTF-8, no lone surrogates, finite numbers, bounded depth.

    Raises:
        Problem: 400 or 422, with what is wrong and where.
    """
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise _not_json(raw, str(error)) from None
    try:
        _scan(value, max_depth)
    except _Fault as fault:
        at = pointer(list(reversed(fault.path)))
        if fault.code == "too_deep":
            detail = f"nested deeper than {max_depth} levels at {at[:_MESSAGE]}"
        else:
            detail = f"the number at {at} is beyond what JSON readers can hold"
        raise Problem(fault.code, detail, errors=[{"pointer": at, "detail": detail}]) from None
    return value


def read_command(value: Any) -> Command:
    """A command from parsed JSON.

    Raises:
        Problem: 422, with a pointer per fault.
    """
    if not isinstance(value, dict):
        raise Problem(
            "invalid", 'a command is a JSON object: {"type": "…", "payload": {…}}', errors=[_error([], "not an object")]
        )
    return read_as(Command, value)


def read_as(model: type[Model], value: Any) -> Model:
    """A value of a model from parsed JSON.

    Raises:
        Problem: 422, with a pointer per fault.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)[:MOST_ERRORS]
        errors = [_error(list(fault["loc"]), fault["msg"]) for fault in faults]
        raise invalid(errors) from None


def read_payload(validator: Any, payload: Any) -> None:
    """Hold a payload to its type's JSON Schema.

    Raises:
        Problem: 422, with a pointer per fault, from ``/payload`` on.
    """
    if validator.is_valid(payload):
        return
    errors = []
    for fault in validator.iter_errors(payload):
        errors.append(_error(["payload", *fault.instance_path], fault.message))
        if len(errors) == MOST_ERRORS:
            break
    raise invalid(errors)


def invalid(errors: list[dict[str, str]], code: str = "invalid") -> Problem:
    """A 422 that says its first fault in the detail and all of them in `errors`; `code`: of what is no command."""
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return Problem(code, f"{first['pointer'] or 'the body'}: {first['detail']}{more}", errors=errors)


def _error(path: list[str | int], detail: str) -> dict[str, str]:
    if len(detail) > _MESSAGE:  # a validator says the value first, and in the end what is wrong with it
        detail = f"{detail[: _MESSAGE // 3]}…{detail[-_MESSAGE // 2 :]}"
    return {"pointer": pointer(path), "detail": detail}


def pointer(path: list[str | int]) -> str:
    """RFC 6901."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def _scan(value: Any, levels: int) -> None:
    """Refuse numbers that are not finite (1e400) and nesting beyond `levels`."""
    kind = type(value)
    if kind is float:
        if not math.isfinite(value):
            raise _Fault("not_finite")
        return
    if kind is not dict and kind is not list:
        return
    if levels == 0:
        raise _Fault("too_deep")
    for part, inner in value.items() if kind is dict else enumerate(value):
        if type(inner) in _LEAVES:
            continue
        try:
            _scan(inner, levels - 1)
        except _Fault as fault:
            fault.path.append(part)
            raise


_LEAVES: Final = frozenset({str, int, bool, type(None)})


def _not_json(raw: bytes, why: str) -> Problem:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return Problem("bad_encoding", f"byte {error.start} is not UTF-8: {error.reason}")
    if "recursion" in why:
        return Problem("too_deep", "nested too deeply to be read", errors=[{"pointer": "", "detail": why}])
    try:
        from_json(raw, allow_inf_nan=True)
    except ValueError:
        return Problem("bad_json", why, errors=[{"pointer": "", "detail": why}])
    return Problem("not_finite", "NaN and Infinity are no JSON: send null, or leave the field out")
