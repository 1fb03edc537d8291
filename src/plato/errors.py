"""The one exception that means: the user can mend this, and here is how."""


class PlatoError(Exception):
    """A mistake in something the user gave, told in one sentence.

    The command line prints the message and exits with code 2, without a traceback.
    """
