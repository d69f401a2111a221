"""Make `bytes` that C code of another thread fills: room for text, allocated by one thread for all."""

from __future__ import annotations

from typing import Any


def new_bytes(size_bytes: int) -> tuple[bytes, memoryview]:
    """New uninitialized `bytes`, and a view to fill them.

    This is what `PyBytes_FromStringAndSize(NULL, size)` of CPython is for. Whoever calls it fills all of the view
    before anybody looks at the bytes, and drops the view.
    """
    import ctypes  # 3 ms, which a short read does not pay

    api: Any = ctypes.pythonapi
    make, address_of = api.PyBytes_FromStringAndSize, api.PyBytes_AsString
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t)
    address_of.restype, address_of.argtypes = ctypes.c_void_p, (ctypes.py_object,)
    room: bytes = make(None, size_bytes)
    return room, memoryview((ctypes.c_char * size_bytes).from_address(address_of(room))).cast("B")
