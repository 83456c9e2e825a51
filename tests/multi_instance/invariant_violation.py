"""The exception for a violated guarantee."""


class InvariantViolation(Exception):
    """The expected and the actual state. Ends the scenario."""
