"""The options of curl that the webhook pages use. So the tests do not need curl.

Like `curl --fail-with-body` it exits with 22 if the status is 400 or above.
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
    options = parser.parse_args()
    headers = dict(header.split(": ", 1) for header in options.headers)
    if "--json" in sys.argv:
        headers["Content-Type"] = "application/json"
    method = options.method or ("GET" if options.body is None else "POST")
    body = None if options.body is None else options.body.encode()
    response = requests.request(method, options.url, headers=headers, data=body, timeout=60)
    sys.stdout.write(response.text + "\n")
    return 0 if response.ok else 22


if __name__ == "__main__":
    sys.exit(main())
