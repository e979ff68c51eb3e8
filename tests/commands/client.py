"""Stands for a copy of the process of `server.py`: `client.py SOCKET SCRIPT ARGUMENT...`.

It passes signals on to the copy and ends as the copy ends. If it is killed, the copy is killed.
"""

import marshal
import os
import signal
import socket
import sys
from contextlib import suppress

PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def pass_on(number: int, frame: object) -> None:
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, number)


signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that were started by nohup ignore it
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
request = marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ)))  # noqa: PTH109 (pathlib is slow)
socket.send_fds(link, [len(request).to_bytes(4)], [0, 1, 2])
link.sendall(request)
if pid := int.from_bytes(link.recv(4)):
    for each in PASSED_ON:
        signal.signal(each, pass_on)
    os.closerange(0, 3)
code = os.waitstatus_to_exitcode(int.from_bytes(link.recv(4) or signal.SIGKILL.to_bytes(4)))
if code < 0:
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
