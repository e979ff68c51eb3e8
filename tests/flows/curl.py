"""The part of curl that docs/webhooks.md uses, because the tests need nothing but Python and make.

Like `curl --fail-with-body` it ends with 22 where the answer is a refusal.
"""

import argparse
import sys

import requests


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-sS", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", "--json", dest="body")
    asked = parser.parse_args()
    headers = dict(header.split(": ", 1) for header in asked.headers)
    if "--json" in sys.argv:
        headers["Content-Type"] = "application/json"
    method = asked.method or ("GET" if asked.body is None else "POST")
    body = None if asked.body is None else asked.body.encode()
    answer = requests.request(method, asked.url, headers=headers, data=body, timeout=60)
    sys.stdout.write(answer.text + "\n")
    return 0 if answer.ok else 22


if __name__ == "__main__":
    sys.exit(main())
