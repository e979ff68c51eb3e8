"""The part of curl that the webhook pages use, because the tests need nothing but Python and make.

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
    request_body = parser.parse_args()
    headers = dict(header.split(": ", 1) for header in request_body.headers)
    if "--json" in sys.argv:
        headers["Content-Type"] = "application/json"
    method = request_body.method or ("GET" if request_body.body is None else "POST")
    body = None if request_body.body is None else request_body.body.encode()
    response = requests.request(method, request_body.url, headers=headers, data=body, timeout=60)
    sys.stdout.write(response.text + "\n")
    return 0 if response.ok else 22


if __name__ == "__main__":
    sys.exit(main())
