"""The `plato` command.

Every subcommand is a frozen dataclass: its fields are the flags, their docstrings the
help, and `run` does the work and returns the exit code. JAX is imported inside `run`
only, so that `plato --help` answers at once.
"""
