"""The statement that claims deliveries."""

from core.database import rows
from webhooks.models import Endpoint

# Whether a destination gets nothing now: its hours begin or end at midnight, or have it between them.
IS_QUIET = """
    e.quiet_hours <> '' AND CASE WHEN left(e.quiet_hours, 5) < right(e.quiet_hours, 5)
        THEN %(time)s >= left(e.quiet_hours, 5) AND %(time)s < right(e.quiet_hours, 5)
        ELSE %(time)s >= left(e.quiet_hours, 5) OR %(time)s < right(e.quiet_hours, 5)
    END
"""
# The next `window` endpoints with pending deliveries, from the one after `after` on. It hops from endpoint to
# endpoint along an index, so its cost does not depend on the number of deliveries.
WAITING_ENDPOINTS = """
    waiting (endpoint_id, nth) AS (
        (SELECT endpoint_id, 1 FROM webhooks_delivery
         WHERE state = 'pending' AND endpoint_id > %(after)s ORDER BY endpoint_id LIMIT 1)
        UNION ALL
        SELECT (
            SELECT d.endpoint_id FROM webhooks_delivery d
            WHERE d.state = 'pending' AND d.endpoint_id > w.endpoint_id ORDER BY d.endpoint_id LIMIT 1
        ), w.nth + 1
        FROM waiting w WHERE w.endpoint_id IS NOT NULL AND w.nth < %(window)s
    )
"""


def _candidates(quota: str, *, condition: str, after: str, room: str, merchant_room: str) -> str:
    """Select due deliveries of the endpoints of one quota: manual ones first, then by the time they are due.

    Of the posts of an endpoint, in flight or new, numbers `after` + 1 to `room` belong to this quota. A
    merchant gets `merchant_room` posts in this quota.
    """

    def due(number: str, room: str) -> str:
        return f"""
            SELECT d.id FROM webhooks_delivery d
            WHERE d.endpoint_id = s.id AND d.state = 'pending' AND d.manual_number {number}
                AND d.due_at <= %(now)s AND d.id <> ALL (in_flight.ids)
            ORDER BY d.due_at LIMIT s.{room}
        """  # noqa: S608

    return f"""
        {quota} AS MATERIALIZED (
            SELECT of_one.id, '{quota}' AS quota, m.merchant_id, m.room FROM merchants m CROSS JOIN LATERAL (
                SELECT due.id
                FROM unnest(m.ids, m.slow, m.rooms, m.manual_rooms) s (id, is_slow, room, manual_room)
                CROSS JOIN LATERAL (
                    SELECT count(*) FILTER (WHERE f.delivery_id <> ALL (%(ended)s::text[])) AS posts,
                        coalesce(array_agg(f.delivery_id), '{{}}') AS ids
                    FROM webhooks_deliverylease f WHERE f.endpoint_id = s.id
                ) in_flight CROSS JOIN LATERAL (
                    SELECT id FROM (({due("> 0", "manual_room")}) UNION ALL ({due("= 0", "room")})) either
                    OFFSET greatest(0, {after} - in_flight.posts)
                    LIMIT greatest(0, {room} - greatest({after}, in_flight.posts))
                ) due
                WHERE {condition} LIMIT {merchant_room}
            ) of_one
            LIMIT %({quota}_limit)s
        )
    """  # noqa: S608


# Steps of the statement:
# - `known`: the waiting endpoints and their room, the number of posts that they may have in flight. A paused
#   endpoint has room for one manual delivery only, and so has a destination in its quiet hours. After its
#   pause, before its first post, and while it is unverified, it has room for one delivery. An unverified
#   endpoint also waits 15 s after each attempt. A destination has room for one, and waits a minute.
# - `busy`: how many posts each merchant has in flight in this process.
# - `merchants`: the room of each merchant over all its endpoints. Those with the fewest posts come first.
# - `slow`, `normal`, `extra`: candidates of each quota. `extra` has the posts above the share of an endpoint.
# - `numbered`: numbers the candidates of a merchant over all quotas, so that they stay within its room.
# - `taken`: locks them by id, one by one, so that nobody holds or fails them meanwhile. The subquery, and the
#   comparison that no index knows, keep the planner from reading all pending deliveries when its statistics
#   are old.
# The result has a row also if nothing was taken, because it tells where the window ended.
CLAIM = f"""
    WITH RECURSIVE {WAITING_ENDPOINTS}, known AS (
        SELECT e.id, coalesce(e.merchant_id, '') AS merchant_id, h.latency_ms IS NULL AS is_new,
            coalesce(h.latency_ms > %(slow_ms)s, true) AS is_slow, random() AS place,
            CASE
                WHEN h.paused_until > %(now)s OR {IS_QUIET} THEN 0
                WHEN e.type <> 'webhook' THEN 1
                WHEN h.paused_until IS NOT NULL OR h.latency_ms IS NULL OR h.verified_at IS NULL THEN 1
                WHEN h.latency_ms <= %(quick_ms)s AND h.consecutive_failures = 0 THEN %(quick_share)s
                ELSE %(share)s
            END AS room
        FROM waiting w JOIN webhooks_endpoint e ON e.id = w.endpoint_id
        LEFT JOIN webhooks_endpointhealth h ON h.endpoint_id = e.id
        WHERE e.status = 'active' AND e.deleted_at IS NULL
            AND (h.verified_at IS NOT NULL OR h.attempted_at IS NULL
                OR h.attempted_at <= %(unverified_before)s)
            AND (e.type = 'webhook' OR h.attempted_at IS NULL OR h.attempted_at <= %(message_before)s)
    ), busy AS (
        SELECT * FROM unnest(%(busy)s::text[], %(busy_posts)s::int[], %(busy_slow_posts)s::int[])
            b (merchant_id, posts, slow_posts)
    ), merchants AS MATERIALIZED (
        SELECT k.merchant_id,
            greatest(0, %(merchant_limit)s - coalesce(b.posts, 0)) AS room,
            greatest(0, %(merchant_slow_limit)s - coalesce(b.slow_posts, 0)) AS slow_room,
            array_agg(k.id ORDER BY NOT k.is_new, k.place) AS ids,
            array_agg(k.is_slow ORDER BY NOT k.is_new, k.place) AS slow,
            array_agg(k.room ORDER BY NOT k.is_new, k.place) AS rooms,
            array_agg(greatest(k.room, 1) ORDER BY NOT k.is_new, k.place) AS manual_rooms
        FROM known k LEFT JOIN busy b ON b.merchant_id = k.merchant_id
        GROUP BY k.merchant_id, b.posts, b.slow_posts
        ORDER BY coalesce(b.posts, 0), NOT bool_or(k.is_new), random()
    ), {
    _candidates(
        "slow",
        condition="s.is_slow",
        after="0",
        room="s.manual_room",
        merchant_room="least(m.room, m.slow_room)",
    )
}
    , {
    _candidates(
        "normal",
        condition="NOT s.is_slow",
        after="0",
        room="least(s.manual_room, %(share)s)",
        merchant_room="m.room",
    )
}
    , {
    _candidates("extra", condition="NOT s.is_slow", after="%(share)s", room="s.room", merchant_room="m.room")
}
    , numbered AS (
        SELECT id, quota, room, place,
            row_number() OVER (PARTITION BY merchant_id ORDER BY place) AS nth_of_one
        FROM (
            SELECT quotas.*, row_number() OVER () AS place
            FROM (TABLE slow UNION ALL TABLE normal UNION ALL TABLE extra) quotas
        ) placed
    ), taken AS MATERIALIZED (
        SELECT locked.*, chosen.quota FROM (
            SELECT * FROM numbered WHERE nth_of_one <= room ORDER BY place LIMIT %(normal_limit)s
        ) chosen CROSS JOIN LATERAL (
            SELECT d.id, d.endpoint_id, d.event_id, d.manual_number, d.attempt_count + 1 AS attempt
            FROM webhooks_delivery d WHERE d.id = chosen.id AND d.state || '' = 'pending'
            FOR NO KEY UPDATE SKIP LOCKED
        ) locked
    ), leased AS (
        INSERT INTO webhooks_deliverylease (endpoint_id, delivery_id, lease_id, lease_until)
        SELECT endpoint_id, id, gen_random_uuid(), clock_timestamp() + make_interval(secs => %(seconds)s)
        FROM taken
        RETURNING delivery_id, lease_id
    )
    SELECT (SELECT max(endpoint_id) FROM waiting HAVING count(endpoint_id) = %(window)s), lease.*
    FROM (VALUES (1)) always LEFT JOIN (
        SELECT t.id, l.lease_id, t.attempt, CASE t.manual_number WHEN 0 THEN 'auto' ELSE 'manual' END,
            v.id AS event_id, v.subject_id, v.body, v.traceparent, m.mode, m.name, t.quota,
            {rows.columns(Endpoint, "e")}
        FROM leased l JOIN taken t ON t.id = l.delivery_id JOIN webhooks_endpoint e ON e.id = t.endpoint_id
        JOIN webhooks_event v ON v.id = t.event_id LEFT JOIN merchants_merchant m ON m.id = e.merchant_id
    ) lease ON true
"""  # noqa: S608
# What else is due for destinations: the next message of each tells of all of it, and so all of it gets the
# lease of the message. A message that failed is sent again as it was: its deliveries are due at the same time
# and had as many attempts. The first few have their bodies.
OTHERS = """
    WITH message AS (
        SELECT lease.*, d.attempt_count, d.due_at
        FROM unnest(%(endpoints)s::text[], %(deliveries)s::text[]) c (endpoint_id, id)
        JOIN webhooks_deliverylease lease ON lease.endpoint_id = c.endpoint_id AND lease.delivery_id = c.id
        JOIN webhooks_delivery d ON d.id = c.id
    ), others AS MATERIALIZED (
        SELECT other.*, message.endpoint_id, message.lease_id, message.lease_until
        FROM message CROSS JOIN LATERAL (
            SELECT d.id, d.event_id, d.due_at FROM webhooks_delivery d
            WHERE d.endpoint_id = message.endpoint_id AND d.state = 'pending' AND d.manual_number = 0
                AND d.id <> message.delivery_id AND d.attempt_count = message.attempt_count
                AND CASE message.attempt_count
                    WHEN 0 THEN d.due_at <= %(now)s ELSE d.due_at = message.due_at
                END
            ORDER BY d.due_at, d.id LIMIT %(most)s
            FOR NO KEY UPDATE OF d SKIP LOCKED
        ) other
    ), leased AS (
        INSERT INTO webhooks_deliverylease (endpoint_id, delivery_id, lease_id, lease_until)
        SELECT endpoint_id, id, lease_id, lease_until FROM others
    )
    SELECT o.endpoint_id, array_agg(o.id ORDER BY o.nth),
        coalesce(array_agg(v.body ORDER BY o.nth) FILTER (WHERE o.nth <= %(lines)s), '{}'),
        array_agg(v.id || v.subject_id ORDER BY o.nth)
    FROM (
        SELECT *, row_number() OVER (PARTITION BY endpoint_id ORDER BY due_at, id) AS nth FROM others
    ) o LEFT JOIN webhooks_event v ON v.id = o.event_id AND o.nth <= %(lines)s
    GROUP BY o.endpoint_id
"""
