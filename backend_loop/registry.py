"""Which mission types this process knows: imported by path, or found as entry points."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Final

from backend_loop.mission import DefinitionError, Mission, MissionType

GROUP: Final = "dualloop.missions"
BUILT_IN: Final = tuple(
    f"backend_loop.missions.{name}"
    for name in (
        "agent_run",
        "assistant_command",
        "device_control",
        "device_query",
        "device_sequence",
        "etl_run",
        "firmware_rollout",
        "firmware_update",
        "order_fulfil",
        "payment_ship",
        "report_export",
        "scene_run",
        "speech_transcribe",
        "webhook_deliver",
    )
)
"""Modules of the mission types that come with the product."""


def load(paths: Iterable[str]) -> dict[str, MissionType]:
    """Import mission modules and check that no type is there twice; by ``type@version``, the older ones included.

    Args:
        paths: import paths, such as ``my_missions`` or ``shop.missions.orders``.

    Raises:
        DefinitionError: a module that is not there or has no mission, or a doubled type.
        BaseException: whatever a module raises while it is imported.
    """
    modules = [_import(path) for path in dict.fromkeys((*BUILT_IN, *paths))]
    modules += [module for point in entry_points(group=GROUP) if isinstance(module := point.load(), ModuleType)]
    types: dict[str, MissionType] = {}
    for module in modules:
        found = [
            value.definition
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Mission) and value.__module__ == module.__name__
        ]
        if not found:
            raise DefinitionError(f"{module.__name__} defines no mission type: write a class that extends Mission")
        for definition in found:
            for kind in definition.kinds:
                other = types.setdefault(kind, definition)
                if other is not definition:
                    raise DefinitionError(
                        f"{kind} is defined twice, by {other.mission.__module__} and {module.__name__}: "
                        "rename one, or raise its version and oldest"
                    )
    _check_dependencies(types)
    return types


def _check_dependencies(types: Mapping[str, MissionType]) -> None:
    """One name, one limit: its permits and its breaker are shared by whoever uses it."""
    known: dict[str, tuple[object, str]] = {}
    for definition in types.values():
        for spec in definition.specs:
            for dependency in spec.uses:
                other, where = known.setdefault(dependency.name, (dependency, definition.type))
                if other != dependency:
                    raise DefinitionError(
                        f"dependency {dependency.name} has other limits in {definition.type} than in {where}: "
                        "define it once and import it"
                    )


def _import(path: str) -> ModuleType:
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if not f"{path}.".startswith(f"{error.name}."):
            raise  # it is there: what is missing is something that it imports itself
        raise DefinitionError(
            f"DUALLOOP_MISSIONS names {path!r}, which cannot be imported ({error}): "
            "give import paths by comma, and start where they can be found"
        ) from error
