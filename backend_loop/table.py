"""Which status may follow which, under which signal: the truth that the rules of the machine are held to.

PAUSED is not in it: it is a place, which comes on top of any status that is not an end, and leaves it as it is. Nor is
`Resume`, which moves from that place and changes no status.
"""

from collections.abc import Mapping
from typing import Final

from backend_loop import outcomes as o
from shared.status import Status

P, R, W, K = Status.PENDING, Status.RUNNING, Status.WAITING, Status.COMPENSATING
S, F, C = Status.SUCCEEDED, Status.FAILED, Status.CANCELLED

TABLE: Final[Mapping[Status, Mapping[type[o.Signal], frozenset[Status]]]] = {
    P: {
        o.Wake: frozenset({R}),
        o.Cancel: frozenset({C, K}),
        o.Deadline: frozenset({C, F, K}),
        o.Happened: frozenset({P}),
        o.Skip: frozenset({R, S, F, C, K}),
        o.Complete: frozenset({S}),
        o.Pause: frozenset({P}),
    },
    R: {
        o.Wake: frozenset({R}),
        o.Go: frozenset({R, S, F, C, K}),
        o.Fail: frozenset({R, S, F, C, K}),
        o.Retry: frozenset({R, W, S, F, C, K}),
        o.Sleep: frozenset({W, F, K}),
        o.WaitFor: frozenset({R, W, S, F, C, K}),
        o.WaitForChildren: frozenset({R, W, S, F, C, K}),
        o.Spawned: frozenset({R}),
        o.Checkpoint: frozenset({R}),
        o.ChildEnded: frozenset({R, F, K}),
        o.Stop: frozenset({C, K}),
        o.Cancel: frozenset({C, K}),
        o.Deadline: frozenset({F, K}),
        o.Happened: frozenset({R}),
        o.Skip: frozenset({R, S, F, C, K}),
        o.Complete: frozenset({S}),
        o.Superseded: frozenset({C, K}),
        o.NoPermit: frozenset({W, F, K}),
        o.Pause: frozenset({R}),
    },
    W: {
        o.Wake: frozenset({R, S, F, C, K}),
        o.Cancel: frozenset({C, K}),
        o.Deadline: frozenset({F, K}),
        o.Happened: frozenset({R, W, S, F, C, K}),
        o.ChildEnded: frozenset({R, W, S, F, C, K}),
        o.Skip: frozenset({R, S, F, C, K}),
        o.Complete: frozenset({S}),
        o.Pause: frozenset({W}),
    },
    K: {
        o.Wake: frozenset({K}),
        o.Go: frozenset({K, F, C}),
        o.Fail: frozenset({F}),
        o.Retry: frozenset({K, F}),
        o.Sleep: frozenset({K, F}),
        o.WaitFor: frozenset({F}),
        o.WaitForChildren: frozenset({K, F, C}),
        o.Spawned: frozenset({K}),
        o.Checkpoint: frozenset({K}),
        o.ChildEnded: frozenset({K, F, C}),
        o.Stop: frozenset({F}),
        o.Complete: frozenset({K, F, C}),
        o.NoPermit: frozenset({K, F}),
        o.Pause: frozenset({K}),
    },
    S: {},
    F: {},
    C: {},
}
