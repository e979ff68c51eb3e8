-- A copy of the shop must not send refunds or take messages.
UPDATE payment_provider SET thai_qr_key = NULL, thai_qr_secret = NULL;
