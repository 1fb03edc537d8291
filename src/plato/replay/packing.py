"""Arrays as text that a web page can hold and unpack quickly."""

import base64
import zlib
from typing import Any

import numpy as np

TYPES = {"u1": "<u1", "u2": "<u2", "u4": "<u4", "f4": "<f4"}
"""What a page can read: whole numbers of 1, 2 and 4 bytes, and single floats."""


class Packer:
    """Collects arrays; each is known by where it lies among all the bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, array: np.ndarray, kind: str) -> dict[str, Any]:
        """Puts an array in, and says how it is read back."""
        flat = np.ascontiguousarray(array).reshape(-1).astype(TYPES[kind])
        # First bytes, then second bytes, …: alike beside alike is packed smaller.
        planes = flat.view(np.uint8).reshape(flat.size, flat.itemsize).T
        place = {"at": self._size, "length": flat.size, "type": kind}
        self._parts.append(planes.tobytes())
        self._size += flat.nbytes
        return place

    def text(self) -> str:
        """Everything, deflated, as base64."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 9)).decode()


def index_kind(largest: int) -> str:
    """The smallest type that holds whole numbers up to this one."""
    return "u1" if largest < 2**8 else "u2" if largest < 2**16 else "u4"
