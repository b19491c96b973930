"""What a handler leans on outside: a name, how many may use it at once, and when to stop asking it. Pure."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Breaker:
    """When a dependency is left alone, and how it is tried again; counted over all workers.

    Args:
        failures: failed calls in a row that open it.
        open_s: how long nobody calls, seconds; a ``Retry-After`` of the other side may make it longer.
        probes: calls at most under way while it is tried again.
        ramp_s: how long it takes from the first good probe to the full number of calls, seconds.
    """

    failures: int = 5
    open_s: float = 10.0
    probes: int = 2
    ramp_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Dependency:
    """Something outside that states use: ``@state("CHARGING", uses=(PAYMENTS,))``; one object per name and fleet.

    Args:
        name: small letters, digits, _ and -, a letter first.
        concurrency: handlers that may use it at once, over all workers; None: any number.
        per_target: the same, of one target; None: any number.
        breaker: None: it is never left alone.
        retry_ratio: retries allowed per ordinary call, over all workers (a retry budget): 0.2 is one in five.
    """

    name: str
    concurrency: int | None = None
    per_target: int | None = None
    breaker: Breaker | None = field(default_factory=Breaker)
    retry_ratio: float = 0.2
