"""Define `dataclass`, `field`, `replace` and `NamedTuple`, which create classes faster than the standard ones.

The standard library's `dataclass` compiles up to six functions for each class (docs/decisions/022-records.md). This one
compiles only `__init__`, when the first instance of a class is created. It supports slots (always), one base, `frozen`,
`eq`, `KW_ONLY`, defaults and factories. `copy`, `pickle`, and `fields`, `asdict` and `is_dataclass` of `dataclasses`
treat its classes as dataclasses. `NamedTuple` does not compile annotations, for which `typing.NamedTuple` takes 2 ms in
seven classes. Type checkers see the names of the standard library; at run time the end of this file binds them.
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
    """A field of a record class: its default or factory, and the methods that use it. Public as `field`."""

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
    """A decorator that makes a record class. Public as `dataclass`, with parameters as in `dataclasses`."""
    assert slots, "these classes always have slots"
    return lambda cls: _with_slots(cls, frozen, eq)


def _replace(record: Any, /, **changes: Any) -> Any:
    """A copy of `record` with other values for some fields. Public as `replace`."""
    names = _fields_of(record.__class__)
    if not names:
        raise TypeError(f"replace() takes an instance of a record class, not {record!r}")
    return record.__class__(**{name: getattr(record, name) for name in names} | changes)


class _LazyAttribute:
    """The attribute `__dataclass_fields__` or `__dataclass_params__` of a record class, which Dask reads. The first
    read creates a standard dataclass with the same fields, and takes the value from that class."""

    def __init__(self, name: str, fields: dict[str, _Field], **parameters: bool) -> None:
        self.name = name
        self.fields = fields
        self._parameters = parameters
        self._value: Any = None

    def __get__(self, record: object, cls: type) -> Any:
        if self._value is None:
            self._value = getattr(self._standard_class(cls), self.name)
        return self._value

    def _standard_class(self, cls: type) -> Any:
        """A dataclass of the standard library with the same fields."""
        import dataclasses

        annotations = {name: field.annotation for name, field in self.fields.items()}
        result: Any = type(cls.__name__, (), {"__annotations__": annotations, "__module__": cls.__module__})
        for name, item in self.fields.items():
            options: dict[str, Any] = {"compare": item.compare, "repr": item.repr, "kw_only": item.kw_only}
            if item.factory is not None:
                options["default_factory"] = item.factory
            elif item.default is not _MISSING:
                options["default"] = item.default
            setattr(result, name, dataclasses.field(**options))
        return dataclasses.dataclass(result, **self._parameters)


def _fields_of(cls: type) -> dict[str, _Field]:
    """The fields of a class, or of its nearest base that is a record class; empty if there is none."""
    for base in cls.__mro__:
        if "__dataclass_fields__" in vars(base):
            attribute = vars(base)["__dataclass_fields__"]
            return attribute.fields if isinstance(attribute, _LazyAttribute) else {}
    return {}


def _with_slots(written: type, frozen: bool, eq: bool) -> type:
    """A class like `written`, with its annotated names as slots and with the methods of a dataclass."""
    body = {name: value for name, value in vars(written).items() if name not in ("__dict__", "__weakref__")}
    own_fields = _take_fields(written.__qualname__, body)
    fields = _fields_of(written.__bases__[0]) | own_fields
    attributes = {
        "__dataclass_fields__": _LazyAttribute("__dataclass_fields__", fields),
        "__dataclass_params__": _LazyAttribute("__dataclass_params__", fields, frozen=frozen, eq=eq, slots=True),
        "__match_args__": tuple(name for name, field in fields.items() if not field.kw_only),
        "__qualname__": written.__qualname__,
        "__slots__": tuple(own_fields),
    }
    cls = type(written)(written.__name__, written.__bases__, _methods(fields, frozen, eq) | body | attributes)
    cls.__init__ = _LazyInitializer(cls, fields, frozen)  # type: ignore[misc]
    return cls


def _take_fields(class_name: str, body: dict[str, Any]) -> dict[str, _Field]:
    """The fields that the body of a class annotates. Removes their defaults from the body, since slots need these
    names."""
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
    """The `__init__` of a record class until its first use, which replaces it by a compiled function: half of the
    classes of a first slice never have an instance. If two threads compile it, their functions are the same."""

    def __init__(self, cls: type, fields: dict[str, _Field], frozen: bool) -> None:
        self._cls, self._fields, self._frozen = cls, fields, frozen

    def __get__(self, record: object, cls: type) -> Any:
        compiled = self._cls.__init__ = _compile_init(self._cls, self._fields, self._frozen)  # type: ignore[misc]
        return compiled.__get__(record, cls)


def _compile_init(cls: type, fields: dict[str, _Field], frozen: bool) -> Any:
    """The `__init__` of a record class, compiled from source such as this, which is that of a frozen class:

    def __init__(self, x, y=_default_y, *, names=_MISSING):
        _set_x(self, x)
        _set_y(self, y)
        _set_names(self, _make_names() if names is _MISSING else names)
    """
    scope: dict[str, Any] = {"_MISSING": _MISSING}
    positional, keyword_only = ["self"], list[str]()
    body = []
    for name, item in fields.items():
        parameter = value = name
        if item.factory is not None:
            scope[f"_make_{name}"] = item.factory
            parameter, value = f"{name}=_MISSING", f"_make_{name}() if {name} is _MISSING else {name}"
        elif item.default is not _MISSING:
            scope[f"_default_{name}"] = item.default
            parameter = f"{name}=_default_{name}"
        (keyword_only if item.kw_only else positional).append(parameter)
        if frozen:
            scope[f"_set_{name}"] = getattr(cls, name).__set__
            body.append(f" _set_{name}(self, {value})")
        else:
            body.append(f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ", ".join([*positional, "*", *keyword_only] if keyword_only else positional)
    exec(f"def __init__({parameters}):\n" + "\n".join(body), scope)  # as `dataclasses` does
    compiled = scope["__init__"]
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    compiled.__module__ = cls.__module__
    compiled.__annotations__ = {name: field.annotation for name, field in fields.items()} | {"return": "None"}
    return compiled


def _methods(fields: dict[str, _Field], frozen: bool, eq: bool) -> dict[str, Any]:
    """The methods of a record class other than `__init__`, by name."""
    compared_values = attrgetter(*(name for name, field in fields.items() if field.compare))
    repr_names = [name for name, field in fields.items() if field.repr]

    def __repr__(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in repr_names)})"

    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared_values(self) == compared_values(other)

    def __hash__(self: Any) -> int:
        return hash(compared_values(self))

    methods: dict[str, Any] = {"__repr__": __repr__}
    if eq:
        methods |= {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse_change, "__delattr__": _refuse_change}
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    return methods


def _refuse_change(self: Any, name: str, *value: object) -> None:
    """The `__setattr__` and `__delattr__` of a frozen record, with the messages of a dataclass."""
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def _state(self: Any) -> list[Any]:
    """The state for `pickle`, in the form of a standard dataclass: earlier versions wrote it, and can read it."""
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
        result: type = make(name, annotations, defaults=defaults, module=written["__module__"])
        for attribute, value in written.items():
            if attribute not in annotations:
                setattr(result, attribute, value)
        return result


if not TYPE_CHECKING:
    KW_ONLY = None
    dataclass, field, replace = _dataclass, _Field, _replace
    NamedTuple = type.__new__(_NamedTupleType, "NamedTuple", (), {})
