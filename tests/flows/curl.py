"""The options of curl that the guide uses. So the tests do not need curl.

Like `curl --fail-with-body` it exits with 22 if the status is 400 or above, but only for requests to the API:
a page may ask only whether somebody listens. A page has up to 20 commands, so this imports little.
"""

import argparse
import sys
from pathlib import Path
from urllib import error, request


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-sS", "-s", dest="is_silent", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", "--json", dest="body")
    parser.add_argument("-o", dest="output")
    options = parser.parse_args()
    headers = dict(header.split(": ", 1) for header in options.headers)
    if "--json" in sys.argv:
        headers["Content-Type"] = "application/json"
    body = sys.stdin.read() if options.body == "@-" else options.body
    method = options.method or ("GET" if body is None else "POST")
    data = None if body is None else body.encode()
    try:
        response = request.urlopen(request.Request(options.url, data, headers, method=method), timeout=60)
    except error.HTTPError as refused:
        response = refused
    except error.URLError:
        return 7
    with response:
        content = response.read()
    if options.output:
        Path(options.output).write_bytes(content)
    else:
        sys.stdout.buffer.write(content + b"\n")
    return 22 if "/v1/" in options.url and response.status >= 400 else 0


if __name__ == "__main__":
    sys.exit(main())
