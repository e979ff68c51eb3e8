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
        WHERE line.bank_transaction_id = NEW.subject_id AND statement.actor = NEW.actor
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
    bank_transaction text := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    IF NOT EXISTS (SELECT FROM reconciliation_banktransaction WHERE id = bank_transaction AND is_confirmed) THEN
        RAISE EXCEPTION '% is unconfirmed', bank_transaction USING ERRCODE = 'check_violation';
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
    EXECUTE FUNCTION reconciliation_forbid_probable_duplicate('bank_transaction_id');


CREATE OR REPLACE TRIGGER reconciliation_check_return_confirmed BEFORE INSERT ON reconciliation_return
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_require_confirmed('bank_transaction_id');


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
    bank_transaction reconciliation_banktransaction%ROWTYPE;
    held bigint;
BEGIN
    SELECT * INTO bank_transaction FROM reconciliation_banktransaction WHERE id = NEW.id;
    IF bank_transaction.is_confirmed AND NOT EXISTS (
        SELECT FROM reconciliation_banknotification WHERE bank_transaction_id = bank_transaction.id AND source IN ('callback', 'inquiry')
            AND result IN ('new', 'repeat')
    ) AND NOT EXISTS (SELECT FROM reconciliation_resolution WHERE subject_id = bank_transaction.id AND type = 'confirmed') THEN
        RAISE EXCEPTION '% is not confirmed', bank_transaction.id USING ERRCODE = 'check_violation';
    END IF;
    SELECT coalesce(sum(entry.amount), 0) INTO held
    FROM ledger_journal AS journal JOIN ledger_entry AS entry ON entry.journal_id = journal.id
    WHERE entry.account_id = 'unconfirmed:' || bank_transaction.merchant_id
        AND journal.type IN ('payment', 'confirmed', 'reversal')
        AND journal.subject_id = ANY (
            ARRAY[bank_transaction.payment_id, bank_transaction.id]
            || ARRAY(SELECT reversal_id FROM refunds_refundreversal WHERE payment_id = bank_transaction.payment_id)
        );
    IF (bank_transaction.match_result = 'applied' OR bank_transaction.resolution_state IN ('accepted', 'attached')) AND held <> (CASE WHEN bank_transaction.is_confirmed THEN 0 ELSE bank_transaction.amount - (
        SELECT coalesce(sum(amount), 0) FROM refunds_refundreversal WHERE payment_id = bank_transaction.payment_id
    ) END) THEN
        RAISE EXCEPTION 'the unconfirmed balance for % is %', bank_transaction.id, held USING ERRCODE = 'check_violation';
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


CREATE OR REPLACE FUNCTION reconciliation_probable_duplicates(subject text) RETURNS SETOF text
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    one reconciliation_banktransaction := (SELECT row FROM reconciliation_banktransaction AS row WHERE row.id = subject AND kind = 'credit');
    is_named boolean := one.source <> 'statement' OR one.later_bank_reference <> '';
BEGIN
    IF EXISTS (SELECT FROM reconciliation_statementline WHERE bank_transaction_id = subject) THEN
        -- Two parts, so that each has its index, and lines without an id are not read.
        RETURN QUERY SELECT other.id::text FROM (
                SELECT * FROM reconciliation_banktransaction AS reported
                WHERE reported.reference1 = one.reference1 AND reported.amount = one.amount
                    AND reported.biller_id = one.biller_id AND reported.bank = one.bank
                    AND reported.source IN ('callback', 'inquiry')
                UNION ALL
                SELECT * FROM reconciliation_banktransaction AS line
                WHERE line.reference1 = one.reference1 AND line.amount = one.amount
                    AND line.biller_id = one.biller_id AND line.bank = one.bank
                    AND line.source = 'statement' AND line.later_bank_reference <> ''
            ) AS other
            WHERE other.resolution_state <> 'merged' AND other.kind = 'credit'
                AND NOT EXISTS (SELECT FROM reconciliation_statementline WHERE bank_transaction_id = other.id)
                AND (NOT is_named OR reconciliation_same_bank_day(one.paid_at, other.paid_at));
    ELSE
        RETURN QUERY SELECT other.id::text FROM reconciliation_statementline AS line
            JOIN reconciliation_banktransaction AS other ON other.id = line.bank_transaction_id
            WHERE other.resolution_state <> 'merged' AND line.reference1 = one.reference1 AND line.amount = one.amount
                AND line.biller_id = one.biller_id AND line.bank = one.bank AND line.kind = 'credit'
                AND (
                    other.source = 'statement' AND other.later_bank_reference = ''
                    OR reconciliation_same_bank_day(one.paid_at, other.paid_at)
                );
    END IF;
END $$;


CREATE OR REPLACE TRIGGER reconciliation_check_excess_confirmed BEFORE INSERT ON reconciliation_excess
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_require_confirmed('bank_transaction_id');


-- What the payment received and the excess are together the money that arrived.
-- The argument is the column with the id of the bank transaction.
CREATE OR REPLACE FUNCTION reconciliation_check_parts() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    moved text := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    IF NOT EXISTS (
        SELECT FROM reconciliation_banktransaction AS bank_transaction
        JOIN payments_payment AS payment ON payment.id = bank_transaction.payment_id
        LEFT JOIN reconciliation_excess AS excess ON excess.bank_transaction_id = bank_transaction.id
        WHERE bank_transaction.id = moved AND bank_transaction.kind = 'credit'
            AND (excess.bank_transaction_id IS NULL OR bank_transaction.match_result = 'amount_mismatch' AND bank_transaction.resolution_state = 'accepted')
            AND coalesce(payment.amount_received, payment.amount) + coalesce(excess.amount, 0) = bank_transaction.amount
    ) THEN
        RAISE EXCEPTION 'the credited amount and the excess of % are not what arrived', moved USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS reconciliation_check_parts ON reconciliation_excess;
CREATE CONSTRAINT TRIGGER reconciliation_check_parts AFTER INSERT ON reconciliation_excess DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_check_parts('bank_transaction_id');

DROP TRIGGER IF EXISTS reconciliation_check_parts ON reconciliation_banktransaction;
CREATE CONSTRAINT TRIGGER reconciliation_check_parts AFTER UPDATE OF resolution_state ON reconciliation_banktransaction DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.resolution_state IN ('accepted', 'attached'))
    EXECUTE FUNCTION reconciliation_check_parts('id');


-- A return takes all that is held: a credit that is an open exception, or the open excess of an accepted one.
CREATE OR REPLACE FUNCTION reconciliation_check_new_return() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM reconciliation_banktransaction WHERE id = NEW.bank_transaction_id AND kind = 'credit'
            AND resolution_state = '' AND amount = NEW.amount
            AND match_result IN ('unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late'))
       AND NOT EXISTS (SELECT FROM reconciliation_excess WHERE bank_transaction_id = NEW.bank_transaction_id
            AND resolution_state = '' AND amount = NEW.amount) THEN
        RAISE EXCEPTION 'only held money can be returned, and only in full' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_new_return BEFORE INSERT ON reconciliation_return
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_check_new_return();


-- The statement of a bank wins over the terms, and a line keeps its fee: so the fee of a payment changes once.
CREATE OR REPLACE FUNCTION reconciliation_check_fee() RETURNS trigger
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM reconciliation_banktransaction AS paid
        JOIN reconciliation_statementline AS line ON line.bank_transaction_id = paid.id
        WHERE paid.payment_id = NEW.id AND paid.kind = 'credit'
            AND (paid.match_result = 'applied' OR paid.resolution_state IN ('accepted', 'attached'))
            AND (line.fee, line.fee_vat) = (NEW.fee, NEW.fee_vat)
    ) THEN
        RAISE EXCEPTION 'a payment keeps its fee, unless the statement of its bank names another'
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_fee BEFORE UPDATE OF fee, fee_vat ON payments_payment
    FOR EACH ROW WHEN (OLD.fee IS NOT NULL AND (NEW.fee, NEW.fee_vat) IS DISTINCT FROM (OLD.fee, OLD.fee_vat))
    EXECUTE FUNCTION reconciliation_check_fee();


-- What a merchant reads about a slip is about money for its own payment.
CREATE OR REPLACE FUNCTION reconciliation_check_slip() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM payments_payment WHERE id = NEW.payment_id AND merchant_id = NEW.merchant_id)
       OR NEW.bank_transaction_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM reconciliation_banktransaction WHERE id = NEW.bank_transaction_id AND payment_id = NEW.payment_id
       ) THEN
        RAISE EXCEPTION 'slip % is not of money for a payment of its merchant', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_slip BEFORE INSERT ON reconciliation_slipcheck
    FOR EACH ROW WHEN (NEW.merchant_id IS NOT NULL AND (NEW.payment_id IS NOT NULL OR NEW.bank_transaction_id IS NOT NULL))
    EXECUTE FUNCTION reconciliation_check_slip();


-- What a bank reports about a merchant that has moved stays a message, which staff see (`matching.intake`).
CREATE OR REPLACE FUNCTION reconciliation_check_here() RETURNS trigger
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM public.merchants_merchant
        WHERE (NEW.bank, NEW.biller_id) IN ((bank, biller_id), (standby_bank, standby_biller_id))
            AND NEW.biller_id <> '' AND moved_at IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'the merchant of biller % has moved', NEW.biller_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_here BEFORE INSERT OR UPDATE OF later_bank_reference, resolution_state
    ON reconciliation_banktransaction FOR EACH ROW EXECUTE FUNCTION reconciliation_check_here();


-- The staff of the other instance decide about its money, or it would go back twice. A return by hand has no order.
CREATE OR REPLACE FUNCTION reconciliation_check_return_here() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM public.reconciliation_banktransaction AS money JOIN public.merchants_merchant AS merchant
            ON (money.bank, money.biller_id) IN ((merchant.bank, merchant.biller_id), (standby_bank, standby_biller_id))
        WHERE money.id = NEW.bank_transaction_id AND money.biller_id <> '' AND moved_at IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'the merchant of return % has moved', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_return_here BEFORE INSERT OR UPDATE OF status ON reconciliation_return
    FOR EACH ROW EXECUTE FUNCTION reconciliation_check_return_here();


CREATE OR REPLACE TRIGGER merchants_check_exists AFTER INSERT OR UPDATE OF merchant_id ON reconciliation_banktransaction
    FOR EACH ROW EXECUTE FUNCTION merchants_check_exists();


-- A bank transaction is never deleted, so a look is enough. A foreign key would lock the row, and write the lock. It is a look
-- after the statement, because one statement inserts both.
CREATE OR REPLACE FUNCTION reconciliation_check_reported() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NEW.bank_transaction_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM public.reconciliation_banktransaction WHERE id = NEW.bank_transaction_id
    ) THEN
        RAISE EXCEPTION 'there is no bank transaction %', NEW.bank_transaction_id USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_reported AFTER INSERT ON reconciliation_banknotification
    FOR EACH ROW EXECUTE FUNCTION reconciliation_check_reported();
