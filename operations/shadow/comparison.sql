-- SQLite. Times are seconds since 1970, amounts satang. What a gateway does not say is null; no reference is ''.
CREATE TABLE month (first, after, apart);
CREATE TABLE theirs (id TEXT PRIMARY KEY, reference, amount, is_paid, at, fee, fee_vat, net, place);
CREATE TABLE ours (id TEXT PRIMARY KEY, reference, amount, is_paid, at, fee, fee_vat, net);
CREATE TABLE pairs (there TEXT PRIMARY KEY, here TEXT UNIQUE);

-- Gateways repeat webhooks, and reports have fees that webhooks lack. The first one that says paid wins.
CREATE VIEW reports AS SELECT * FROM theirs;
CREATE TRIGGER merge INSTEAD OF INSERT ON reports BEGIN
    INSERT INTO theirs VALUES (
        new.id, new.reference, new.amount, new.is_paid, new.at, new.fee, new.fee_vat, new.net, new.place
    ) ON CONFLICT DO UPDATE SET
        is_paid = max(is_paid, excluded.is_paid),
        reference = iif(reference = '', excluded.reference, reference),
        amount = iif(is_paid < excluded.is_paid, excluded.amount, amount),
        at = iif(is_paid < excluded.is_paid, excluded.at, at),
        place = iif(is_paid < excluded.is_paid, excluded.place, place),
        fee = iif(is_paid < excluded.is_paid, coalesce(excluded.fee, fee), coalesce(fee, excluded.fee)),
        fee_vat = iif(is_paid < excluded.is_paid, coalesce(excluded.fee_vat, fee_vat), coalesce(fee_vat, excluded.fee_vat)),
        net = iif(is_paid < excluded.is_paid, coalesce(excluded.net, net), coalesce(net, excluded.net));
END;

CREATE VIEW theirs_left AS SELECT * FROM theirs WHERE id NOT IN (SELECT there FROM pairs);
CREATE VIEW ours_left AS SELECT * FROM ours WHERE id NOT IN (SELECT here FROM pairs);

-- By what two payments may be the same one; null is the same as nothing. Two references are two payments, however alike
-- they look, so by amount and time one of both has none.
CREATE VIEW theirs_keys AS SELECT
    id, at, nullif(reference, '') AS reference, nullif(reference, '') || is_paid AS paid_reference,
    iif(is_paid, amount, NULL) AS amount, iif(is_paid AND reference = '', amount, NULL) AS amount_alone
    FROM theirs_left;
CREATE VIEW ours_keys AS SELECT
    id, at, nullif(reference, '') AS reference, nullif(reference, '') || is_paid AS paid_reference,
    iif(is_paid, amount, NULL) AS amount, iif(is_paid AND reference = '', amount, NULL) AS amount_alone
    FROM ours_left;

CREATE VIEW paired AS SELECT
    there AS their_id, here AS our_id, iif(ours.reference = '', theirs.reference, ours.reference) AS reference,
    place, theirs.at, theirs.is_paid AND ours.is_paid AS are_paid,
    theirs.is_paid AS there_paid, theirs.at AS there_at, theirs.amount AS there_amount,
    theirs.fee AS there_fee, theirs.fee_vat AS there_vat, theirs.net AS there_net,
    ours.is_paid AS here_paid, ours.at AS here_at, ours.amount AS here_amount,
    -- Without a VAT of its own their fee has it.
    iif(theirs.fee_vat IS NULL, ours.fee + ours.fee_vat, ours.fee) AS here_fee,
    ours.fee_vat AS here_vat, ours.net AS here_net
    FROM month, pairs JOIN theirs ON theirs.id = there JOIN ours ON ours.id = here
    WHERE (theirs.is_paid OR ours.is_paid)
    AND (theirs.at >= first AND theirs.at < after OR ours.at >= first AND ours.at < after);

CREATE VIEW differences (kind, their_id, our_id, reference, place, at, there, here) AS
    SELECT 'missing here', id, '', reference, place, at, amount, NULL
    FROM theirs_left, month WHERE is_paid AND at >= first AND at < after
    UNION ALL SELECT 'missing there', '', id, reference, '', at, NULL, amount
    FROM ours_left, month WHERE is_paid AND at >= first AND at < after
    UNION ALL SELECT 'status', their_id, our_id, reference, place, at, there_paid, here_paid
    FROM paired WHERE NOT are_paid
    UNION ALL SELECT 'time', their_id, our_id, reference, place, at, there_at, here_at
    FROM paired, month WHERE are_paid AND abs(there_at - here_at) > apart
    UNION ALL SELECT 'amount', their_id, our_id, reference, place, at, there_amount, here_amount
    FROM paired WHERE are_paid AND there_amount <> here_amount
    UNION ALL SELECT 'fee', their_id, our_id, reference, place, at, there_fee, here_fee
    FROM paired WHERE are_paid AND there_fee <> coalesce(here_fee, -1)
    UNION ALL SELECT 'fee_vat', their_id, our_id, reference, place, at, there_vat, here_vat
    FROM paired WHERE are_paid AND there_vat <> coalesce(here_vat, -1)
    -- Another amount or fee explains another net.
    UNION ALL SELECT 'net', their_id, our_id, reference, place, at, there_net, here_net
    FROM paired WHERE are_paid AND there_net <> coalesce(here_net, -1) AND there_amount = here_amount
    AND coalesce(there_fee = here_fee, there_fee IS NULL) AND coalesce(there_vat = here_vat, there_vat IS NULL);

-- Of all that was paid in the month.
CREATE VIEW totals (kind, there, here) AS
    WITH there AS (SELECT theirs.* FROM theirs, month WHERE is_paid AND at >= first AND at < after),
    here AS (SELECT ours.* FROM ours, month WHERE is_paid AND at >= first AND at < after)
    SELECT 'total payments', (SELECT count(*) FROM there), (SELECT count(*) FROM here)
    UNION ALL SELECT 'total amount', (SELECT sum(amount) FROM there), (SELECT sum(amount) FROM here)
    UNION ALL SELECT 'total fees', (SELECT sum(fee + coalesce(fee_vat, 0)) FROM there), (SELECT sum(fee + fee_vat) FROM here)
    UNION ALL SELECT 'total net', (SELECT sum(net) FROM there), (SELECT sum(net) FROM here);

-- What they call a reference or an id may be a name, so only what looks like one is shown.
CREATE VIEW report AS SELECT
    kind, our_id, iif(their_id GLOB '*[^A-Za-z0-9._/#:-]*', '', their_id) AS their_id,
    iif(reference GLOB '*[^A-Za-z0-9._/#:-]*', '', reference) AS reference, place, there, here
    FROM differences ORDER BY at, differences.their_id, our_id;
