"""Give bashkit a file system that is written in Python.

`bashkit.FileSystem.from_capsule` takes a handle of version 1 of its C interface (`bashkit.FileSystem.v1`): a table of
functions with structures of a fixed layout. The names below are those of that interface. The files are read-only.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, Structure, c_bool, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

from monocontext.format.documents import Document
from monocontext.shell.tree import DISK_BLOCK_BYTES, TextFiles

_FILE, _DIRECTORY = 0, 1  # values of `file_type`
_ERROR_KINDS = {errno.ENOENT: 1, errno.EROFS: 3, errno.EISDIR: 5, errno.EFBIG: 0}  # by errno; 0 is any other error


class _Slice(Structure):
    """`BashkitFsAbiStrRef`, `BashkitFsAbiOwnedBytes` and `BashkitFsAbiOwnedDirEntries`, which have the same layout."""

    _fields_ = (("pointer", c_void_p), ("length", c_size_t))


class _Error(Structure):
    _fields_ = (("kind", c_uint32), ("message", _Slice))


class _Metadata(Structure):
    _fields_ = (
        ("file_type", c_uint8), ("reserved", c_uint8 * 7), ("size", c_uint64), ("mode", c_uint32),
        ("modified_seconds", c_int64), ("modified_nanos", c_uint32),
        ("created_seconds", c_int64), ("created_nanos", c_uint32),
    )  # fmt: skip


class _Entry(Structure):
    _fields_ = (("name", _Slice), ("metadata", _Metadata))


def _function(*arguments: Any) -> Any:
    """The C type of a table function that takes a path and `arguments`, and may fail with an error."""
    return CFUNCTYPE(c_uint32, c_void_p, _Slice, *arguments, POINTER(_Error))


_GIVES_SLICE, _TAKES_SLICE, _TAKES_BOOL = _function(POINTER(_Slice)), _function(_Slice), _function(c_bool)
_FREE, _COUNT = CFUNCTYPE(None, c_void_p, _Slice), CFUNCTYPE(None, c_void_p)
_FUNCTIONS = {
    "read_file": _GIVES_SLICE, "write_file": _TAKES_SLICE, "append_file": _TAKES_SLICE, "mkdir": _TAKES_BOOL,
    "remove": _TAKES_BOOL, "stat": _function(POINTER(_Metadata)), "read_dir": _GIVES_SLICE,
    "exists": _function(POINTER(c_bool)), "rename": _TAKES_SLICE, "copy": _TAKES_SLICE, "symlink": _TAKES_SLICE,
    "read_link": _GIVES_SLICE, "chmod": _function(c_uint32), "free_bytes": _FREE, "free_dir_entries": _FREE,
}  # fmt: skip


class _Table(Structure):
    _fields_ = tuple(_FUNCTIONS.items())


class _Handle(Structure):
    _fields_ = (
        ("version", c_uint32), ("reserved", c_uint32), ("instance", c_void_p), ("retain", _COUNT),
        ("release", _COUNT), ("table", POINTER(_Table)),
    )  # fmt: skip


class Capsule:
    """Lets bashkit read `files` through a Python capsule, `value`. The object must outlive each use of the capsule."""

    def __init__(self, files: TextFiles) -> None:
        self.files = files
        self.failure = ""  # the last error other than those of a file, which commands may report as a missing file
        self._lent: dict[int, Any] = {}  # memory that bashkit reads and then gives back, by address
        own: dict[str, Callable[[str, Any], None]] = {
            "read_file": lambda path, result: self._lend_bytes(result[0], self.files.read(path)),
            "stat": lambda path, result: _describe(result[0], self.files.stat(path)), "read_dir": self._list,
        }  # fmt: skip  # bashkit calls `stat` instead of `exists`
        functions = {name: kind(self._table_function(own.get(name, _refuse))) for name, kind in _FUNCTIONS.items()}
        functions |= dict.fromkeys(("free_bytes", "free_dir_entries"), _FREE(self._free))
        self._table = _Table(**functions)
        count_nothing = _COUNT(lambda instance: None)  # this object, not a count of references, keeps the files alive
        self._handle = _Handle(1, 0, 1, count_nothing, count_nothing, ctypes.pointer(self._table))
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (c_void_p, ctypes.c_char_p, c_void_p)
        self.value: Any = make(ctypes.addressof(self._handle), b"bashkit.FileSystem.v1", None)

    def _table_function(self, work: Callable[[str, Any], None]) -> Callable[..., int]:
        """Make a function of the table. An exception, which cannot pass through C, becomes the error of the call."""

        def answer(_: int, path: _Slice, result: Any, error: Any) -> int:
            try:
                work(ctypes.string_at(path.pointer, path.length).decode(), result)
            except Exception as failure:
                number = getattr(failure, "errno", None)
                if number not in _ERROR_KINDS:
                    self.failure = str(failure)
                error[0].kind = _ERROR_KINDS.get(number or 0, 0)
                message = getattr(failure, "strerror", None) or str(failure)
                self._lend_bytes(error[0].message, message.encode(errors="replace"))
                return 1
            return 0

        return answer

    def _list(self, path: str, result: Any) -> None:
        records = self.files.entries(path)
        names = [ctypes.create_string_buffer(name.encode()) for name in records]
        entries = (_Entry * len(names))()
        for entry, name, record in zip(entries, names, records.values(), strict=True):
            entry.name.pointer, entry.name.length = ctypes.addressof(name), len(name) - 1  # without the NUL
            _describe(entry.metadata, record)
        self._lend(result[0], entries, len(names), names)

    def _lend_bytes(self, result: Any, data: bytes) -> None:
        self._lend(result, ctypes.create_string_buffer(data, max(1, len(data))), len(data))

    def _lend(self, result: Any, memory: Any, length: int, behind: object = None) -> None:
        """Point a slice at memory, which stays until bashkit frees it. `behind`: what the memory itself points to."""
        result.pointer, result.length = ctypes.addressof(memory), length
        self._lent[result.pointer] = memory, behind

    def _free(self, _: int, memory: _Slice) -> None:
        self._lent.pop(memory.pointer, None)


def _refuse(path: str, _: Any) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


def _describe(result: Any, record: Document | None) -> None:
    if record is None:
        result.file_type, result.mode, result.size = _DIRECTORY, 0o755, DISK_BLOCK_BYTES
    else:
        result.file_type, result.mode, result.size = _FILE, 0o644, record.bytes
