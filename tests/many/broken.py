"""A promise that was not kept."""


class Broken(Exception):
    """What was promised, and what came instead. Ends the test."""
