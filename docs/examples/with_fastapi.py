"""A shop in FastAPI, in one file: verifies webhooks, and ships each order once.

pip install fastapi uvicorn ./clients/python
WEBHOOK_SECRET=whsec_... python3 docs/examples/with_fastapi.py 9000
"""

import os
import sqlite3
import sys
from contextlib import closing

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from thaiqr import Event, PaymentEvent, SignatureError, webhooks

SECRET = os.environ.get("WEBHOOK_SECRET", "")
DATABASE = os.environ.get("SHOP_DB", "shop.sqlite3")
app = FastAPI()


@app.post("/")
async def hook(request: Request) -> Response:
    try:
        # The bytes as they arrived: a model of FastAPI would have parsed them.
        event = webhooks.unwrap(await request.body(), request.headers, SECRET)
    except SignatureError:
        return Response(status_code=400)
    await run_in_threadpool(store, event)
    return Response(status_code=204)


def store(event: Event) -> None:
    """The event and what it does are one commit: both are stored, or the service sends it again."""
    with closing(sqlite3.connect(DATABASE)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS seen_event (event_id TEXT PRIMARY KEY)")
        added = database.execute("INSERT OR IGNORE INTO seen_event VALUES (?)", [event.event_id])
        if added.rowcount:
            handle(event)


def handle(event: Event) -> None:
    """Change your own tables here. Call nobody: a repeat after an error would call again."""
    if isinstance(event, PaymentEvent) and event.event == "payment.succeeded":
        print("ship", event.data.reference, flush=True)


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
