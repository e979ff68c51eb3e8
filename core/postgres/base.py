"""Django's PostgreSQL backend, except for how it sees that a kept connection is dead.

The name of the module and of the class are Django's interface for the ENGINE setting.
"""

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def is_usable(self) -> bool:
        """Whether the server has left the connection open, without asking it: a question costs a round trip.

        A server that ends a session says so and hangs up, and either can be read here, where nobody waits for
        an answer. One that vanished without a word is noticed as late as by a question, by the time-outs.
        """
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return not poll.poll(0)
