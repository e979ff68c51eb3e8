-- The import of a statement is undone only if nobody has acted on what it brought, and then all of that goes.


-- The first line that prevents it, and why; line 0 for a closed day or month. Money that other reports name too is kept.
CREATE OR REPLACE FUNCTION reconciliation_undo_obstacle(
    undone text, OUT line integer, OUT why text, OUT payment text
) RETURNS SETOF record
    LANGUAGE sql STABLE
    SET enable_seqscan TO 'off'
    AS $$
    SELECT number, reason, paid FROM (
        SELECT 0 AS number, NULL AS paid, 'closed' AS reason FROM reconciliation_statement AS statement
        WHERE id = undone AND (
            EXISTS (SELECT FROM operations_dailyclose WHERE day >= (created_at AT TIME ZONE 'Asia/Bangkok')::date)
            OR EXISTS (SELECT FROM operations_monthclose WHERE month >= date_trunc('month', (
                SELECT min(bank_date) FROM reconciliation_statementline WHERE statement_id = undone
            )))
        )
        UNION ALL
        -- Imports may run at once, and take less than a day: one that began before may have known these lines too.
        SELECT 0, NULL, 'known' FROM reconciliation_statement AS statement JOIN reconciliation_statement AS other USING (bank)
        WHERE statement.id = undone AND other.id <> undone AND other.duplicate_count > 0 AND other.undone_at IS NULL
            AND coalesce(other.completed_at, other.created_at + interval '1 day') > statement.created_at
        UNION ALL
        SELECT 0, NULL, 'moved' FROM reconciliation_statementline AS line
        JOIN reconciliation_banktransaction AS money ON money.id = line.bank_transaction_id
        JOIN merchants_merchant AS merchant ON money.biller_id <> '' AND (money.bank, money.biller_id) IN (
            (merchant.bank, merchant.biller_id), (merchant.standby_bank, merchant.standby_biller_id)
        )
        WHERE line.statement_id = undone AND merchant.moved_at IS NOT NULL
        UNION ALL
        SELECT line_number, money.payment_id, CASE
            WHEN money.match_result = '' THEN 'not_matched'
            WHEN EXISTS (
                SELECT FROM reconciliation_resolution AS made
                WHERE made.subject_id = money.id AND made.created_at >= statement.created_at
            ) OR EXISTS (
                SELECT FROM reconciliation_banktransaction AS other
                WHERE other.reference1 = money.reference1 AND other.biller_id = money.biller_id AND other.bank = money.bank
                    AND other.amount = money.amount AND other.resolution_state = 'merged'
            ) THEN 'decided'
            WHEN line.result = 'attached' AND line.fee IS NOT NULL THEN 'fee'
            WHEN line.result = 'attached' THEN NULL
            WHEN money.kind = 'reversal' THEN 'debit'
            WHEN money.match_result = 'applied' THEN 'credited'
            WHEN money.payment_id IS NOT NULL THEN 'told'
            WHEN money.resolution_state <> '' THEN 'decided'
            WHEN money.is_confirmed OR money.later_bank_reference <> '' OR EXISTS (
                SELECT FROM reconciliation_banknotification AS message WHERE message.bank_transaction_id = money.id
            ) THEN 'reported'
        END
        FROM reconciliation_statement AS statement
        JOIN reconciliation_statementline AS line ON line.statement_id = statement.id
        JOIN reconciliation_banktransaction AS money ON money.id = line.bank_transaction_id
        WHERE statement.id = undone
    ) AS found WHERE reason IS NOT NULL ORDER BY number LIMIT 1
$$;


CREATE OR REPLACE FUNCTION reconciliation_check_undo() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    obstacle record;
BEGIN
    SELECT * INTO obstacle FROM reconciliation_undo_obstacle(NEW.id);
    IF FOUND THEN
        RAISE EXCEPTION 'line % of % prevents its undo: %', obstacle.line, NEW.id, obstacle.why USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_undo BEFORE UPDATE OF undone_at ON reconciliation_statement
    FOR EACH ROW WHEN (NEW.undone_at IS NOT NULL)
    EXECUTE FUNCTION reconciliation_check_undo();


CREATE OR REPLACE FUNCTION reconciliation_check_undone_lines() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM reconciliation_statementline WHERE statement_id = NEW.id) THEN
        RAISE EXCEPTION 'lines of % are left', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS reconciliation_check_undone_lines ON reconciliation_statement;
CREATE CONSTRAINT TRIGGER reconciliation_check_undone_lines AFTER UPDATE OF undone_at ON reconciliation_statement DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.undone_at IS NOT NULL)
    EXECUTE FUNCTION reconciliation_check_undone_lines();


CREATE OR REPLACE FUNCTION reconciliation_check_undone_money() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM reconciliation_statementline AS line JOIN reconciliation_statement AS statement
            ON statement.id = line.statement_id
        WHERE line.bank_transaction_id = NEW.id AND line.result = 'new' AND statement.undone_at IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'the import that made % is not undone', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_undone_money BEFORE UPDATE OF resolution_state ON reconciliation_banktransaction
    FOR EACH ROW WHEN (NEW.resolution_state = 'undone')
    EXECUTE FUNCTION reconciliation_check_undone_money();


CREATE OR REPLACE FUNCTION reconciliation_keep_lines() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM reconciliation_statement WHERE id = OLD.statement_id AND undone_at IS NULL) OR EXISTS (
        SELECT FROM reconciliation_banktransaction
        WHERE id = OLD.bank_transaction_id AND OLD.result = 'new' AND resolution_state <> 'undone'
    ) THEN
        RAISE EXCEPTION 'a line of a statement is deleted only when its import is undone' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN OLD;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_keep_lines BEFORE DELETE ON reconciliation_statementline
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_keep_lines();
