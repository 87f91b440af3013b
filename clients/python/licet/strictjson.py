"""JSON as documents have it. Parsers of different languages read some texts differently: this one refuses them."""

import json
import re
from typing import Any

_MAX_DEPTH = 8  # of values below the object
_NAME = re.compile(r"[a-z0-9._-]*")
_MAX_INTEGER = 2**53 - 1  # the largest that every language reads exactly


def parse_object(text: bytes) -> dict[str, Any]:
    """Parses one object in UTF-8.

    Raises ValueError at a member that is there twice, at a name with other characters than a-z 0-9 . _ -, at values
    that lie too deep, at half of a surrogate pair, and at data after the object. A number that is no integer, or not
    exact, is NaN: no member of the format may be one.
    """
    try:
        value = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_members,
            parse_int=_integer,
            parse_float=lambda _: float("nan"),
            parse_constant=_constant,
        )
    except RecursionError:
        raise ValueError("values that lie too deep") from None
    if not isinstance(value, dict):
        raise ValueError("no object")
    _check_depth(value, 0)
    json.dumps(value, ensure_ascii=False).encode()  # raises at half of a surrogate pair
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member that is there twice")
    if not all(_NAME.fullmatch(name) for name in members):
        raise ValueError("a name that the format does not allow")
    return members


def _integer(digits: str) -> int | float:
    # int() takes long for many digits, and fails for very many.
    value = int(digits) if len(digits) <= 17 else _MAX_INTEGER + 1
    return value if abs(value) <= _MAX_INTEGER else float("nan")


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _check_depth(value: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ValueError("a value that lies too deep")
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            _check_depth(each, depth + 1)
