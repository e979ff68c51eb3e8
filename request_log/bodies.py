"""The two bodies of a request in one column, a third of their size. `own`: the id of the payment."""

from core import deflate

# What bodies usually say. Never change it: without it, stored bodies cannot be read.
_USUAL = (
    b'"[an object of 1 fields]""[a string of 12 characters]"{"error":{"code":"invalid_","type":"valida'
    b'tion_error","param":"","message":"must be . Received: "}}{"refund_id":"ref_","transaction_id":"t'
    b'xn_","event_id":"evt_","webhook_id":"wh_","events":["payment.succeeded"],"total":1,"limit":20,"o'
    b'ffset":0,"next_after":null{"payment_id":"pay_0oDF","qr_code_id":"qr_0oDF","status":"succeeded","'
    b'amount":150000,"amount_display":"1,500.00 THB","currency":"THB","reference":"INV-2026","descript'
    b'ion":null,"created_at":"2026-11-21T03:04:05.123Z","updated_at":"2026-11-21T03:05:42.310Z","compl'
    b'eted_at":null,"card":null,"metadata":{},"amount_received":null,"amount_refunded":0,"failure_code'
    b'":null,"expires_at":"2026-11-21T03:19:05.123Z","authorize_uri":null,"exceptions":[],"exceptions_'
    b'has_more":false,"payer":{"name":"S*** J***","bank_code":"014","bank_name":"Siam Commercial Bank"'
    b',"bank_account":"xxxxxx4567"},"bank_reference":"2026","refunds":{"completed":0,"pending":0,"rema'
    b'ining":150000},"livemode":true,"unmatched_money":null}{"amount":150000,"currency":"THB","referen'
    b'ce":"INV-2026","expiry_minutes":15}\x00{"amount":150000,"currency":"THB","reference":"INV-2026","me'
    b'tadata":"[an object of 0 fields]","amount_display":"1,500.00 THB","qr_code_id":"qr_0oDF","qr_dat'
    b'a":"00020101021230630016A00000067701011201150207530376454071500.005802TH6304","qr_image_url":"ht'
    b'tps:///Thai/qr-codes/qr_0oDF/image","payment_page_url":"https:///pay/qr_0oDF","expires_at":"2026'
    b'-11-21T03:19:05.123Z","payment_id":"pay_0oDF","status":"pending"}'
)
_SHORTEST = 64  # Notes about bodies that are not kept are shorter. They stay as they are.
_FIRST_BYTE = b"H"  # of zlib with this window; JSON and notes do not begin with it


def pack(request: str, response: str, own: str) -> bytes:
    """The value of the column. JSON has no U+0000, which separates the bodies."""
    text = f"{request}\0{response}".encode() if request or response else b""
    return text if len(text) < _SHORTEST else deflate.pack(text, _USUAL, own)


def unpack(stored: bytes, own: str) -> tuple[str, str]:
    if stored.startswith(_FIRST_BYTE):
        stored = deflate.unpack(stored, _USUAL, own)
    request, _, response = stored.decode().partition("\0")
    return request, response
