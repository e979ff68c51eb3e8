"""The words of a usual answer. With them stored answers are compressed to a third of their size.

Answers that are stored cannot be read with other words. If you change them, keep the old ones for
IDEMPOTENCY_TTL_HOURS.
"""

USUAL_ANSWER = (
    b'"metadata":{},"client_bank_account":"","client_bank_name":"","client_name":"","reference":"",'
    b'"status":"pending","payment_id":"pay_","expires_at":"2026-00:00:00.000Z","currency":"THB",'
    b'"amount_display":".00 THB","amount":,"payment_page_url":"https:///pay/qr_",'
    b'"qr_image_url":"https:///Thai/qr-codes/qr_/image",'
    b'"qr_data":"00020101021230730016A000000677010112011502200310530376454065802TH6304","qr_code_id":"qr_'
)
