"""The vocabulary of devices, where those look for it who have not moved on to `shared.actions`."""

from shared.actions import ACTIONS as ACTIONS  # noqa: PLC0414  handed on
from shared.actions import MODES as MODES  # noqa: PLC0414
from shared.actions import Action as Action  # noqa: PLC0414
from shared.actions import wanted as wanted  # noqa: PLC0414
