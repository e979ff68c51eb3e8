"""SQL that tampers with the database, by the audit rule that must find it. Triggers are off."""

from collections.abc import Callable
from functools import partial

import orjson

from webhooks import bodies
from webhooks.models import Event


def any_row(table: str, where: str) -> str:
    """The SQL of the id of the first such row."""
    return f"(SELECT id FROM {table} WHERE {where} ORDER BY id LIMIT 1)"


PAID = any_row(
    "payments_payment",
    "status = 'succeeded' AND qr_code_id IS NOT NULL AND amount_refunded = 0 AND amount_refunding = 0",
)
FAILED = any_row("payments_payment", "status = 'failed' AND qr_code_id IS NOT NULL")
PAYS = f"type = 'payment' AND payment_id = {PAID}"
JOURNAL = any_row("ledger_journal", "type = 'payment'")
HELD = any_row("ledger_journal", "type = 'held'")
APPLIED = any_row("reconciliation_banktransaction", "match_result = 'applied'")
CONFIRMED = any_row(
    "reconciliation_banktransaction", "source = 'statement' AND is_confirmed AND kind = 'credit'"
)
WAITS = any_row(
    "reconciliation_banktransaction",
    "kind = 'credit' AND match_result = 'unmatched' AND resolution_state = ''",
)
REVERSED = any_row("reconciliation_banktransaction", "match_result = 'reversed'")
BY_BANK = any_row("refunds_refund", "reversal_id IS NOT NULL")
# A required event: `payment.pending` of a card and `payment.failed` of an expired code are optional.
ENDPOINT = """INSERT INTO webhooks_endpoint (id, merchant_id, url, events, secret_sealed,
        replaced_secrets_sealed, status, disabled_reason, created_at, updated_at)
    SELECT 'wh_x', merchant_id, 'https://shop.example', '{}', 'sealed', '', 'active', '', now(), now()
    FROM webhooks_event ORDER BY id LIMIT 1; """
DELIVERY = """INSERT INTO webhooks_delivery (id, event_id, event_type, endpoint_id, state, manual_number,
        attempt_count, due_at, created_at)
    SELECT 'dlv_x', {}, 0, 0, now(), now() FROM webhooks_event ORDER BY id LIMIT 1; """
LEASE = """INSERT INTO webhooks_deliverylease (endpoint_id, delivery_id, lease_id, lease_until)
    VALUES ('wh_x', 'dlv_x', gen_random_uuid(), now())"""
EVENT = """(SELECT id FROM webhooks_event AS event WHERE type = '{}' AND NOT EXISTS (
    SELECT FROM payments_payment AS payment WHERE payment.id = event.subject_id
    AND (qr_code_id IS NULL OR event.type = 'payment.failed' AND status <> 'failed')
) ORDER BY id LIMIT 1)"""
COMPLETED = any_row("refunds_refund", "status = 'completed' AND returned_at IS NULL")
BELOW_ZERO = ("available", "reserved", "unconfirmed", "unsettled", "suspense")
OVERDRAWN = {**dict.fromkeys(BELOW_ZERO, -1), "debt": 1, "write_offs": 1}
SENT = any_row("withdrawals_withdrawal", "status = 'succeeded'")


def delete_event(kind: str) -> str:
    return f"DELETE FROM webhooks_event WHERE id = {EVENT.format(kind)}"


def duplicate_event(kind: str) -> str:
    return f"""INSERT INTO webhooks_event
            (id, merchant_id, type, subject_id, body, created_at, actor, request_id)
        SELECT 'evt_again', merchant_id, type, subject_id, body, created_at, actor, request_id
        FROM webhooks_event WHERE id = {EVENT.format(kind)}"""


def delete_posting(fact: str, subject: str = "") -> str:
    """Delete a journal with its entries, and correct the balances. Only its subject can show this."""
    where = f"type = '{fact}' AND starts_with(subject_id, '{subject}')"
    gone = f"(SELECT id FROM ledger_journal WHERE {where} ORDER BY id LIMIT 1)"
    return f"""
        UPDATE ledger_account AS account SET rolled_up_balance = rolled_up_balance - entry.amount
        FROM ledger_entry AS entry WHERE entry.account_id = account.id AND journal_id = {gone};
        DELETE FROM ledger_entry WHERE journal_id = {gone};
        DELETE FROM ledger_journal WHERE id = {gone}"""


def change_message(kind: str, name: str) -> str:
    """Change a field of `data` in the newest event. The rest of its body is as it was."""
    event = Event.objects.filter(type=kind).latest("pk")
    message = orjson.loads(event.body)
    message["data"][name] = "failed"
    packed = bodies.pack(orjson.dumps(message), event.id + event.subject_id).hex()
    return f"UPDATE webhooks_event SET body = '\\x{packed}' WHERE id = '{event.id}'"


TAMPERINGS = {
    "account balances equal the sum of their entries": [
        "UPDATE ledger_account SET rolled_up_balance = rolled_up_balance + 1 WHERE type = 'available'",
        f"DELETE FROM ledger_entry WHERE journal_id = {JOURNAL}",
        "DELETE FROM ledger_account WHERE type = 'bank'",
    ],
    "pending entries match ledger entries": [
        "UPDATE ledger_pendingentry SET amount = amount + 1",
        "UPDATE ledger_pendingentry SET account_id = 'bank:other'",
        "INSERT INTO ledger_pendingentry (entry_id, account_id, amount) VALUES (0, 'bank:sandbox', 1)",
    ],
    "the entries of a journal sum to zero and match its amount and time": [
        f"UPDATE ledger_entry SET amount = amount + 1 WHERE journal_id = {JOURNAL} AND amount > 0",
        f"UPDATE ledger_entry SET amount = amount * 2 WHERE journal_id = {JOURNAL}",
        f"UPDATE ledger_entry SET created_at = now() WHERE journal_id = {JOURNAL} AND amount > 0",
        f"DELETE FROM ledger_entry WHERE journal_id = {JOURNAL}",
        f"DELETE FROM ledger_journal WHERE id = {JOURNAL}",
    ],
    "money leaves an account in the order of its times": [
        """UPDATE ledger_entry AS debit SET created_at = created_at + interval '1 day'
        WHERE amount < 0 AND EXISTS (
            SELECT FROM ledger_entry AS later WHERE later.account_id = debit.account_id AND later.amount < 0
                AND later.id > debit.id AND starts_with(later.account_id, 'available:'))"""
    ],
    "bank balances equal all other balances": [
        "UPDATE ledger_account SET rolled_up_balance = rolled_up_balance + 1 WHERE type = 'suspense'",
        "UPDATE ledger_pendingentry SET amount = amount + 1 WHERE account_id = 'bank:sandbox'",
    ],
    "no account is overdrawn": [
        "ALTER TABLE ledger_account DROP CONSTRAINT account_not_overdrawn;"
        f"UPDATE ledger_account SET rolled_up_balance = {satang} WHERE type = '{kind}'"
        for kind, satang in OVERDRAWN.items()
    ],
    "no journal mixes sandbox and live money": [
        "UPDATE ledger_entry SET account_id = 'suspense' WHERE account_id = 'suspense:sandbox'",
        f"""INSERT INTO ledger_account (id, type, rolled_up_balance) VALUES ('bank:x', 'bank', 0);
            UPDATE ledger_entry SET account_id = 'bank:x'
            WHERE journal_id = {JOURNAL} AND amount < 0""",
        "UPDATE merchants_merchant SET mode = 'live', bank = ''",
    ],
    "other journals use the accounts of their type": [
        f"""UPDATE ledger_entry SET account_id = 'reserved:mch_other' WHERE id = (
            SELECT min(id) FROM ledger_entry WHERE journal_id = (
                SELECT min(id) FROM ledger_journal WHERE type = '{fact}'))"""
        for fact in (
            "reversal", "debt_repaid", "held", "accepted", "sent_back", "written_off", "recovered",
            "confirmed",
        )
    ],
    "balance transactions name the source of their journal": [
        "UPDATE ledger_balancetransaction SET source_id = 'pay_other' WHERE type = 'payment'",
        f"UPDATE ledger_balancetransaction SET source_id = {PAID} WHERE type = 'refund_paid'",
    ],
    "balance transactions match the entries of merchants": [
        "DELETE FROM ledger_balancetransaction WHERE type = 'payment'",
        "UPDATE ledger_balancetransaction SET amount = amount + 1 WHERE type = 'refund_paid'",
        "UPDATE ledger_balancetransaction SET type = 'refund_paid' WHERE type = 'refund_reserved'",
        "UPDATE ledger_balancetransaction SET created_at = now()",
        """INSERT INTO ledger_balancetransaction (id, merchant_id, type, amount, source_id, created_at)
           SELECT 'bal_x', merchant_id, type, amount, source_id, created_at
           FROM ledger_balancetransaction LIMIT 1""",
    ],
    "each ended payment, and no other, has its transaction": [
        f"DELETE FROM transactions_transaction WHERE payment_id = {PAID}",
        f"DELETE FROM transactions_transaction WHERE payment_id = {FAILED}",
        f"UPDATE transactions_transaction SET amount = amount + 1 WHERE {PAYS}",
        f"UPDATE transactions_transaction SET status = 'refunded' WHERE {PAYS}",
        f"UPDATE transactions_transaction SET merchant_id = 'mch_other' WHERE {PAYS}",
        f"UPDATE payments_payment SET amount_received = amount - 1 WHERE id = {PAID}",
        """INSERT INTO transactions_transaction
               (id, merchant_id, payment_id, type, status, amount, currency, created_at)
           SELECT 'txn_x', merchant_id, id, 'payment', 'succeeded', amount, 'THB', now()
           FROM payments_payment WHERE status = 'pending' LIMIT 1""",
    ],
    "transactions have the time of what they record": [
        f"UPDATE transactions_transaction SET created_at = created_at - interval '1 ms' WHERE {PAYS}",
        "UPDATE transactions_transaction SET created_at = now() WHERE type = 'refund'",
        "UPDATE transactions_transaction SET created_at = now() WHERE type = 'failed'",
    ],
    "card payments are paid after their creation and before the acquirer's answer": [
        """UPDATE payments_payment SET completed_at = completed_at - interval '1 day'
           WHERE qr_code_id IS NULL AND completed_at IS NOT NULL""",
        """UPDATE payments_payment SET completed_at = completed_at - interval '1 second'
           WHERE qr_code_id IS NULL AND completed_at IS NOT NULL""",
        "UPDATE payments_cardcharge SET paid_at = paid_at - interval '1 second'",
    ],
    "QR codes show the biller, the reference and the amount by which their payment is found": [
        "UPDATE qrcodes_qrcode SET reference1 = reverse(reference1)",
        "UPDATE qrcodes_qrcode SET biller_id = reverse(biller_id)",
        "UPDATE qrcodes_qrcode SET merchant_id = 'mch_other'",
        f"DELETE FROM qrcodes_qrcode WHERE payment_id = {PAID}",
        f"UPDATE qrcodes_qrcode SET payment_id = 'pay_of_nobody' WHERE payment_id = {PAID}",
    ],
    "a payment link counts its payments that succeeded": [
        "UPDATE links_paymentlink SET payments = payments + 1",
        "UPDATE links_paymentlink SET payments = 0",
    ],
    "payments of a link are its merchant's, for an amount that it allows, by a code of its visitors": [
        "UPDATE payments_payment SET payment_link_id = NULL WHERE payment_link_id IS NOT NULL",
        "UPDATE payments_payment SET payment_link_id = 'pl_x' WHERE payment_link_id IS NOT NULL",
        "UPDATE links_paymentlink SET amount = amount + 1",
        "UPDATE links_paymentlink SET merchant_id = 'mch_x'",
        "DELETE FROM links_linkcode",
    ],
    "bank transactions have the bank, the biller and the reference of the code of their payment": [
        f"UPDATE reconciliation_banktransaction SET reference1 = 'X' WHERE id = {APPLIED}",
        f"UPDATE reconciliation_banktransaction SET biller_id = 'X' WHERE id = {APPLIED}",
        f"UPDATE reconciliation_banktransaction SET kind = 'decline' WHERE id = {APPLIED}",
        *(
            f"""UPDATE qrcodes_qrcode SET {column} = reverse({column}),
                    qr_data = replace(qr_data, {column}, reverse({column})) WHERE payment_id = {PAID}"""
            for column in ("reference1", "biller_id")
        ),
    ],
    "each succeeded payment, and no other, has its journal": [
        delete_posting("payment"),
        delete_posting("fee"),
        "UPDATE payments_payment SET fee = fee + 1 WHERE fee > 0",
        "UPDATE payments_payment SET fee = NULL, fee_vat = NULL WHERE fee > 0",
        f"UPDATE ledger_entry SET account_id = 'bank:x' WHERE journal_id = {JOURNAL} AND amount < 0",
        f"UPDATE ledger_journal SET subject_id = {FAILED} WHERE id = {JOURNAL}",
        """UPDATE ledger_entry SET account_id = 'bank:sandbox' WHERE account_id = 'suspense:sandbox'
           AND journal_id IN (SELECT id FROM ledger_journal WHERE type = 'payment')""",
    ],
    "payments have the fee that the statement of their bank names, and no other changed": [
        "UPDATE reconciliation_statementline SET fee = fee + 1",
        "UPDATE reconciliation_statementline SET fee = NULL, fee_vat = NULL, is_fee_due = false",
        "UPDATE reconciliation_statementline SET is_fee_due = false",
        """UPDATE payments_payment SET fee = fee + 1 WHERE id = (
               SELECT subject_id FROM ledger_journal WHERE type = 'fee_added' LIMIT 1)""",
        f"""UPDATE ledger_journal SET subject_id = {FAILED}
            WHERE id = (SELECT max(id) FROM ledger_journal WHERE type = 'fee_added')""",
    ],
    "what an acquirer has not paid is unsettled": [
        "UPDATE payments_cardcharge SET unsettled = unsettled - 1 WHERE unsettled > 0",
        "UPDATE payments_cardcharge SET unsettled = NULL WHERE unsettled > 0",
    ],
    "what acquirers owe is on the way, or a question has it": [
        delete_posting("transfer_received"),
        delete_posting("difference_booked"),
        "UPDATE payments_cardcharge SET settled_at = NULL",
        "UPDATE settlements_openquestion SET difference = difference + 1 WHERE NOT is_booked",
        "UPDATE settlements_openquestion SET is_booked = false",
        "DELETE FROM settlements_openquestion",
        "UPDATE settlements_settleditem SET refund_id = NULL",
        "UPDATE settlements_settleditem SET awaits_result = false",
        "UPDATE refunds_refund SET amount = amount + 1 WHERE route = 'acquirer:sandbox'",
    ],
    "a transfer that arrived has its journal, and what it pays is settled": [
        delete_posting("transfer_received"),
        """UPDATE settlements_acquirertransfer SET amount = amount + 1, net_amount = net_amount + 1
           WHERE state = 'paid'""",
        "UPDATE settlements_acquirertransfer SET state = 'paid', arrived_at = now() WHERE state = 'sent'",
        "UPDATE settlements_acquirertransfer SET state = 'failed', arrived_at = NULL WHERE state = 'paid'",
        "UPDATE payments_cardcharge SET settled_at = NULL",
        "DELETE FROM settlements_acquirertransfer",
    ],
    "each fee that an acquirer gave back is an item of a transfer that arrived, and as it was taken": [
        delete_posting("fee_returned", "ref_"),
        "UPDATE settlements_settleditem SET net_amount = net_amount + 1 WHERE kind = 'adjustment'",
        """UPDATE ledger_entry SET account_id = replace(account_id, 'fee_vat', 'fees') WHERE journal_id IN (
           SELECT id FROM ledger_journal WHERE type = 'fee_returned')""",
    ],
    "money of a failed transfer is what it had listed": [
        """UPDATE settlements_openquestion SET difference = difference + 1
           WHERE failed_transfer_id IS NOT NULL""",
        "UPDATE settlements_acquirertransfer SET acquirer = 'omise' WHERE state = 'failed'",
        "UPDATE settlements_settleditem SET net_amount = net_amount + 1",
    ],
    "settlements are the sums of their payments": [
        *(
            f"UPDATE settlements_settlement SET {column} = {column} + 1"
            for column in ("gross_amount", "fee", "fee_vat", "payment_count")
        ),
        "UPDATE settlements_settleditem SET settlement_id = NULL",
        "UPDATE payments_payment SET fee = fee + 1, fee_vat = fee_vat - 1 WHERE settlement_id IS NOT NULL",
        "DELETE FROM settlements_settlement",
    ],
    "payments show the settlement that pays them, and no other": [
        "UPDATE payments_payment SET settlement_id = NULL",
        "UPDATE payments_payment SET settlement_id = 'stl_other' WHERE settlement_id IS NULL",
        "UPDATE settlements_settlement SET merchant_id = 'mch_other'",
        "UPDATE settlements_settlement SET arrived_at = now()",
    ],
    "each settlement that arrived has its event": [
        "DELETE FROM webhooks_event WHERE type = 'settlement.arrived'",
        """INSERT INTO webhooks_event
               (id, merchant_id, type, subject_id, body, created_at, actor, request_id)
           SELECT 'evt_again', merchant_id, type, subject_id, body, created_at, actor, request_id
           FROM webhooks_event WHERE type = 'settlement.arrived' LIMIT 1""",
        "UPDATE webhooks_event SET merchant_id = 'mch_other' WHERE type = 'settlement.arrived'",
        "UPDATE settlements_settlement SET arrived_at = NULL",
    ],
    "payment events match the payment status": [
        "DELETE FROM webhooks_event WHERE type = 'payment.fee_known'",
        delete_event("payment.pending"),
        delete_event("payment.succeeded"),
        delete_event("payment.failed"),
        duplicate_event("payment.pending"),
        duplicate_event("payment.succeeded"),
        duplicate_event("payment.failed"),
        duplicate_event("payment.hold_lifted"),
        ("UPDATE payments_payment SET hold = 'payer_differs' WHERE payer_matches = 'no' "
        "AND status = 'succeeded'"),
        f"UPDATE webhooks_event SET merchant_id = 'mch_other' WHERE id = {EVENT.format('payment.failed')}",
        f"UPDATE webhooks_event SET type = 'payment.failed' WHERE id = {EVENT.format('payment.pending')}",
    ],
    "each succeeded QR payment has exactly one credited bank transaction": [
        "DELETE FROM reconciliation_banktransaction WHERE match_result = 'applied'",
        "UPDATE reconciliation_banktransaction SET amount = amount - 1 WHERE match_result = 'applied'",
        ("UPDATE reconciliation_banktransaction SET paid_at = paid_at - interval '1 hour' WHERE "
        "match_result = 'applied'"),
        "UPDATE reconciliation_banktransaction SET payment_id = NULL WHERE match_result = 'applied'",
        "UPDATE reconciliation_banktransaction SET match_result = 'late' WHERE match_result = 'applied'",
        "UPDATE reconciliation_excess SET amount = amount + 1",
    ],
    "the payer of a payment is that of its bank transaction": [
        f"UPDATE payments_payment SET payer_name = 'Somebody' WHERE id = {PAID}",
        f"UPDATE payments_payment SET payer_bank_code = '999' WHERE id = {PAID}",
        f"UPDATE payments_payment SET bank_reference = 'other' WHERE id = {PAID}",
        f"UPDATE payments_payment SET payer_name = 'Somebody' WHERE id = {FAILED}",
    ],
    "each failed QR payment has a decline": [
        "UPDATE reconciliation_banktransaction SET match_result = 'unmatched' WHERE match_result = 'declined'"
    ],
    "the card payment status matches its charge": [
        "UPDATE payments_cardcharge SET state = 'completed', completed_at = now() WHERE state = 'pending'",
        """UPDATE payments_cardcharge SET state = 'pending', completed_at = NULL, unsettled = NULL,
           awaits_fee = false WHERE state = 'completed'""",
        "DELETE FROM payments_cardcharge WHERE state = 'submitted'",
    ],
    "the refund totals of payments match their refunds": [
        "UPDATE payments_payment SET amount_refunding = amount_refunding - 1 WHERE amount_refunding > 0",
        """UPDATE payments_payment SET amount_refunded = amount_refunded - 1
           WHERE amount_refunded > 0 AND status = 'succeeded'""",
        f"UPDATE payments_payment SET amount_refunding = 1 WHERE id = {PAID}",
        "UPDATE payments_payment SET status = 'succeeded' WHERE status = 'refunded'",
    ],
    "deliveries have the type of their event, and are for an endpoint of its merchant": [
        ENDPOINT + DELIVERY.format("id, 'webhook.ping', 'wh_x', 'pending'"),
        ENDPOINT + DELIVERY.format("'evt_x', type, 'wh_x', 'pending'"),
        DELIVERY.format("id, type, 'wh_x', 'pending'"),
    ],
    "workers have leases of pending deliveries only": [
        LEASE,
        DELIVERY.format("id, type, 'wh_x', 'succeeded'") + LEASE,
    ],
    "each event is once in the feed of its merchant, or waits for its sequence": [
        "DELETE FROM webhooks_unnumberedevent",
        "INSERT INTO webhooks_unnumberedevent (merchant_id, event_id) VALUES ('mch_x', 'evt_x')",
        """INSERT INTO webhooks_feedblock (merchant_id, first_sequence, last_event_id, event_ids)
           VALUES ('mch_x', 1, 'evt_x', '{evt_x}')""",
    ],
    "the sequences of a merchant have no gaps, and each block of them has its last event": [
        """INSERT INTO webhooks_feedblock (merchant_id, first_sequence, last_event_id, event_ids)
           VALUES ('mch_x', 2, 'evt_x', '{evt_x}')""",
        """INSERT INTO webhooks_feedblock (merchant_id, first_sequence, last_event_id, event_ids)
           VALUES ('mch_x', 1, 'evt_x', '{evt_x}'), ('mch_x', 3, 'evt_z', '{evt_y,evt_z}')""",
        """INSERT INTO webhooks_feedblock (merchant_id, first_sequence, last_event_id, event_ids)
           VALUES ('mch_x', 1, 'evt_y', '{evt_x}')""",
    ],
    "list counts match the rows": [
        "UPDATE counts_countclock SET closed = 'infinity'",
        """INSERT INTO counts_listcount (list, owner_id, kind, bucket, starts_at, count)
           VALUES ('transactions', 'mch_x', 'payment/succeeded', 'day', now(), 1)""",
    ],
    "rows that are not counted yet are in an open period": [
        "DELETE FROM counts_openperiod",
        "UPDATE counts_openperiod SET owner_id = 'mch_x'",
        "UPDATE counts_openperiod SET period = period + interval '5 seconds'",
    ],
    "held money, and nothing else, is posted to suspense": [
        delete_posting("held"),
        f"UPDATE reconciliation_banktransaction SET amount = amount + 1 WHERE id = {WAITS}",
        f"UPDATE reconciliation_banktransaction SET kind = 'decline' WHERE id = {WAITS}",
        "UPDATE reconciliation_return SET returned_at = NULL WHERE returned_at IS NOT NULL",
        f"UPDATE ledger_journal SET subject_id = {APPLIED} WHERE id = {HELD}",
    ],
    "each posting out of suspense has a resolution": [
        delete_posting("sent_back"),
        delete_posting("accepted"),
        "DELETE FROM reconciliation_resolution WHERE type = 'kept'",
        "DELETE FROM reconciliation_return WHERE is_manual",
        "UPDATE reconciliation_return SET route = 'bank:other' WHERE is_manual",
        "UPDATE reconciliation_return SET amount = amount - 1 WHERE is_manual",
    ],
    "the suspense balance equals the held money": [
        "UPDATE ledger_account SET rolled_up_balance = rolled_up_balance + 1 WHERE type = 'suspense'",
        ("UPDATE reconciliation_banktransaction SET resolution_state = '', resolved_at = NULL WHERE "
        "resolution_state = 'taken_back'"),
        ("UPDATE reconciliation_banktransaction SET resolution_state = 'taken_back', resolved_at = now() "
        f"WHERE id = {WAITS}"),
        "UPDATE refunds_refund SET returned_at = NULL WHERE returned_at IS NOT NULL",
        "UPDATE reconciliation_excess SET amount = amount + 1 WHERE resolution_state = ''",
        "DELETE FROM reconciliation_excess WHERE resolution_state = 'sending_back'",
    ],
    "each bank reversal has its journal": [
        delete_posting("reversal"),
        ("UPDATE reconciliation_banktransaction SET match_result = 'unmatched' WHERE match_result = "
        "'reversed'"),
        "UPDATE reconciliation_banktransaction SET amount = amount - 1 WHERE match_result = 'reversed'",
        ("UPDATE reconciliation_banktransaction SET match_result = 'reversed' WHERE kind = 'reversal' AND "
        "resolution_state = ''"),
    ],
    "each write-off has a resolution and its journal": [
        delete_posting("written_off"),
        delete_posting("recovered"),
        "DELETE FROM reconciliation_resolution WHERE type = 'written_off'",
        ("UPDATE reconciliation_banktransaction SET resolution_state = '', resolved_at = NULL WHERE "
        "resolution_state = 'written_off'"),
        ("UPDATE reconciliation_banktransaction SET amount = amount + 1 WHERE resolution_state = "
        "'written_off'"),
        "UPDATE reconciliation_resolution SET ledger_subject_id = NULL WHERE ledger_subject_id LIKE 'wof_%'",
        "UPDATE reconciliation_resolution SET reopen_count = reopen_count + 10 WHERE type = 'reopened'",
    ],
    "each merge has a resolution and its journal": [
        delete_posting("merged"),
        delete_posting("unmerged"),
        "DELETE FROM reconciliation_resolution WHERE type = 'merged'",
    ],
    "money of an undone import left suspense": [
        delete_posting("undone"),
        "UPDATE reconciliation_banktransaction SET amount = amount + 1 WHERE resolution_state = 'undone'",
    ],
    "money of an acquirer is one of its transfers": [
        delete_posting("transfer_seen"),
        "UPDATE settlements_acquirertransfer SET bank_transaction_id = NULL",
        """UPDATE settlements_acquirertransfer SET amount = amount + 1, net_amount = net_amount + 1
           WHERE bank_transaction_id IS NOT NULL""",
        ("UPDATE reconciliation_banktransaction SET resolution_state = '', resolved_at = NULL WHERE "
        "resolution_state = 'acquirer'"),
    ],
    "merged bank transactions are probable duplicates": [
        "UPDATE reconciliation_resolution SET merged_into_id = subject_id WHERE type = 'merged'",
    ],
    "each reversal that we requested has its transfer": [
        "DELETE FROM transfers_transfer WHERE charge_id <> ''",
        "UPDATE transfers_transfer SET amount = amount - 1 WHERE charge_id <> ''",
        f"UPDATE reconciliation_banktransaction SET match_result = 'ordered' WHERE id = {REVERSED}",
    ],
    "each reversal of a payment is charged to its merchant": [
        "DELETE FROM refunds_refundreversal",
        "UPDATE refunds_refundreversal SET amount = amount + 1",
        "UPDATE refunds_refundreversal SET route = 'bank:other'",
        "UPDATE reconciliation_banktransaction SET payment_id = NULL WHERE match_result = 'reversed'",
    ],
    "refunds created by reversals match them": [
        f"UPDATE refunds_refund SET reversal_id = {APPLIED} WHERE id = {BY_BANK}",
        f"UPDATE refunds_refund SET route = 'bank:other' WHERE id = {BY_BANK}",
        f"UPDATE refunds_refund SET amount = amount + 1 WHERE id = {BY_BANK}",
        "UPDATE refunds_refundreversal SET refunded_amount = refunded_amount - 1 WHERE refunded_amount > 0",
    ],
    "reversed money without a refund exceeds the refundable amount": [
        """UPDATE refunds_refundreversal SET refunded_amount = refunded_amount - 1
           WHERE refunded_amount = amount""",
    ],
    "the resolution state of bank transactions matches their return": [
        ("UPDATE reconciliation_banktransaction SET resolution_state = 'sent_back' WHERE resolution_state = "
        "'sending_back'"),
        ("UPDATE reconciliation_banktransaction SET resolution_state = '', resolved_at = NULL WHERE "
        "resolution_state = 'sending_back'"),
        "DELETE FROM reconciliation_return WHERE status = 'pending'",
        "UPDATE reconciliation_return SET status = 'canceled' WHERE status = 'pending'",
        "UPDATE reconciliation_excess SET amount = amount + 1 WHERE resolution_state = 'sent_back'",
        ("UPDATE reconciliation_excess SET resolution_state = '', resolved_at = NULL WHERE "
        "resolution_state = 'sending_back'"),
    ],
    "each bank transaction has the message or the line that reported it": [
        "DELETE FROM reconciliation_banknotification WHERE result = 'new' AND source = 'callback'",
        "DELETE FROM reconciliation_statementline WHERE result = 'new'",
    ],
    "each message of a bank is kept": [
        "DELETE FROM reconciliation_banknotification WHERE result = 'unreadable'",
        "DELETE FROM reconciliation_notificationid",
    ],
    "each statement has the lines that were stored": [
        "DELETE FROM reconciliation_statementline",
    ],
    "statement lines are those of their bank transaction": [
        "UPDATE reconciliation_statementline SET amount = amount + 1",
        "UPDATE reconciliation_statementline SET reference1 = 'X'",
        "UPDATE reconciliation_statementline SET paid_at = paid_at - interval '1 hour'",
    ],
    "decisions about exceptions are those of the audit trail": [
        "UPDATE reconciliation_resolution SET actor = 'staff:nobody' WHERE starts_with(actor, 'staff:')",
        "UPDATE reconciliation_resolution SET note = 'x' WHERE type = 'accepted'",
        "UPDATE reconciliation_resolution SET type = 'attached' WHERE type = 'accepted'",
    ],
    "resolutions name the payment of their bank transaction": [
        f"UPDATE reconciliation_resolution SET payment_id = {FAILED} WHERE type = '{kind}'"
        for kind in ("accepted", "attached", "excess_sent_back", "kept")
    ],
    "statements are those that the audit trail says": [
        "UPDATE reconciliation_statement SET actor = 'staff:nobody'",
        "UPDATE reconciliation_statement SET file_sha256 = reverse(file_sha256)",
        "DELETE FROM reconciliation_statement",
        "UPDATE reconciliation_statement SET undone_at = NULL",
    ],
    "each resolved bank transaction has its resolution": [
        "DELETE FROM reconciliation_resolution WHERE type = 'attached'",
        "DELETE FROM reconciliation_resolution WHERE actor = 'policy:late_money'",
        "UPDATE reconciliation_resolution SET type = 'sent_back' WHERE type = 'dismissed'",
        "DELETE FROM reconciliation_resolution WHERE type = 'reopened'",
        "DELETE FROM reconciliation_resolution WHERE type = 'excess_sent_back'",
        "DELETE FROM reconciliation_excess WHERE resolution_state = 'taken_back'",
        ("UPDATE reconciliation_banktransaction SET resolution_state = '', resolved_at = NULL WHERE "
        "resolution_state = 'dismissed'"),
        ("UPDATE reconciliation_banktransaction SET resolution_state = 'sent_back', resolved_at = now() "
        f"WHERE id = {WAITS}"),
    ],
    "money reported only by a statement, and nothing else, is unconfirmed": [
        ("UPDATE reconciliation_banktransaction SET is_confirmed = true WHERE NOT is_confirmed AND "
        "resolution_state = ''"),
        f"UPDATE reconciliation_banktransaction SET is_confirmed = false WHERE id = {CONFIRMED}",
        "UPDATE ledger_account SET rolled_up_balance = rolled_up_balance + 1 WHERE type = 'unconfirmed'",
        delete_posting("confirmed"),
        """UPDATE ledger_pendingentry SET account_id = 'available:' || split_part(account_id, ':', 2)
           WHERE account_id LIKE 'unconfirmed:%'""",
    ],
    "statement money is confirmed by its bank or by another person than the uploader": [
        "DELETE FROM reconciliation_resolution WHERE type = 'confirmed'",
        "UPDATE reconciliation_resolution SET actor = 'staff:malee' WHERE type = 'confirmed'",
        ("UPDATE reconciliation_banktransaction SET is_confirmed = true WHERE NOT is_confirmed AND "
        "resolution_state = ''"),
    ],
    "transfers recorded as returned are returned": [
        """UPDATE transfers_transfer SET state = 'succeeded', failure_code = '' WHERE id IN (
            SELECT contradiction.subject_id FROM transfers_transfercontradiction AS contradiction
            JOIN reconciliation_resolution AS resolution ON resolution.subject_id = contradiction.id WHERE
            type = 'booked_returned')""",
    ],
    "card payments recorded as failed have failed": [
        """UPDATE payments_payment SET status = 'pending', failure_code = NULL WHERE id IN (
            SELECT contradiction.subject_id FROM transfers_transfercontradiction AS contradiction
            JOIN reconciliation_resolution AS resolution ON resolution.subject_id = contradiction.id WHERE
            type = 'booked_failed')""",
    ],
    "exception events match the payment exceptions": [
        "DELETE FROM webhooks_event WHERE type = 'payment.exception'",
        "DELETE FROM webhooks_event WHERE type = 'payment.exception_resolved'",
        "UPDATE webhooks_event SET type = 'payment.exception' WHERE type = 'payment.exception_resolved'",
        "UPDATE webhooks_event SET merchant_id = 'mch_other' WHERE type = 'payment.exception'",
        "UPDATE webhooks_event SET subject_id = 'btx_other' WHERE type = 'payment.exception'",
    ],
    "money that waits for staff, and no other, is on the list of exceptions": [
        f"DELETE FROM reconciliation_reconciliationexception WHERE id = {WAITS}",
        "DELETE FROM reconciliation_reconciliationexception WHERE reason = 'excess'",
        "DELETE FROM reconciliation_reconciliationexception WHERE reason = 'reversal'",
        "DELETE FROM reconciliation_resolution WHERE type = 'kept'",
        ("UPDATE reconciliation_banktransaction SET resolution_state = 'taken_back', resolved_at = now() "
        f"WHERE id = {WAITS}"),
    ],
    "each refund has its transaction": [
        "DELETE FROM transactions_transaction WHERE type = 'refund'",
        "UPDATE transactions_transaction SET amount = amount - 1 WHERE type = 'refund'",
        "UPDATE transactions_transaction SET status = 'failed' WHERE type = 'refund' AND status = 'pending'",
    ],
    "refund journals match the refund status": [
        delete_posting("refund_reserved"),
        delete_posting("refund_paid"),
        delete_posting("refund_released"),
        f"UPDATE refunds_refund SET route = 'bank:other' WHERE id = {COMPLETED}",
        "UPDATE refunds_refund SET returned_at = NULL WHERE returned_at IS NOT NULL",
        f"UPDATE refunds_refund SET status = 'canceled', completed_at = NULL WHERE id = {COMPLETED}",
    ],
    "each ended refund has its event": [
        delete_event("refund.completed"),
        delete_event("refund.failed"),
        duplicate_event("refund.completed"),
    ],
    "withdrawal journals match the withdrawal status": [
        delete_posting("withdrawal_reserved"),
        delete_posting("withdrawal_paid"),
        delete_posting("withdrawal_released"),
        delete_posting("withdrawal_returned"),
        f"UPDATE withdrawals_withdrawal SET amount = amount - 1 WHERE id = {SENT}",
        f"UPDATE withdrawals_withdrawal SET status = 'processing', completed_at = NULL WHERE id = {SENT}",
    ],
    "withdrawal events match the withdrawal status": [
        delete_event("withdrawal.pending"),
        delete_event("withdrawal.processed"),
        delete_event("withdrawal.succeeded"),
        delete_event("withdrawal.failed"),
        duplicate_event("withdrawal.processed"),
    ],
    "withdrawals of a night are those that its row counted": [
        f"UPDATE withdrawals_withdrawal SET payout_night = '2026-11-21' WHERE id = {SENT}",
        """INSERT INTO withdrawals_payoutnight (merchant_id, day, amount, skip_reason, created_at)
            SELECT merchant_id, '2026-11-21', amount, '', created_at FROM withdrawals_withdrawal LIMIT 1""",
    ],
    "API keys have the scopes of what they did": [
        "UPDATE merchants_apikey SET scopes = array_remove(scopes, 'withdrawals:write')",
        "UPDATE merchants_apikey SET scopes = array_remove(scopes, 'refunds:write')",
        "UPDATE merchants_apikey SET scopes = array_remove(scopes, 'exceptions:write')",
        "DELETE FROM merchants_apikey",
    ],
    "reserved balances equal pending refunds and withdrawals": [
        "UPDATE ledger_account SET rolled_up_balance = rolled_up_balance + 1 WHERE type = 'reserved'",
        "UPDATE refunds_refund SET amount = amount + 1 WHERE status = 'pending'",
    ],
    "transfers ended as their history says": [
        "DELETE FROM transfers_transferevent WHERE type = 'failed'",
        "UPDATE transfers_transfer SET completed_by = 'staff:bob' WHERE completed_by <> ''",
        "UPDATE transfers_transfer SET completed_at = completed_at - interval '1 ms' WHERE state = 'failed'",
    ],
    "refunds, withdrawals and returns are completed when their transfer succeeds": [
        *(
            f"UPDATE {table} SET completed_at = completed_at - interval '1 ms' WHERE completed_at IS NOT NULL"
            for table in ("refunds_refund", "withdrawals_withdrawal", "reconciliation_return")
        ),
        "DELETE FROM transfers_transferevent WHERE type = 'succeeded'",
    ],
    "the transfer state matches its refund or withdrawal": [
        "DELETE FROM transfers_transfer WHERE state = 'queued'",
        "UPDATE transfers_transfer SET amount = amount + 1",
        "UPDATE transfers_transfer SET state = 'submitted', completed_at = NULL WHERE state = 'succeeded'",
        """UPDATE transfers_transfer SET state = 'submitted', submitted_at = now()
           WHERE state = 'queued' AND purpose = 'withdrawal'""",
    ],
    "withdrawal status matches its approval": [
        "DELETE FROM approvals_approval WHERE kind = 'withdrawal' AND status = 'within_limits'",
        "UPDATE approvals_approval SET amount = amount - 1 WHERE kind = 'withdrawal'",
        "UPDATE approvals_approval SET account_last4 = '0000' WHERE kind = 'withdrawal'",
        """UPDATE approvals_approval SET status = 'approved', decided_by = 'staff:x', decided_at = now()
           WHERE kind = 'withdrawal' AND status = 'waiting'""",
        "UPDATE withdrawals_withdrawal SET awaiting_approval = false",
    ],
    "refund status matches its approval": [
        "UPDATE approvals_approval SET amount = amount - 1 WHERE kind = 'refund'",
        "UPDATE refunds_refund SET awaiting_approval = false",
        "UPDATE refunds_refund SET awaiting_approval = true WHERE status = 'pending' AND route <> ''",
    ],
    "return status matches its approval": [
        "DELETE FROM approvals_approval WHERE kind = 'return_by_hand'",
        "UPDATE approvals_approval SET amount = amount - 1 WHERE kind = 'return'",
        """UPDATE approvals_approval SET status = 'rejected', reason = 'item_limit', decided_by = 'staff:x',
               decided_at = now(), decision_note = 'x'
           WHERE kind = 'return' AND status IN ('within_limits', 'approved')""",
    ],
    "write-offs are within the limits or approved": [
        "DELETE FROM approvals_approval WHERE kind = 'write_off'",
        "DELETE FROM reconciliation_resolution WHERE type = 'written_off'",
    ],
    "transfers are held while their approval is pending": [
        "UPDATE transfers_transfer SET state = 'queued' WHERE state = 'held'",
        "UPDATE transfers_transfer SET state = 'held' WHERE state = 'queued'",
    ],
    "no transfer is submitted without approval": [
        """UPDATE approvals_approval SET status = 'canceled', reason = 'item_limit', decided_at = now()
           WHERE subject_id IN (SELECT id FROM transfers_transfer WHERE state = 'succeeded')""",
        "UPDATE transfers_transfer SET submitted_at = now() WHERE state = 'held'",
    ],
    "transfers go to the account that was asked for and approved": [
        "UPDATE transfers_transfer SET merchant_id = 'mch_other' WHERE purpose = 'refund'",
        f"UPDATE transfers_transfer SET bank_reference = 'other' WHERE id = {SENT}",
        f"UPDATE transfers_transfer SET account_digest = 'other' WHERE id = {SENT}",
        f"UPDATE transfers_transfer SET bank_code = '999' WHERE id = {SENT}",
        f"UPDATE transfers_transfer SET account_name = 'Somebody' WHERE id = {SENT}",
        f"UPDATE withdrawals_withdrawal SET account_digest = 'other' WHERE id = {SENT}",
        f"UPDATE refunds_refund SET account_digest = 'other' WHERE id = {COMPLETED}",
        "UPDATE reconciliation_return SET account_digest = 'other' WHERE NOT is_manual",
        "UPDATE approvals_approval SET account_digest = 'other' WHERE kind = 'withdrawal'",
        "UPDATE approvals_approval SET account_name = 'Somebody' WHERE kind = 'withdrawal'",
    ],
    "transfers recorded as never arrived are within the limits or approved": [
        "DELETE FROM approvals_approval WHERE kind = 'never_arrived' AND status = 'within_limits'",
        "UPDATE approvals_approval SET amount = amount - 1 WHERE kind = 'never_arrived'",
        """UPDATE transfers_transfer SET state = 'failed', completed_by = 'x', failure_code = 'never_arrived',
               completed_at = now() WHERE state = 'submitted'""",
    ],
    "no approval is pending for a transfer that has ended": [
        """UPDATE transfers_transfer SET state = 'succeeded', completed_at = now() WHERE id IN (
               SELECT subject_id FROM approvals_approval
               WHERE kind = 'never_arrived' AND status = 'waiting')""",
    ],
    "approvals are decided as the audit trail says": [
        f"DELETE FROM approvals_approval WHERE kind = '{kind}' AND status = 'approved'"
        for kind in ("refund", "return", "return_by_hand", "withdrawal", "write_off", "never_arrived")
    ] + [
        "DELETE FROM approvals_approval WHERE kind = 'refund' AND status = 'rejected'",
        """UPDATE approvals_approval SET decided_by = 'staff:eve', requested_by = 'staff:bob'
           WHERE status = 'approved'""",
        "UPDATE approvals_approval SET decided_by = 'staff:eve' WHERE status = 'approved'",
        "UPDATE approvals_approval SET decided_at = decided_at - interval '1 ms' WHERE status = 'approved'",
        "UPDATE approvals_approval SET decision_note = 'x' WHERE status = 'rejected'",
    ],
    "approvals are requested with their transfer, by the same actor": [
        "UPDATE approvals_approval SET requested_by = 'staff:bob' WHERE kind = 'refund'",
        "UPDATE approvals_approval SET requested_at = requested_at - interval '1 ms' WHERE kind = 'return'",
        "UPDATE approvals_approval SET request_id = 'other' WHERE kind = 'withdrawal'",
        "DELETE FROM transfers_transferevent",
    ],
    "approvals are decided by another person than the requester": [
        """ALTER TABLE approvals_approval DROP CONSTRAINT approval_decided_by_another;
           UPDATE approvals_approval SET decided_by = requested_by WHERE status = 'approved'""",
    ],
    # Rules of the tests alone.
    "payment exceptions match their bank transactions": [
        "DELETE FROM payments_paymentexception WHERE status = 'open'",
        "UPDATE payments_paymentexception SET amount = amount + 1",
        "UPDATE payments_paymentexception SET status = 'sent_back' WHERE status = 'open'",
        "UPDATE payments_paymentexception SET payment_id = 'pay_other' WHERE status = 'open'",
        "UPDATE payments_paymentexception SET status = 'accepted' WHERE status = 'excess_open'",
    ],
    "payments with exceptions are marked": [
        "UPDATE payments_payment SET has_exceptions = false",
        f"UPDATE payments_payment SET has_exceptions = true WHERE id = {FAILED}",
    ],
    "the list of exceptions is complete": [
        f"DELETE FROM reconciliation_reconciliationexception WHERE id = {WAITS}",
        "DELETE FROM reconciliation_reconciliationexception WHERE id LIKE 'ntf_%'",
        f"UPDATE reconciliation_reconciliationexception SET amount = amount + 1 WHERE id = {WAITS}",
        f"UPDATE reconciliation_reconciliationexception SET biller_id = '' WHERE id = {WAITS}",
        "UPDATE reconciliation_reconciliationexception SET search_text = ''",
        "DELETE FROM reconciliation_resolution WHERE type IN ('dismissed', 'kept')",
        "DELETE FROM reconciliation_resolution WHERE type = 'reopened' AND subject_id LIKE 'ntf_%'",
    ],
}  # fmt: skip

# Found by `contents`, which reads what is encrypted.
CONTENT_TAMPERINGS: list[str | Callable[[], str]] = [
    "DELETE FROM approvals_approval WHERE kind = 'refund' AND status = 'approved'",
    "DELETE FROM approvals_approval WHERE kind = 'return' AND status = 'approved'",
    "UPDATE approvals_approval SET account_last4 = '0000' WHERE kind = 'refund'",
    "UPDATE payments_payment SET payer_account_sealed = reverse(payer_account_sealed)",
    *(
        partial(change_message, kind, name)
        for kind, names in {
            "payment.succeeded":
                "status reference qr_code_id currency amount_display failure_code metadata amount_received "
                "hold",
            "payment.exception": "currency qr_code_id",
            "refund.completed": "status reason transaction_id created_at completed_at",
            "refund.failed": "failure_code",
            "settlement.arrived": "status gross fee fee_vat net currency payments expected_at arrived_at",
            "withdrawal.succeeded": "status bank_code bank_account account_name completed_at",
        }.items()
        for name in names.split()
    ),
]  # fmt: skip
