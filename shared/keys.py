"""Every key and channel, built here and nowhere else.

All keys of a shard carry its hash tag, so that no script ever touches two shards:

====================================  ======  =======================================================================
key under ``dl:{sN}:``                kind    holds, and until when
====================================  ======  =======================================================================
``mission:<id>``                      hash    the record, the truth about one mission; until retired
``log:<id>``                          list    its events, JSON, event ``seq`` n at index n - 1; until retired
``result:<id>``                       string  the result document; expires with the retention
``inbox:<id>``                        list    unread entries for the lease holder; until consumed or the end
``inbox_ids:<id>``                    set     ids of all entries of the run; until the end
``outbox:<id>``                       list    rows that a commit causes elsewhere; until carried out
``dead_rows:<id>``                    list    rows that were refused for good, and why, JSON; until retired
``outboxes``                          zset    missions with rows, by when somebody is to carry the oldest, epoch ms
``lane:<priority>:<pool>:<tenant>``   zset    ready missions by order number
``ring:<priority>:<pool>``            zset    tenants with a lane that is not empty, by the time last served
``timers``                            zset    waiting missions by wake time, epoch ms
``deadlines``                         zset    missions by deadline, epoch ms
``attended``                          zset    missions to be cancelled once unwatched, by when the last watcher lapses
``retire``                            zset    ended missions by the time to remove them, epoch ms
``dead_letters``                      zset    those among them that failed for good, by when, epoch ms
``paused``                            zset    paused missions by when, epoch ms
``intents:<tenant:target:aspect>``    zset    who wants something of this aspect, by age; the newest that acted stays
``permits:<scope>``                   hash    missions that hold a permit, and under which fence
``permit_queue:<scope>``              zset    missions that wait for one, by order number
``target:<tenant>:<target>``          string  the mission that holds this target
``waiters:<tenant>:<target>``         zset    missions that wait for it, by when they came and priority
``parked:<type@version>``             zset    missions of a type that no passing worker knew, by first parking
``parked_types``                      set     the types that have such missions
``parked_known``                      hash    when a worker that knows such a type last claimed, epoch ms
``owners``                            zset    leases: owner id by lease end, epoch ms
``looks``                             hash    first looks at lapsed owners: lease end and time of the look
``held:<owner>``                      set     missions this owner leases
``signals:<owner>``                   set     those among them with unread entries
``permits:<scope>``                   hash    who holds a permit of dep:…, type:… or tenant:…: id → fence of its lease
``permit_queue:<scope>``              zset    missions that wait for one, by priority, then by when they first asked
``breaker:<dependency>``              hash    whether it may be called, and its budget of retries (breaker.lua)
``calls:<dependency>``                zset    calls under way, ``id:fence``, by when they are over in any case, epoch ms
``idem:<tenant>:<key>``               hash    an idempotency key: its command's hash, id and target; a day or more
``session:<tenant>:<session>``        hash    what a speaker's commands have in common; minutes after the last one
``heard:<tenant>:<utterance>``        hash    who was the first to hear this; a minute
``heard_by:<tenant>:<utterance>:<id>`` string what a command was told of that; a minute
``audio:<id>``                        string  the recording that a mission listens to; until its end, minutes at most
``recordings``                        zset    missions with one, by when it goes at the latest, epoch ms; until that
``recorded``                          hash    bytes that each of these counts for, and under '' all of them; likewise
``stream:<id>``                       hash    a voice session; until it is understood, seconds after its client is gone
``spoken:<id>``                       list    what was said in it so far, PCM; likewise
``streams``                           zset    voice sessions by when whoever listens may be dead, epoch ms; likewise
``used:<id>``                         string  when a retired mission with such an id was created; as long as it may come
``tick``                              string  when claim or renew last ran, epoch ms
``order`` ``fence``                   string  counters: order numbers; fencing tokens
``counts``                            hash    missions by ``type|status|state``
``recount``                           hash    counts that the audit makes again, as long as they have not moved
``terms``                             hash    the latest term of each office whose leader has written here
====================================  ======  =======================================================================

Fleet-wide, under ``dl:{s0}:``: ``fleet`` (hash: shards, mac_key), ``catalogue`` (hash: type@version → row),
``catalogue_seen`` (zset: type@version by last sight of a live worker), ``catalogue_rev`` (counter of changes) and
``term:<office>`` (hash: who leads the fleet in it, under which term, until when).

Of schedules, likewise: ``schedules`` (zset: all names), ``schedule_dues`` (zset: those that are to run, by when, epoch
ms) and ``schedule:<name>`` (hash, until it is removed: ``plan rev paused created_at changed_at``; ``next due`` the next
instant and when to run it; ``firing firing_task`` the run under way; ``last last_at last_task fired`` those before it;
``ran_at ran_task ran_by`` one by hand; ``trouble trouble_at`` why it cannot be run).

Of the home, likewise: ``home`` (hash, for good: ``revision document changed_at`` the inventory, ``trouble`` what is
wrong with the file that a foreground was to take in; the foregrounds write it, see `shared.home_store`).

Channels, hints only: ``wake:<pool>``, ``carry`` (rows were written), ``signal:<owner>``, ``feed:<foreground>``,
``speaking`` (nobody listens to a voice session) and ``ears:<worker>`` (one that it listens to goes on), each under the
shard's prefix; and ``vacant:<office>``, ``planned`` (a schedule has changed) and ``furnished`` (the home's inventory
has) under that of shard 0.
"""

from functools import cache


@cache
def prefix(shard: int) -> str:
    """What all keys of a shard begin with."""
    return f"dl:{{s{shard}}}:"


FLEET = prefix(0) + "fleet"
CATALOGUE = prefix(0) + "catalogue"
CATALOGUE_SEEN = prefix(0) + "catalogue_seen"
CATALOGUE_REV = prefix(0) + "catalogue_rev"
SCHEDULES = prefix(0) + "schedules"
PLANNED = prefix(0) + "planned"
"""Channel: a schedule is new, or has changed."""
HOME = prefix(0) + "home"
FURNISHED = prefix(0) + "furnished"
"""Channel: the home's inventory has changed; the message is its revision."""


def mission(shard: int, task_id: str) -> str:
    """The record."""
    return f"{prefix(shard)}mission:{task_id}"


def log(shard: int, task_id: str) -> str:
    """The events."""
    return f"{prefix(shard)}log:{task_id}"


def result(shard: int, task_id: str) -> str:
    """The result document, for clients that read Redis too."""
    return f"{prefix(shard)}result:{task_id}"


def audio(shard: int, task_id: str) -> str:
    """The recording that a command came with; the door lays it down, the missions that listen take it from there."""
    return f"{prefix(shard)}audio:{task_id}"


def used(shard: int, task_id: str) -> str:
    """When a mission was created whose id was reserved or derived, and which has been retired."""
    return f"{prefix(shard)}used:{task_id}"


def inbox(shard: int, task_id: str) -> str:
    """Unread entries for the lease holder."""
    return f"{prefix(shard)}inbox:{task_id}"


def lane(shard: int, name: str) -> str:
    """Ready missions; `name` is the record's `lane`: ``priority:pool:tenant``."""
    return f"{prefix(shard)}lane:{name}"


def target(shard: int, name: str) -> str:
    """The mission that holds a target; `name` is the record's `target`: ``tenant:target``."""
    return f"{prefix(shard)}target:{name}"


def waiters(shard: int, name: str) -> str:
    """Missions that wait for a target, best first; `name` as for `target`."""
    return f"{prefix(shard)}waiters:{name}"


def owners(shard: int) -> str:
    """Leases: owner id by lease end."""
    return f"{prefix(shard)}owners"


def parked(shard: int, kind: str) -> str:
    """Missions of a ``type@version`` that no passing worker knew."""
    return f"{prefix(shard)}parked:{kind}"


def parked_types(shard: int) -> str:
    """The types that have such missions."""
    return f"{prefix(shard)}parked_types"


def parked_known(shard: int) -> str:
    """When a worker that knows a parked ``type@version`` last came by."""
    return f"{prefix(shard)}parked_known"


def permit_queue(shard: int, scope: str) -> str:
    """Missions that wait for a permit of this scope, best first."""
    return f"{prefix(shard)}permit_queue:{scope}"


def intents(shard: int, latest: str) -> str:
    """Commands on one aspect of a target, by age; `latest` is the record's: ``tenant:target:aspect``."""
    return f"{prefix(shard)}intents:{latest}"


def dead_letters(shard: int) -> str:
    """Missions that failed for good, by when, epoch ms."""
    return f"{prefix(shard)}dead_letters"


def retire(shard: int) -> str:
    """Ended missions by the time to remove them, epoch ms."""
    return f"{prefix(shard)}retire"


def outbox(shard: int, task_id: str) -> str:
    """Rows that a commit causes elsewhere, until they are carried out."""
    return f"{prefix(shard)}outbox:{task_id}"


def dead_rows(shard: int, task_id: str) -> str:
    """Rows of its outbox that were refused for good, and why."""
    return f"{prefix(shard)}dead_rows:{task_id}"


def counts(shard: int) -> str:
    """Missions by ``type|status|state``."""
    return f"{prefix(shard)}counts"


def held(shard: int, owner: str) -> str:
    """Missions that an owner leases."""
    return f"{prefix(shard)}held:{owner}"


def wake(shard: int, pool: str) -> str:
    """Channel: something is ready in this pool."""
    return f"{prefix(shard)}wake:{pool}"


def carry(shard: int) -> str:
    """Channel: an outbox of this shard has rows."""
    return f"{prefix(shard)}carry"


def signal(shard: int, owner: str) -> str:
    """Channel: a mission of this owner has unread entries; the message is its id."""
    return f"{prefix(shard)}signal:{owner}"


def feed(shard: int, foreground: str) -> str:
    """Channel: events of missions that this foreground watches."""
    return f"{prefix(shard)}feed:{foreground}"


def speaking(shard: int) -> str:
    """Channel: a voice session of this shard has nobody who listens."""
    return f"{prefix(shard)}speaking"


def ears(shard: int, worker: str) -> str:
    """Channel: a voice session that this worker listens to goes on; the message is its id."""
    return f"{prefix(shard)}ears:{worker}"


def vacant(office: str) -> str:
    """Channel: the leader in this office has resigned."""
    return f"{prefix(0)}vacant:{office}"


def schedule(name: str) -> str:
    """A schedule."""
    return f"{prefix(0)}schedule:{name}"
