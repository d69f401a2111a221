"""`dataclass`, `field`, `replace` and `NamedTuple` that define classes faster than those of the standard library.

The standard library's `dataclass` compiles up to six functions for each class (docs/decisions/022-records.md). This one
compiles only `__init__`, when a class makes its first record. It supports slots (always), one base, `frozen`, `eq`,
`KW_ONLY`, defaults and factories. To `copy`, `pickle`, and `fields`, `asdict` and `is_dataclass` of `dataclasses`, its
classes are dataclasses. `NamedTuple` does not compile annotations, which takes `typing.NamedTuple` 2 ms for seven
classes. Type checkers see the names of the standard library; at run time the end of this file binds them.
"""

from __future__ import annotations

from collections import namedtuple
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import KW_ONLY, dataclass, field, replace
    from typing import NamedTuple

__all__ = ["KW_ONLY", "NamedTuple", "dataclass", "field", "replace"]

_MISSING: Any = object()


class _Field:
    """A field of a record. Public as `field`."""

    __slots__ = ("annotation", "compare", "default", "factory", "kw_only", "repr")

    def __init__(
        self, default: Any = _MISSING, *, default_factory: Any = None, compare: bool = True, repr: bool = True
    ) -> None:
        self.default = default
        self.factory = default_factory
        self.compare = compare
        self.repr = repr
        self.annotation = ""
        self.kw_only = False


def _dataclass(*, frozen: bool = False, slots: bool = True, eq: bool = True) -> Callable[[type], type]:
    """The decorator of a record class."""
    assert slots, "these classes have slots"
    return lambda plain: _with_slots(plain, frozen, eq)


def _replace(record: Any, /, **changes: Any) -> Any:
    """A copy of `record` with other values for some fields."""
    names = _fields_of(record.__class__)
    if not names:
        raise TypeError(f"{record!r} is not a record")
    return record.__class__(**{name: getattr(record, name) for name in names} | changes)


class _LazyAttribute:
    """`__dataclass_fields__` or `__dataclass_params__` (which Dask reads) of a class, made at the first use."""

    def __init__(self, name: str, fields: dict[str, _Field], **parameters: bool) -> None:
        self.name = name
        self.fields = fields
        self._parameters = parameters
        self._made: Any = None

    def __get__(self, record: object, cls: type) -> Any:
        if self._made is None:
            self._made = getattr(self._twin(cls), self.name)
        return self._made

    def _twin(self, cls: type) -> Any:
        """A dataclass of the standard library with the same fields."""
        import dataclasses

        annotations = {name: field.annotation for name, field in self.fields.items()}
        twin: Any = type(cls.__name__, (), {"__annotations__": annotations, "__module__": cls.__module__})
        for name, item in self.fields.items():
            value: dict[str, Any] = {"compare": item.compare, "repr": item.repr, "kw_only": item.kw_only}
            if item.factory is not None:
                value["default_factory"] = item.factory
            elif item.default is not _MISSING:
                value["default"] = item.default
            setattr(twin, name, dataclasses.field(**value))
        return dataclasses.dataclass(twin, **self._parameters)


def _fields_of(cls: type) -> dict[str, _Field]:
    """The fields of a class, or of its nearest base that is a record; empty if there is none."""
    for item in cls.__mro__:
        if "__dataclass_fields__" in vars(item):
            result = vars(item)["__dataclass_fields__"]
            return result.fields if isinstance(result, _LazyAttribute) else {}
    return {}


def _with_slots(plain: type, frozen: bool, eq: bool) -> type:
    """A new class like `plain`, with the annotated names as slots and the methods of a dataclass."""
    body = {name: value for name, value in vars(plain).items() if name not in ("__dict__", "__weakref__")}
    own = _take_fields(plain.__qualname__, body)
    fields = _fields_of(plain.__bases__[0]) | own
    about = {
        "__dataclass_fields__": _LazyAttribute("__dataclass_fields__", fields),
        "__dataclass_params__": _LazyAttribute("__dataclass_params__", fields, frozen=frozen, eq=eq, slots=True),
        "__match_args__": tuple(name for name, field in fields.items() if not field.kw_only),
        "__qualname__": plain.__qualname__,
        "__slots__": tuple(own),
    }
    cls = type(plain)(plain.__name__, plain.__bases__, _methods(fields, frozen, eq) | body | about)
    cls.__init__ = _LazyInitializer(cls, fields, frozen)  # type: ignore[misc]
    return cls


def _take_fields(class_name: str, body: dict[str, Any]) -> dict[str, _Field]:
    """The fields that the body of a class annotates; their defaults are taken out of it, where slots will be."""
    fields: dict[str, _Field] = {}
    kw_only = False
    for name, annotation in body["__annotations__"].items():
        if annotation == "KW_ONLY":
            kw_only = True
            continue
        if annotation.startswith(("ClassVar", "InitVar")):
            raise TypeError(f"{class_name}.{name}: {annotation} is not supported")
        default = body.pop(name, _MISSING)
        field = default if isinstance(default, _Field) else _Field(default)
        field.annotation, field.kw_only = annotation, kw_only
        fields[name] = field
    return fields


class _LazyInitializer:
    """The `__init__` of a record class until its first use, which puts a compiled function in its place: half of the
    classes of a first slice never make a record. If two threads compile it, their functions are the same."""

    def __init__(self, cls: type, fields: dict[str, _Field], frozen: bool) -> None:
        self._cls, self._fields, self._frozen = cls, fields, frozen

    def __get__(self, record: object, cls: type) -> Any:
        created = self._cls.__init__ = _initializer(self._cls, self._fields, self._frozen)  # type: ignore[misc]
        return created.__get__(record, cls)


def _initializer(cls: type, fields: dict[str, _Field], frozen: bool) -> Any:
    """The `__init__` of a record, compiled from its source."""
    scope: dict[str, Any] = {"_MISSING": _MISSING}
    by_place, by_name = ["self"], list[str]()
    body = []
    for name, item in fields.items():
        parameter = value = name
        if item.factory is not None:
            scope[f"_make_{name}"] = item.factory
            parameter, value = f"{name}=_MISSING", f"_make_{name}() if {name} is _MISSING else {name}"
        elif item.default is not _MISSING:
            scope[f"_default_{name}"] = item.default
            parameter = f"{name}=_default_{name}"
        (by_name if item.kw_only else by_place).append(parameter)
        if frozen:
            scope[f"_set_{name}"] = getattr(cls, name).__set__
            body.append(f" _set_{name}(self, {value})")
        else:
            body.append(f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ", ".join([*by_place, "*", *by_name] if by_name else by_place)
    exec(f"def __init__({parameters}):\n" + "\n".join(body), scope)  # as `dataclasses` does
    created = scope["__init__"]
    created.__qualname__ = f"{cls.__qualname__}.__init__"
    created.__module__ = cls.__module__
    created.__annotations__ = {name: field.annotation for name, field in fields.items()} | {"return": "None"}
    return created


def _methods(fields: dict[str, _Field], frozen: bool, eq: bool) -> dict[str, Any]:
    """The other methods of a record, by name."""
    compared = attrgetter(*(name for name, field in fields.items() if field.compare))
    display = [name for name, field in fields.items() if field.repr]

    def __repr__(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in display)})"

    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared(self) == compared(other)

    def __hash__(self: Any) -> int:
        return hash(compared(self))

    methods: dict[str, Any] = {"__repr__": __repr__}
    if eq:
        methods |= {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    return methods


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    raise _frozen(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise _frozen(f"cannot delete field {name!r}")


def _frozen(message: str) -> AttributeError:
    from dataclasses import FrozenInstanceError

    return FrozenInstanceError(message)


def _state(self: Any) -> list[Any]:
    """The state for `pickle`, as in dataclasses, so that pickles of older versions load here and ours load there."""
    return [getattr(self, name) for name in _fields_of(self.__class__)]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(_fields_of(self.__class__), state, strict=True):
        object.__setattr__(self, name, value)


class _NamedTupleType(type):
    """The metaclass of `NamedTuple`, which makes each subclass a named tuple without compiling its annotations."""

    def __new__(cls, name: str, bases: tuple[type, ...], written: dict[str, Any]) -> type:
        annotations = written["__annotations__"]
        defaults = [written[field] for field in annotations if field in written]
        make: Any = namedtuple  # type checkers accept only literals
        created: type = make(name, annotations, defaults=defaults, module=written["__module__"])
        for item, value in written.items():
            if item not in annotations:
                setattr(created, item, value)
        return created


if not TYPE_CHECKING:
    KW_ONLY = None
    dataclass, field, replace = _dataclass, _Field, _replace
    NamedTuple = type.__new__(_NamedTupleType, "NamedTuple", (), {})
