"""The run-time type checker of the tests: beartype, with int accepted for float."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
