class AlreadyTold(Exception):
    """The bank was told of the order, or may have been: it cannot be canceled."""
