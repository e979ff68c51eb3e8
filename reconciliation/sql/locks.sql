-- What a notification reads under locks. A statement sees what was committed before it began, so it must not take the locks
-- itself. Each query in these functions is a statement of its own. Their plans are kept from the first calls on, when the
-- tables may be empty, so each query finds its row by one value of an index.

-- Takes the locks of a report. Returns the bank transaction that has its reference, or else those of statement lines that
-- have none yet and may be the same, the oldest first.
CREATE OR REPLACE FUNCTION reconciliation_find_reported(
    names bigint[], of_bank text, of_kind text, reference text, of_biller text, of_code text, satang bigint
) RETURNS SETOF reconciliation_banktransaction
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(name) FROM unnest(names) AS name;
    RETURN QUERY SELECT * FROM reconciliation_banktransaction AS t
        WHERE t.bank_reference = reference AND t.bank = of_bank AND t.kind = of_kind;
    IF NOT FOUND THEN
        RETURN QUERY SELECT * FROM reconciliation_banktransaction AS t
            WHERE t.later_bank_reference = reference AND t.later_bank_reference <> '' AND t.bank = of_bank AND t.kind = of_kind;
    END IF;
    IF NOT FOUND THEN
        RETURN QUERY SELECT * FROM reconciliation_banktransaction AS t
            WHERE t.reference1 = of_code AND t.biller_id = of_biller AND t.amount = satang AND t.bank = of_bank
                AND t.source = 'statement' AND t.later_bank_reference = '' AND t.kind = of_kind
                AND t.resolution_state <> 'undone'
            ORDER BY t.id;
    END IF;
END $$;


-- Takes the locks of pairs, then those of the payments and the bank transactions, each in the order of their ids, and returns
-- them. A payment is the one that was matched, or else that of the code with this reference, biller and bank.
-- has_reversal: it is a credit, and a reversal has one of its bank ids. `ids` are sorted.
CREATE OR REPLACE FUNCTION reconciliation_lock_credits(
    pairs bigint[], ids text[],
    OUT bank_transaction reconciliation_banktransaction, OUT has_reversal boolean, OUT payment payments_payment
) RETURNS SETOF record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    payment_ids text[];
    one text;
    of_bank text[];
BEGIN
    PERFORM pg_advisory_xact_lock(name) FROM unnest(pairs) AS name;
    FOR place IN 1..cardinality(ids) LOOP
        payment_ids[place] := (
            SELECT CASE t.match_result WHEN '' THEN (
                SELECT code.payment_id FROM qrcodes_qrcode AS code
                WHERE code.reference1 = t.reference1 AND code.biller_id = t.biller_id AND code.bank = t.bank
            ) ELSE t.payment_id END
            FROM reconciliation_banktransaction AS t WHERE t.id = ids[place]
        );
    END LOOP;
    FOR one IN SELECT DISTINCT id COLLATE "C" AS id FROM unnest(payment_ids) AS id WHERE id IS NOT NULL ORDER BY id LOOP
        PERFORM 1 FROM payments_payment AS t WHERE t.id = one FOR NO KEY UPDATE;
    END LOOP;
    FOR place IN 1..cardinality(ids) LOOP
        SELECT * INTO bank_transaction FROM reconciliation_banktransaction AS t WHERE t.id = ids[place] FOR NO KEY UPDATE;
        SELECT * INTO payment FROM payments_payment AS t WHERE t.id = payment_ids[place];
        of_bank := ARRAY[bank_transaction.bank_reference, bank_transaction.later_bank_reference];
        has_reversal := bank_transaction.kind = 'credit' AND (EXISTS (
            SELECT FROM reconciliation_banktransaction AS t
            WHERE t.bank_reference = ANY(of_bank) AND t.bank = bank_transaction.bank AND t.kind = 'reversal'
        ) OR EXISTS (
            SELECT FROM reconciliation_banktransaction AS t
            WHERE t.later_bank_reference = ANY(of_bank) AND t.later_bank_reference <> ''
                AND t.bank = bank_transaction.bank AND t.kind = 'reversal'
        ));
        RETURN NEXT;
    END LOOP;
END $$;
