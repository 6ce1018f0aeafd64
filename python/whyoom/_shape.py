"""_shape.py - turns the parts of a JSON report into dataclasses. Owns the rule for what is unknown
to them: members that a later version adds stay in `raw`; members that are absent are None, or
empty."""

import dataclasses
import functools
import types
import typing


def known_as(key, **options):
    """A field whose member has a name that Python reserves."""
    return dataclasses.field(metadata={"key": key}, **options)


def shape(cls):
    """A frozen dataclass with `raw`, the part of the report that it was made of."""
    cls.__annotations__ = dict(cls.__annotations__, raw=dict)
    cls.raw = dataclasses.field(default_factory=dict, repr=False, compare=False)
    return dataclasses.dataclass(frozen=True)(cls)


@functools.cache
def _fields(cls):
    """(name, key, type) of each field but raw."""
    hints = typing.get_type_hints(cls)
    return [(f.name, f.metadata.get("key", f.name), hints[f.name])
            for f in dataclasses.fields(cls) if f.name != "raw"]


def _convert(kind, value):
    if typing.get_origin(kind) is types.UnionType:
        if value is None:
            return None
        kind, = (k for k in typing.get_args(kind) if k is not type(None))
    if typing.get_origin(kind) is tuple:
        return tuple(_convert(typing.get_args(kind)[0], item) for item in value or ())
    if dataclasses.is_dataclass(kind):
        return read(kind, value)
    return value


def read(cls, data):
    """An instance of the dataclass from a JSON object."""
    values = {name: _convert(kind, data.get(key)) for name, key, kind in _fields(cls)}
    return cls(**values, raw=data)
