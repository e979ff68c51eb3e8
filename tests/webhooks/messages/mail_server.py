"""A small SMTP server on loopback that keeps the messages (RFC 5321). It can refuse, hang up or be silent."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage


class MailServer:
    def __init__(self, port: int) -> None:
        self.port = port
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.refuses = ""  # such as "550 no such user"
        self.greeting = b"220 double ESMTP\r\n"
        self.is_silent = False
        self.closing = threading.Event()

    def serve(self, sock: socket.socket) -> None:
        with sock, sock.makefile("rb") as lines:
            if self.is_silent:
                self.closing.wait()
                return
            sock.sendall(self.greeting)
            for line in lines:
                verb = line[:4].upper()
                if verb == b"DATA":
                    sock.sendall(b"354 go on\r\n")
                    content = b"".join(iter(lines.readline, b".\r\n"))
                    mail = message_from_bytes(content, policy=policy.default)
                    assert isinstance(mail, EmailMessage)
                    self.mails.append(mail)
                if verb == b"RCPT":
                    self.recipients.append(line.decode().strip())
                    if self.refuses:
                        sock.sendall(f"{self.refuses}\r\n".encode())
                        continue
                sock.sendall(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")
                if verb == b"QUIT":
                    return


@contextmanager
def running() -> Iterator[MailServer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = MailServer(listener.getsockname()[1])

        def accept() -> None:
            while True:
                sock, _ = listener.accept()
                if server.closing.is_set():
                    sock.close()
                    return
                threading.Thread(target=server.serve, args=(sock,), daemon=True).start()

        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield server
        finally:
            server.closing.set()
            socket.create_connection(listener.getsockname()).close()
            acceptor.join()
