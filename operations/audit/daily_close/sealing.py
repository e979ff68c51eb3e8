"""Seal what is known of the payments to which something happened on a day.

Each merchant has a hash tree of its own, whose root is in the close, and in a small text with a signature. So
the evidence of a payment shows nothing of other merchants, and not how many payments they have.
"""

import secrets
from collections.abc import Iterator
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from core import ids, vault
from core.database import rows
from operations.audit.daily_close import hash_tree, payment_records, signing
from operations.audit.daily_close.totals import bounds
from operations.models import DailyClose, EvidenceSeal, PaymentEvidence

VERSION = 1
# Read together: about 4 MB of memory.
BATCH = 1_000
# What happened on the day: postings, messages and statements of banks, slips, refunds. Ids begin with their
# time, so each part reads a range of an index.
PAYMENTS = """
    WITH posted AS MATERIALIZED (
        SELECT DISTINCT journal.subject_id AS id
        FROM ledger_account AS account CROSS JOIN LATERAL (
            SELECT journal_id FROM ledger_entry
            WHERE account_id = account.id AND created_at >= %(start)s AND created_at < %(end)s
        ) AS entry JOIN ledger_journal AS journal ON journal.id = entry.journal_id
    ), touched AS (
        SELECT id FROM posted
        UNION SELECT payment_id FROM refunds_refund JOIN posted USING (id)
        UNION SELECT payment_id FROM refunds_refund WHERE id >= %(first_ref)s AND id < %(next_ref)s
        UNION SELECT payment_id FROM reconciliation_banktransaction JOIN posted USING (id)
        UNION SELECT money.payment_id FROM reconciliation_banknotification AS message
            JOIN reconciliation_banktransaction AS money ON money.id = message.bank_transaction_id
            WHERE message.id >= %(first_ntf)s AND message.id < %(next_ntf)s
        UNION SELECT refund.payment_id FROM reconciliation_banknotification AS message
            JOIN refunds_refund AS refund ON refund.id = message.order_id
            WHERE message.id >= %(first_ntf)s AND message.id < %(next_ntf)s
        UNION SELECT money.payment_id FROM reconciliation_statement AS statement
            JOIN reconciliation_statementline AS line ON line.statement_id = statement.id
            JOIN reconciliation_banktransaction AS money ON money.id = line.bank_transaction_id
            WHERE statement.created_at >= %(start)s AND statement.created_at < %(end)s
        UNION SELECT unnest(ARRAY[claimed_payment_id, payment_id]) FROM reconciliation_slipcheck
            WHERE id >= %(first_slp)s AND id < %(next_slp)s
    )
    SELECT payment.merchant_id, payment.id FROM touched JOIN payments_payment AS payment USING (id)
    ORDER BY payment.merchant_id, payment.id
"""

NODES = """
    SELECT encode(substring(nodes FROM place FOR %s), 'hex')
    FROM operations_evidenceseal, unnest(%s::int[]) WITH ORDINALITY AS wanted (place, number)
    WHERE id = %s ORDER BY number
"""


class Tree(NamedTuple):
    """Of the payments of one merchant on one day."""

    payments: int
    nodes: bytes

    @property
    def root(self) -> str:
        return self.nodes[-hash_tree.SIZE :].hex()


def write_payments(day: date, number: int) -> dict[str, Tree]:
    """Store the payments of the day that the close with this number seals. The trees, by merchant."""
    start, end = bounds(day)
    values: dict[str, Any] = {"start": start, "end": end}
    for kind in ("ref", "ntf", "slp"):
        values |= {f"first_{kind}": ids.first(f"{kind}_", start), f"next_{kind}": ids.first(f"{kind}_", end)}
    found = rows.run(PAYMENTS, values).fetchall()
    return {
        merchant_id: _write_merchant(f"{number}:{merchant_id}", [payment_id for _, payment_id in of_merchant])
        for merchant_id, of_merchant in groupby(found, itemgetter(0))
    }


def _write_merchant(seal_id: str, payment_ids: list[str]) -> Tree:
    leaves: list[bytes] = []
    for start in range(0, len(payment_ids), BATCH):
        records = payment_records.read(payment_ids[start : start + BATCH])
        sealed = [_sealed(seal_id, start + place, *each) for place, each in enumerate(records.items())]
        rows.insert_many(sealed)
        leaves += (hash_tree.leaf(each.text) for each in sealed)
    return Tree(len(leaves), hash_tree.nodes(leaves))


def _sealed(seal_id: str, number: int, payment_id: str, record: payment_records.Record) -> PaymentEvidence:
    seed = secrets.token_hex(16)
    made = PaymentEvidence(seal_id=seal_id, number=number, payment_id=payment_id)
    made.text = payment_records.text_of(record, seed)
    made.seed_sealed = vault.seal(seed, context=made.context)
    return made


def roots(trees: dict[str, Tree]) -> dict[str, Any]:
    """What the close says of the payments, by merchant."""
    return {each: {"payments": tree.payments, "root": tree.root} for each, tree in trees.items()}


def seal(close: DailyClose, trees: dict[str, Tree]) -> None:
    """Sign the root of each merchant. Raises signing.NoSigningKey."""
    for merchant_id, tree in trees.items():
        body = _body(close, merchant_id, tree)
        EvidenceSeal.objects.create(
            id=f"{close.number}:{merchant_id}",
            close=close,
            body=body,
            signature=signing.sign(body),
            count=tree.payments,
            nodes=tree.nodes,
        )


def _body(close: DailyClose, merchant_id: str, tree: Tree) -> str:
    """`kind` keeps it apart from a close, which the same key signs."""
    of_close = orjson.loads(close.body)
    content = {
        "kind": "evidence",
        "version": VERSION,
        "merchant_id": merchant_id,
        "payments": tree.payments,
        "root": tree.root,
        "day": of_close["day"],
        "closed_at": of_close["closed_at"],
        "close": {"number": close.number, "hash": close.hash, "previous_hash": close.previous_hash},
        "audit_trail": of_close["audit_trail"],
    }
    return orjson.dumps(content).decode()


def path_of(sealed: PaymentEvidence) -> list[str]:
    """The hashes that lead from the payment to the root, in hex. Reads only these of the tree."""
    offsets = [1 + place * hash_tree.SIZE for place in hash_tree.path(sealed.number, sealed.seal.count)]
    return [node for (node,) in rows.run(NODES, [hash_tree.SIZE, offsets, sealed.seal_id]).fetchall()]


def problems(close: DailyClose) -> Iterator[str]:
    """What is wrong with the seals of a close. Computes each tree again from its texts."""
    expected = orjson.loads(close.body).get("evidence", {})
    seals = close.seals.order_by("pk")
    trees = {}
    for each in seals.iterator(chunk_size=10):
        texts = each.payments.order_by("number").values_list("text", flat=True)
        leaves = [hash_tree.leaf(text) for text in texts.iterator(chunk_size=BATCH)]
        merchant_id = each.pk.partition(":")[2]
        trees[merchant_id] = tree = Tree(len(leaves), hash_tree.nodes(leaves))
        is_signed = signing.is_valid(each.body, each.signature, close.public_key)
        if not is_signed or each.body != _body(close, merchant_id, tree) or bytes(each.nodes) != tree.nodes:
            yield f"the evidence of {merchant_id} was changed"
    if roots(trees) != expected:
        yield "the evidence is not that of the close"
