-- Whether staff resolved it by one of these types and did not reopen it since.
CREATE OR REPLACE FUNCTION reconciliation_is_resolved(subject text, types text[]) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT EXISTS (
        SELECT FROM reconciliation_resolution AS resolution WHERE resolution.subject_id = subject AND resolution.type = ANY (types)
            AND NOT EXISTS (
                SELECT FROM reconciliation_resolution AS later
                WHERE later.subject_id = subject AND later.type = 'reopened' AND later.reopen_count > resolution.reopen_count
            )
    )
$$;


-- All open exceptions. A column that is concatenated with a text cannot use a partial index. This is intended:
-- with statistics from a day without exceptions, PostgreSQL would read all rows of such an index for one id.
CREATE OR REPLACE VIEW reconciliation_open_exceptions AS
SELECT movement.id, CASE movement.kind WHEN 'reversal' THEN 'reversal' ELSE movement.match_result END AS reason, movement.bank,
    coalesce(movement.merchant_id, merchant.id) AS merchant_id, movement.payment_id, movement.amount,
    movement.reference1,
    coalesce(nullif(movement.later_bank_transaction_id, ''), movement.bank_transaction_id) AS bank_transaction_id,
    movement.received_at AS opened_at
FROM reconciliation_banktransaction AS movement
LEFT JOIN merchants_merchant AS merchant
    ON merchant.bank = movement.bank AND merchant.biller_id = movement.biller_id AND merchant.biller_id <> ''
WHERE movement.match_result || movement.resolution_state IN ('unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late')
UNION ALL
SELECT movement.id, 'excess', movement.bank, movement.merchant_id, movement.payment_id, excess.amount,
    movement.reference1,
    coalesce(nullif(movement.later_bank_transaction_id, ''), movement.bank_transaction_id), movement.received_at
FROM reconciliation_excess AS excess JOIN reconciliation_banktransaction AS movement ON movement.id = excess.movement_id
WHERE excess.resolution_state = ''
UNION ALL
SELECT notification.id, notification.result, notification.bank, movement.merchant_id, movement.payment_id, NULL,
    coalesce(movement.reference1, ''), coalesce(movement.bank_transaction_id, ''), notification.received_at
FROM reconciliation_banknotification AS notification LEFT JOIN reconciliation_banktransaction AS movement ON movement.id = notification.movement_id
WHERE notification.result || '' IN ('conflict', 'unreadable')
    AND NOT reconciliation_is_resolved(notification.id, '{dismissed}')
UNION ALL
SELECT refund.id, 'returned', split_part(refund.route, ':', 2), refund.merchant_id, refund.payment_id, refund.amount,
    '', '', refund.returned_at
FROM refunds_refund AS refund
WHERE refund.returned_at IS NOT NULL
    AND NOT EXISTS (SELECT FROM reconciliation_resolution WHERE subject_id = refund.id AND type = 'kept')
UNION ALL
SELECT inquiry.notification_id, 'unconfirmed', inquiry.bank, inquiry.merchant_id, inquiry.payment_id, inquiry.amount,
    inquiry.reference1, inquiry.bank_transaction_id, inquiry.created_at
FROM reconciliation_confirmationinquiry AS inquiry
WHERE inquiry.notification_id IS NOT NULL AND inquiry.alerted_at IS NOT NULL AND inquiry.confirmed_at IS NULL
    AND NOT reconciliation_is_resolved(inquiry.notification_id, '{dismissed}')
UNION ALL
SELECT contradiction.id, 'contradiction', split_part(contradiction.route, ':', 2),
    nullif(contradiction.merchant_id, '')::varchar(31),
    CASE WHEN starts_with(contradiction.subject_id, 'pay_') THEN contradiction.subject_id
        ELSE (SELECT payment_id FROM refunds_refund WHERE id = contradiction.subject_id) END,
    contradiction.amount, contradiction.subject_id, contradiction.bank_reference, contradiction.created_at
FROM transfers_transfercontradiction AS contradiction
WHERE NOT reconciliation_is_resolved(contradiction.id, '{dismissed,booked_returned,booked_failed}');


CREATE OR REPLACE FUNCTION reconciliation_same_bank_day(one timestamp with time zone, other timestamp with time zone) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT (one AT TIME ZONE 'Asia/Bangkok')::date = (other AT TIME ZONE 'Asia/Bangkok')::date
        OR abs(extract(epoch FROM one - other)) <= 300
$$;


CREATE OR REPLACE FUNCTION reconciliation_reschedule_inquiry() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE reconciliation_inquiry SET due_at = NEW.expires_at + interval '1 second'
    WHERE payment_id = NEW.id AND due_at > NEW.expires_at + interval '1 second';
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_reschedule_inquiry AFTER UPDATE OF expires_at ON payments_payment
    FOR EACH ROW WHEN (NEW.expires_at < OLD.expires_at)
    EXECUTE FUNCTION reconciliation_reschedule_inquiry();


CREATE OR REPLACE FUNCTION reconciliation_forbid_confirmation_by_uploader() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM reconciliation_statementline AS line JOIN reconciliation_statement AS statement
            ON statement.id = line.statement_id
        WHERE line.movement_id = NEW.subject_id AND statement.actor = NEW.actor
    ) THEN
        RAISE EXCEPTION '% uploaded the statement that reports %', NEW.actor, NEW.subject_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_forbid_confirmation_by_uploader BEFORE INSERT ON reconciliation_resolution
    FOR EACH ROW WHEN (NEW.type = 'confirmed')
    EXECUTE FUNCTION reconciliation_forbid_confirmation_by_uploader();


CREATE OR REPLACE FUNCTION reconciliation_check_merge() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM reconciliation_probable_duplicates(NEW.id)) THEN
        RAISE EXCEPTION '% is not a probable duplicate', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_merge BEFORE UPDATE OF resolution_state ON reconciliation_banktransaction
    FOR EACH ROW WHEN (OLD.resolution_state = '' AND NEW.resolution_state = 'merged')
    EXECUTE FUNCTION reconciliation_check_merge();


-- The argument is the column with the id of the bank transaction.
CREATE OR REPLACE FUNCTION reconciliation_require_confirmed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    movement text := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    IF NOT EXISTS (SELECT FROM reconciliation_banktransaction WHERE id = movement AND is_confirmed) THEN
        RAISE EXCEPTION '% is unconfirmed', movement USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_confirmed_posting AFTER INSERT ON ledger_journal
    FOR EACH ROW WHEN (NEW.type = 'confirmed')
    EXECUTE FUNCTION reconciliation_require_confirmed('subject_id');


-- The argument is the column with the id of the bank transaction.
CREATE OR REPLACE FUNCTION reconciliation_forbid_probable_duplicate() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    moved text := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    IF EXISTS (SELECT FROM reconciliation_probable_duplicates(moved)) THEN
        RAISE EXCEPTION '% is a probable duplicate', moved USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_forbid_probable_duplicate BEFORE UPDATE OF resolution_state ON reconciliation_banktransaction
    FOR EACH ROW WHEN (OLD.resolution_state = '' AND NEW.resolution_state IN ('accepted', 'attached', 'sending_back', 'sent_back'))
    EXECUTE FUNCTION reconciliation_forbid_probable_duplicate('id');

CREATE OR REPLACE TRIGGER reconciliation_forbid_probable_duplicate BEFORE INSERT ON reconciliation_return
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_forbid_probable_duplicate('movement_id');


CREATE OR REPLACE TRIGGER reconciliation_check_return_confirmed BEFORE INSERT ON reconciliation_return
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_require_confirmed('movement_id');


CREATE OR REPLACE FUNCTION reconciliation_check_resolution_order() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    opened integer := (SELECT count(*) FROM reconciliation_resolution WHERE subject_id = NEW.subject_id AND type = 'reopened');
BEGIN
    IF NEW.type <> 'reopened' AND NEW.reopen_count <> opened OR NEW.type = 'reopened' AND (
        NEW.reopen_count <> opened + 1 OR NOT EXISTS (
            SELECT FROM reconciliation_resolution
            WHERE subject_id = NEW.subject_id AND reopen_count = opened AND type IN ('dismissed', 'written_off', 'merged')
        )
    ) THEN
        RAISE EXCEPTION 'only a resolved exception can be reopened, and only once' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_resolution_order BEFORE INSERT ON reconciliation_resolution
    FOR EACH ROW WHEN (NEW.type IN ('dismissed', 'kept', 'written_off', 'merged', 'booked_returned', 'booked_failed', 'reopened'))
    EXECUTE FUNCTION reconciliation_check_resolution_order();


CREATE OR REPLACE FUNCTION reconciliation_check_unconfirmed_balance() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    movement reconciliation_banktransaction%ROWTYPE;
    held bigint;
BEGIN
    SELECT * INTO movement FROM reconciliation_banktransaction WHERE id = NEW.id;
    IF movement.is_confirmed AND NOT EXISTS (
        SELECT FROM reconciliation_banknotification WHERE movement_id = movement.id AND source IN ('callback', 'inquiry')
            AND result IN ('new', 'repeat')
    ) AND NOT EXISTS (SELECT FROM reconciliation_resolution WHERE subject_id = movement.id AND type = 'confirmed') THEN
        RAISE EXCEPTION '% is not confirmed', movement.id USING ERRCODE = 'check_violation';
    END IF;
    SELECT coalesce(sum(entry.amount), 0) INTO held
    FROM ledger_journal AS journal JOIN ledger_entry AS entry ON entry.journal_id = journal.id
    WHERE entry.account_id = 'unconfirmed:' || movement.merchant_id
        AND journal.type IN ('payment', 'confirmed', 'reversal')
        AND journal.subject_id = ANY (
            ARRAY[movement.payment_id, movement.id]
            || ARRAY(SELECT reversal_id FROM refunds_refundreversal WHERE payment_id = movement.payment_id)
        );
    IF (movement.match_result = 'applied' OR movement.resolution_state IN ('accepted', 'attached')) AND held <> (CASE WHEN movement.is_confirmed THEN 0 ELSE movement.amount - (
        SELECT coalesce(sum(amount), 0) FROM refunds_refundreversal WHERE payment_id = movement.payment_id
    ) END) THEN
        RAISE EXCEPTION 'the unconfirmed balance for % is %', movement.id, held USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS reconciliation_check_confirmed_balance ON reconciliation_banktransaction;
CREATE CONSTRAINT TRIGGER reconciliation_check_confirmed_balance AFTER UPDATE OF is_confirmed ON reconciliation_banktransaction DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.is_confirmed AND NOT OLD.is_confirmed)
    EXECUTE FUNCTION reconciliation_check_unconfirmed_balance();

DROP TRIGGER IF EXISTS reconciliation_check_unconfirmed_balance ON reconciliation_banktransaction;
CREATE CONSTRAINT TRIGGER reconciliation_check_unconfirmed_balance AFTER UPDATE OF match_result, resolution_state, is_confirmed ON reconciliation_banktransaction DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NOT NEW.is_confirmed AND (NEW.match_result = 'applied' OR NEW.resolution_state IN ('accepted', 'attached')))
    EXECUTE FUNCTION reconciliation_check_unconfirmed_balance();


CREATE OR REPLACE FUNCTION reconciliation_refresh_exception(subject text) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    PERFORM FROM reconciliation_banktransaction WHERE id = subject FOR NO KEY UPDATE;
    PERFORM FROM reconciliation_banknotification WHERE id = subject FOR NO KEY UPDATE;
    DELETE FROM reconciliation_reconciliationexception WHERE id = subject;
    INSERT INTO reconciliation_reconciliationexception (id, reason, bank, merchant_id, payment_id, amount, reference1, bank_transaction_id, opened_at, search_text)
        SELECT id, reason, bank, merchant_id, payment_id, amount, reference1, bank_transaction_id, opened_at, upper(concat_ws(' ', id, payment_id, reference1, bank_transaction_id,
            (SELECT reference FROM payments_payment WHERE id = reconciliation_open_exceptions.payment_id)))
        FROM reconciliation_open_exceptions WHERE id = subject;
END $$;


CREATE OR REPLACE FUNCTION reconciliation_refresh_exceptions_of_merchant() RETURNS trigger
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.bank, NEW.biller_id) IS NOT DISTINCT FROM (OLD.bank, OLD.biller_id)
       OR TG_OP = 'INSERT' AND NEW.biller_id = '' THEN
        RETURN NULL;
    END IF;
    LOCK TABLE reconciliation_reconciliationexception IN SHARE ROW EXCLUSIVE MODE;
    UPDATE reconciliation_reconciliationexception AS waiting
    SET merchant_id = (SELECT merchant_id FROM reconciliation_open_exceptions WHERE id = waiting.id)
    WHERE id IN (
        SELECT id FROM reconciliation_reconciliationexception WHERE merchant_id = NEW.id
        UNION
        SELECT id FROM reconciliation_banktransaction
        WHERE bank = NEW.bank AND biller_id = NEW.biller_id AND biller_id <> ''
            AND match_result IN ('unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late') AND resolution_state = ''
    );
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_refresh_exceptions_of_merchant AFTER INSERT OR UPDATE OF bank, biller_id ON merchants_merchant
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_refresh_exceptions_of_merchant();


-- The argument is the column with the id of the exception.
CREATE OR REPLACE FUNCTION reconciliation_refresh_exception_of_column() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM reconciliation_refresh_exception(to_jsonb(NEW) ->> TG_ARGV[0]);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_refresh_exception_on_update AFTER UPDATE OF match_result, resolution_state, later_bank_transaction_id ON reconciliation_banktransaction
    FOR EACH ROW WHEN ((OLD.match_result IN ('unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late') AND OLD.resolution_state = '') OR (NEW.match_result IN ('unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late') AND NEW.resolution_state = ''))
    EXECUTE FUNCTION reconciliation_refresh_exception_of_column('id');

CREATE OR REPLACE TRIGGER reconciliation_refresh_exception_on_insert AFTER INSERT ON reconciliation_banktransaction
    FOR EACH ROW WHEN (NEW.match_result IN ('unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late') AND NEW.resolution_state = '')
    EXECUTE FUNCTION reconciliation_refresh_exception_of_column('id');

CREATE OR REPLACE TRIGGER reconciliation_refresh_exception_on_insert AFTER INSERT ON transfers_transfercontradiction
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_refresh_exception_of_column('id');

CREATE OR REPLACE TRIGGER reconciliation_refresh_exception_of_refund AFTER UPDATE OF returned_at ON refunds_refund
    FOR EACH ROW WHEN (NEW.returned_at IS DISTINCT FROM OLD.returned_at)
    EXECUTE FUNCTION reconciliation_refresh_exception_of_column('id');


CREATE OR REPLACE FUNCTION reconciliation_refresh_exception_of_notification() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM FROM reconciliation_banktransaction WHERE id = NEW.movement_id FOR NO KEY UPDATE;
    PERFORM reconciliation_refresh_exception(NEW.id);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_refresh_exception_on_insert AFTER INSERT ON reconciliation_banknotification
    FOR EACH ROW WHEN (NEW.result IN ('conflict', 'unreadable'))
    EXECUTE FUNCTION reconciliation_refresh_exception_of_notification();


CREATE OR REPLACE FUNCTION reconciliation_refresh_exceptions_of_movement() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM reconciliation_refresh_exception(id) FROM reconciliation_banknotification
    WHERE movement_id = NEW.id AND result IN ('conflict', 'unreadable');
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_refresh_exceptions_of_movement AFTER UPDATE OF payment_id, merchant_id ON reconciliation_banktransaction
    FOR EACH ROW WHEN (NEW.payment_id IS DISTINCT FROM OLD.payment_id OR NEW.merchant_id IS DISTINCT FROM OLD.merchant_id)
    EXECUTE FUNCTION reconciliation_refresh_exceptions_of_movement();


CREATE OR REPLACE TRIGGER reconciliation_refresh_exception_of_subject AFTER INSERT ON reconciliation_resolution
    FOR EACH ROW WHEN (NOT starts_with(NEW.subject_id, 'rcp_'))
    EXECUTE FUNCTION reconciliation_refresh_exception_of_column('subject_id');

CREATE OR REPLACE TRIGGER reconciliation_refresh_exception_on_update AFTER UPDATE OF alerted_at, confirmed_at ON reconciliation_confirmationinquiry
    FOR EACH ROW WHEN (NEW.notification_id IS NOT NULL AND (NEW.alerted_at IS DISTINCT FROM OLD.alerted_at OR NEW.confirmed_at IS DISTINCT FROM OLD.confirmed_at))
    EXECUTE FUNCTION reconciliation_refresh_exception_of_column('notification_id');

CREATE OR REPLACE TRIGGER reconciliation_refresh_exception_on_insert AFTER INSERT ON reconciliation_confirmationinquiry
    FOR EACH ROW WHEN (NEW.alerted_at IS NOT NULL AND NEW.notification_id IS NOT NULL)
    EXECUTE FUNCTION reconciliation_refresh_exception_of_column('notification_id');


CREATE OR REPLACE FUNCTION reconciliation_probable_duplicates(subject text) RETURNS SETOF text
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    one reconciliation_banktransaction := (SELECT row FROM reconciliation_banktransaction AS row WHERE row.id = subject AND kind = 'credit');
    is_named boolean := one.source <> 'statement' OR one.later_bank_transaction_id <> '';
BEGIN
    IF EXISTS (SELECT FROM reconciliation_statementline WHERE movement_id = subject) THEN
        RETURN QUERY SELECT other.id::text FROM reconciliation_banktransaction AS other
            WHERE other.resolution_state <> 'merged' AND other.reference1 = one.reference1 AND other.amount = one.amount
                AND other.biller_id = one.biller_id AND other.bank = one.bank AND other.kind = 'credit'
                AND (other.source <> 'statement' OR other.later_bank_transaction_id <> '')
                AND NOT EXISTS (SELECT FROM reconciliation_statementline WHERE movement_id = other.id)
                AND (NOT is_named OR reconciliation_same_bank_day(one.paid_at, other.paid_at));
    ELSE
        RETURN QUERY SELECT other.id::text FROM reconciliation_statementline AS line
            JOIN reconciliation_banktransaction AS other ON other.id = line.movement_id
            WHERE other.resolution_state <> 'merged' AND line.reference1 = one.reference1 AND line.amount = one.amount
                AND line.biller_id = one.biller_id AND line.bank = one.bank AND line.kind = 'credit'
                AND (
                    other.source = 'statement' AND other.later_bank_transaction_id = ''
                    OR reconciliation_same_bank_day(one.paid_at, other.paid_at)
                );
    END IF;
END $$;


CREATE OR REPLACE FUNCTION reconciliation_show_exception_on_payment() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO payments_paymentexception (id, payment_id, reason, amount, status, reported_at)
        VALUES (NEW.id, NEW.payment_id, NEW.match_result, NEW.amount, coalesce(nullif(NEW.resolution_state, ''), 'open'), NEW.received_at)
        ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status;
    UPDATE payments_payment SET has_exceptions = true
        WHERE id = NEW.payment_id AND NOT has_exceptions AND NEW.resolution_state <> 'attached';
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_show_exception_on_payment AFTER INSERT OR UPDATE OF match_result, resolution_state ON reconciliation_banktransaction
    FOR EACH ROW WHEN (NEW.kind = 'credit' AND NEW.payment_id IS NOT NULL AND NEW.match_result IN ('duplicate', 'time_mismatch', 'amount_mismatch', 'late'))
    EXECUTE FUNCTION reconciliation_show_exception_on_payment();


CREATE OR REPLACE FUNCTION reconciliation_show_excess_on_payment() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE payments_paymentexception SET status = 'excess_' || coalesce(nullif(NEW.resolution_state, ''), 'open')
        WHERE id = NEW.movement_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_show_excess_on_payment AFTER INSERT OR UPDATE OF resolution_state ON reconciliation_excess
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_show_excess_on_payment();

CREATE OR REPLACE TRIGGER reconciliation_refresh_exception_of_excess AFTER INSERT OR UPDATE OF resolution_state ON reconciliation_excess
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_refresh_exception_of_column('movement_id');


CREATE OR REPLACE TRIGGER reconciliation_check_excess_confirmed BEFORE INSERT ON reconciliation_excess
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_require_confirmed('movement_id');


-- What the payment received and the excess are together the money that arrived.
-- The argument is the column with the id of the bank transaction.
CREATE OR REPLACE FUNCTION reconciliation_check_parts() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    moved text := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    IF NOT EXISTS (
        SELECT FROM reconciliation_banktransaction AS movement
        JOIN payments_payment AS payment ON payment.id = movement.payment_id
        LEFT JOIN reconciliation_excess AS excess ON excess.movement_id = movement.id
        WHERE movement.id = moved AND movement.kind = 'credit'
            AND (excess.movement_id IS NULL OR movement.match_result = 'amount_mismatch' AND movement.resolution_state = 'accepted')
            AND coalesce(payment.amount_received, payment.amount) + coalesce(excess.amount, 0) = movement.amount
    ) THEN
        RAISE EXCEPTION 'the credited amount and the excess of % are not what arrived', moved USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS reconciliation_check_parts ON reconciliation_excess;
CREATE CONSTRAINT TRIGGER reconciliation_check_parts AFTER INSERT ON reconciliation_excess DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_check_parts('movement_id');

DROP TRIGGER IF EXISTS reconciliation_check_parts ON reconciliation_banktransaction;
CREATE CONSTRAINT TRIGGER reconciliation_check_parts AFTER UPDATE OF resolution_state ON reconciliation_banktransaction DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.resolution_state IN ('accepted', 'attached'))
    EXECUTE FUNCTION reconciliation_check_parts('id');


-- A return takes all that is held: a credit that is an open exception, or the open excess of an accepted one.
CREATE OR REPLACE FUNCTION reconciliation_check_new_return() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM reconciliation_banktransaction WHERE id = NEW.movement_id AND kind = 'credit'
            AND resolution_state = '' AND amount = NEW.amount
            AND match_result IN ('unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late'))
       AND NOT EXISTS (SELECT FROM reconciliation_excess WHERE movement_id = NEW.movement_id
            AND resolution_state = '' AND amount = NEW.amount) THEN
        RAISE EXCEPTION 'only held money can be returned, and only in full' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_new_return BEFORE INSERT ON reconciliation_return
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_check_new_return();
