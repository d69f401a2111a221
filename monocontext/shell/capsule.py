"""Give bashkit a file system that is written in Python.

`bashkit.FileSystem.from_capsule` takes a handle of version 1 of its C interface (`bashkit.FileSystem.v1`): a table of
functions with structures of a fixed layout. The names below are those of that interface. Files can only be read here.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, c_bool, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple, Protocol

_VERSION = 1
_CAPSULE = b"bashkit.FileSystem.v1"
_OK, _FAILED = 0, 1
_ERROR_KINDS = {
    errno.ENOENT: 1, errno.EEXIST: 2, errno.EACCES: 3, errno.EROFS: 3, errno.EINVAL: 4, errno.EISDIR: 5,
    errno.ENOTDIR: 6, errno.EFBIG: 0,
}  # fmt: skip
"""The kinds of errors of the interface; 0 for any other."""


class FileInfo(NamedTuple):
    """A file or a folder."""

    is_folder: bool
    size_bytes: int


class Files(Protocol):
    """The files of a file system. Paths begin with a slash; errors are `OSError` with an `errno`."""

    def stat(self, path: str) -> FileInfo: ...

    def list(self, path: str) -> Sequence[tuple[str, FileInfo]]:
        """The names and kinds of the entries of a folder."""
        ...

    def read(self, path: str) -> bytes: ...


class _Slice(Structure):
    """`BashkitFsAbiStrRef`, `BashkitFsAbiOwnedBytes` and `BashkitFsAbiOwnedDirEntries`, which have one layout."""

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
    """The type of a function of the table that fails with an error."""
    return CFUNCTYPE(c_uint32, c_void_p, _Slice, *arguments, POINTER(_Error))


_GIVES_SLICE, _TAKES_SLICE = _function(POINTER(_Slice)), _function(_Slice)
_GIVES_METADATA, _GIVES_BOOL = _function(POINTER(_Metadata)), _function(POINTER(c_bool))
_TAKES_BOOL, _TAKES_MODE = _function(c_bool), _function(c_uint32)
_FREE, _COUNT = CFUNCTYPE(None, c_void_p, _Slice), CFUNCTYPE(None, c_void_p)


class _Table(Structure):
    _fields_ = (
        ("read_file", _GIVES_SLICE), ("write_file", _TAKES_SLICE), ("append_file", _TAKES_SLICE),
        ("mkdir", _TAKES_BOOL), ("remove", _TAKES_BOOL), ("stat", _GIVES_METADATA), ("read_dir", _GIVES_SLICE),
        ("exists", _GIVES_BOOL), ("rename", _TAKES_SLICE), ("copy", _TAKES_SLICE), ("symlink", _TAKES_SLICE),
        ("read_link", _GIVES_SLICE), ("chmod", _TAKES_MODE), ("free_bytes", _FREE), ("free_dir_entries", _FREE),
    )  # fmt: skip


class _Handle(Structure):
    _fields_ = (
        ("version", c_uint32), ("reserved", c_uint32), ("instance", c_void_p), ("retain", _COUNT),
        ("release", _COUNT), ("table", POINTER(_Table)),
    )  # fmt: skip


class Capsule:
    """A capsule with the files of `files`, which may be replaced. It must live as long as what is made of it."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.failure = ""
        """The last error that is none of a file, such as that of a store. Commands may take it for a missing file."""
        self._lent: dict[int, Any] = {}
        """Memory that bashkit reads and then gives back, by address."""
        refuse = self._refuse
        self._table = _Table(
            _GIVES_SLICE(self._read), _TAKES_SLICE(refuse), _TAKES_SLICE(refuse), _TAKES_BOOL(refuse),
            _TAKES_BOOL(refuse), _GIVES_METADATA(self._stat), _GIVES_SLICE(self._list), _GIVES_BOOL(self._exists),
            _TAKES_SLICE(refuse), _TAKES_SLICE(refuse), _TAKES_SLICE(refuse), _GIVES_SLICE(refuse),
            _TAKES_MODE(refuse), _FREE(self._free), _FREE(self._free),
        )  # fmt: skip
        unused = _COUNT(lambda instance: None)
        self._handle = _Handle(_VERSION, 0, 1, unused, unused, ctypes.pointer(self._table))
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (c_void_p, ctypes.c_char_p, c_void_p)
        self.value: Any = make(ctypes.addressof(self._handle), _CAPSULE, None)

    # -- functions of the table ------------------------------------------------------------------------------------

    def _read(self, _: int, path: _Slice, result: Any, error: Any) -> int:
        return self._answer(error, lambda: self._lend(result[0], self.files.read(_text(path))))

    def _stat(self, _: int, path: _Slice, result: Any, error: Any) -> int:
        return self._answer(error, lambda: _describe(result[0], self.files.stat(_text(path))))

    def _list(self, _: int, path: _Slice, result: Any, error: Any) -> int:
        def lend_entries() -> None:
            found = self.files.list(_text(path))
            entries = (_Entry * len(found))()
            heap = ctypes.create_string_buffer(b"".join(name.encode() for name, _ in found))
            offset = ctypes.addressof(heap)
            for entry, (name, info) in zip(entries, found, strict=True):
                entry.name.pointer, entry.name.length = offset, len(name.encode())
                offset += entry.name.length
                _describe(entry.metadata, info)
            result[0].pointer, result[0].length = ctypes.addressof(entries), len(found)
            self._lent[ctypes.addressof(entries)] = entries, heap

        return self._answer(error, lend_entries)

    def _exists(self, _: int, path: _Slice, result: Any, error: Any) -> int:
        def find() -> None:
            try:
                self.files.stat(_text(path))
                result[0] = True
            except (FileNotFoundError, NotADirectoryError):
                result[0] = False

        return self._answer(error, find)

    def _refuse(self, _: int, path: _Slice, *arguments: Any) -> int:
        def refuse() -> None:
            raise OSError(errno.EROFS, "Read-only file system")

        return self._answer(arguments[-1], refuse)

    def _free(self, _: int, memory: _Slice) -> None:
        self._lent.pop(memory.pointer, None)

    def _answer(self, error: Any, work: Callable[[], None]) -> int:
        """Do the work; an exception, which cannot pass through C, becomes the error of the call."""
        try:
            work()
        except Exception as failure:
            number = failure.errno if isinstance(failure, OSError) else None
            if number not in _ERROR_KINDS:
                self.failure = str(failure)
            error[0].kind = _ERROR_KINDS.get(number or 0, 0)
            message = failure.strerror if isinstance(failure, OSError) else None
            self._lend(error[0].message, (message or str(failure)).encode(errors="replace"))
            return _FAILED
        return _OK

    def _lend(self, result: Any, data: bytes) -> None:
        buffer = ctypes.create_string_buffer(data, max(1, len(data)))
        result.pointer, result.length = ctypes.addressof(buffer), len(data)
        self._lent[ctypes.addressof(buffer)] = buffer


def _text(path: _Slice) -> str:
    return ctypes.string_at(path.pointer, path.length).decode()


def _describe(result: Any, info: FileInfo) -> None:
    result.file_type, result.size = int(info.is_folder), info.size_bytes
    result.mode = 0o755 if info.is_folder else 0o644
