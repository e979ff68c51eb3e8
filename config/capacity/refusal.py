"""Why nothing is measured. The message says what to do."""


class Refused(Exception):
    """This deployment does not allow a measurement."""
