"""`/llms.txt`: the API in one page for language models, in the format of https://llmstxt.org."""

from typing import Any

from apidocs.guide import pages
from core.openapi import Tag

Json = dict[str, Any]
INTRODUCTION = """\
# {title}

> {description}

- Send `Authorization: Bearer tq_test_...`. A key with `tq_test_` moves no money; one with `tq_live_` does.
- An amount is an integer number of satang: 150000 is 1,500.00 THB. The currency is always THB.
- Send an `Idempotency-Key` with each POST, so that a repeated request does nothing twice.
- An error is `{{"error": {{"code", "message", "type", "param", "detail"}}}}`. Compare `code`.
- Believe a payment when `GET /v1/payments/{{payment_id}}` says `succeeded`, or when a webhook with a valid
  signature does.
- A misspelt field is ignored, and named in the response header `Ignored-Parameters`.
- Lists take `limit` and `after` (the last id that you have), dates with `timezone=Asia/Bangkok`, and
  `Accept: text/csv`.
- Money that does not match its payment is in its `exceptions`, until somebody accepts or returns it.
- `GET /v1/requests` has the requests of the last 30 days, with their answers.

## A purchase with a test key

1. `POST /v1/qr-codes` with `{{"amount": 150000, "currency": "THB"}}`: show the picture at `qr_image_url`.
2. `POST /sandbox/v1/payments` with that `qr_data` and `{{"scenario": "paid"}}`: this is the customer.
3. `GET /v1/payments/{{payment_id}}` until `status` is no longer `pending`.
4. `POST /v1/refunds` with `{{"payment_id": "pay_..."}}` sends the money back.

## Documents

- [OpenAPI 3.1, JSON](/openapi.json): every operation, field and error, with examples
- [OpenAPI 3.1, YAML](/openapi.yaml): the same
- [Postman collection](/postman.json): one request for each operation
- [Reference](/docs): the document to read
"""


def text(document: Json) -> str:
    """Rules, a first purchase, the documents, and one line for each operation of merchants."""
    guides = "".join(
        f"- [{page.label}](/guide/{page.name}.md): {page.summary}\n" for page in pages.for_merchants()
    )
    sections = [
        f"\n## {tag['name']}\n\n{''.join(_lines(document, tag['name']))}"
        for tag in document["tags"]
        if tag["name"] != Tag.BANKS
    ]
    return INTRODUCTION.format(**document["info"]) + guides + "".join(sections)


def _lines(document: Json, tag: str) -> list[str]:
    return [
        f"- [{method.upper()} {path}](/docs#operation/{operation['operationId']}): {operation['summary']}\n"
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "servers" and tag in operation["tags"]
    ]
