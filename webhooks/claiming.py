"""The statement that claims deliveries."""

from core import rows
from webhooks.models import Endpoint


def _taken_from(lane: str, *, condition: str, after: str, room: str) -> str:
    """What is due for the endpoints of one lane: by hand before automatic, the longest due first.

    An endpoint gets its posts number `after` + 1 to `room` here, those that are in flight included.
    """

    def due(resend: str, room: str) -> str:
        return f"""
            SELECT d.id FROM webhooks_delivery d
            WHERE d.endpoint_id = s.id AND d.state = 'pending' AND d.resend {resend} AND d.due_at <= %(now)s
            ORDER BY d.due_at LIMIT s.{room}
        """  # noqa: S608

    return f"""
        {lane} AS MATERIALIZED (
            SELECT due.id, '{lane}' AS lane FROM shuffled s CROSS JOIN LATERAL (
                SELECT count(*) AS posts FROM webhooks_delivery f
                WHERE f.endpoint_id = s.id AND f.state = 'leased'
            ) flying CROSS JOIN LATERAL (
                SELECT id FROM (({due("> 0", "room_by_hand")}) UNION ALL ({due("= 0", "room")})) either
                OFFSET greatest(0, {after} - flying.posts)
                LIMIT greatest(0, {room} - greatest({after}, flying.posts))
            ) due
            WHERE {condition} LIMIT %({lane}_limit)s
        )
    """  # noqa: S608


# `waiting` hops from endpoint to endpoint along an index, so a long backlog costs nothing. A paused endpoint
# has no room but for what is sent by hand; when its pause has ended, and when it was never asked, it is tried
# with one delivery. What it has room for beyond the share of everybody is a lane of its own. Each row tells
# where the window ended, also if none was taken. `taken` goes by the id, one after the other, whatever the
# statistics say: a plan from a time when little waited would rather walk all that waits, by its index (which
# knows no such comparison of the state) or by the table (which a lock in a subquery of its own rules out).
CLAIM = f"""
    WITH RECURSIVE waiting (endpoint_id, nth) AS (
        (SELECT endpoint_id, 1 FROM webhooks_delivery
         WHERE state = 'pending' AND endpoint_id > %(begin)s ORDER BY endpoint_id LIMIT 1)
        UNION ALL
        SELECT (
            SELECT d.endpoint_id FROM webhooks_delivery d
            WHERE d.state = 'pending' AND d.endpoint_id > w.endpoint_id ORDER BY d.endpoint_id LIMIT 1
        ), w.nth + 1
        FROM waiting w WHERE w.endpoint_id IS NOT NULL AND w.nth < %(window)s
    ), known AS (
        SELECT e.id, h.latency_ms IS NULL AS is_new, coalesce(h.latency_ms > %(slow_ms)s, true) AS is_slow,
            CASE
                WHEN h.paused_until > %(now)s THEN 0
                WHEN h.paused_until IS NOT NULL OR h.latency_ms IS NULL THEN 1
                WHEN h.latency_ms <= %(quick_ms)s AND h.failures = 0 THEN %(quick_share)s
                ELSE %(share)s
            END AS room
        FROM waiting w JOIN webhooks_endpoint e ON e.id = w.endpoint_id
        LEFT JOIN webhooks_health h ON h.endpoint_id = e.id
        WHERE e.status = 'active' AND e.deleted_at IS NULL
    ), shuffled AS MATERIALIZED (
        SELECT id, is_slow, room, greatest(room, 1) AS room_by_hand FROM known ORDER BY NOT is_new, random()
    ), {_taken_from("slow", condition="s.is_slow", after="0", room="s.room_by_hand")}
    , {_taken_from("steady", condition="NOT s.is_slow", after="0", room="least(s.room_by_hand, %(share)s)")}
    , {_taken_from("extra", condition="NOT s.is_slow", after="%(share)s", room="s.room")}
    , taken AS MATERIALIZED (
        SELECT locked.id, chosen.lane FROM (
            SELECT * FROM (TABLE slow UNION ALL TABLE steady UNION ALL TABLE extra) lanes
            LIMIT %(steady_limit)s
        ) chosen CROSS JOIN LATERAL (
            SELECT d.id FROM webhooks_delivery d WHERE d.id = chosen.id AND d.state || '' = 'pending'
            FOR NO KEY UPDATE SKIP LOCKED
        ) locked
    ), leased AS (
        UPDATE webhooks_delivery d
        SET state = 'leased', attempts = d.attempts + 1, lease_id = gen_random_uuid(),
            lease_until = clock_timestamp() + make_interval(secs => %(seconds)s)
        WHERE d.id = ANY (ARRAY(SELECT id FROM taken))
        RETURNING d.id, d.lease_id, d.attempts, d.resend, d.event_id, d.endpoint_id
    )
    SELECT (SELECT max(endpoint_id) FROM waiting HAVING count(endpoint_id) = %(window)s), lease.*
    FROM (VALUES (1)) always LEFT JOIN (
        SELECT l.id, l.lease_id, l.attempts, CASE l.resend WHEN 0 THEN 'auto' ELSE 'manual' END,
            v.id AS event_id, v.body, m.mode, taken.lane, {rows.columns(Endpoint, "e")}
        FROM leased l JOIN taken ON taken.id = l.id JOIN webhooks_endpoint e ON e.id = l.endpoint_id
        JOIN webhooks_event v ON v.id = l.event_id JOIN merchants_merchant m ON m.id = e.merchant_id
    ) lease ON true
"""  # noqa: S608
