"""The signed documents: the set of receipt keys, receipts, and lists of revocations.

docs/reference/receipts.md of Licet has the format.
"""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .strictjson import parse_object

_LIMITS = {"keys": 64 << 10, "receipt": 64 << 10, "revocations": 16 << 20}
_TYPES = {"keys": "licet-keys+jwt", "receipt": "licet-receipt+jwt", "revocations": "licet-revocations+jwt"}
_BASE64 = re.compile(r"[A-Za-z0-9_-]*")
_NAME_SIZE = 16
_ENTRY_SIZE = 24


@dataclass
class Seen:
    """The newest that the device has seen in genuine documents.

    license_id and revision are of the license seen last. earlier are the licenses seen before: at most 15 mappings with
    license_id and revision, the latest first.
    """

    time: int = 0
    keys: int = 0
    license_id: str = ""
    revision: int = 0
    epoch: int = 0
    as_of: int = 0  # of the newest list
    earlier: list[dict[str, Any]] = field(default_factory=list)


class Refused(Exception):
    """The refusal of a document.

    reason is a word of the format, such as "expired". document is "keys", "receipt" or "revocations". detail names what
    is wrong, never the content of the document. seen is what the device has seen with documents that are only voided
    or stale.
    """

    def __init__(self, reason: str, document: str, detail: str, seen: Seen | None = None) -> None:
        super().__init__(f"{document}: {reason}: {detail}")
        self.reason, self.document, self.detail, self.seen = reason, document, detail, seen


@dataclass(frozen=True)
class Receipt:
    """The content of a receipt. iat, nbf and exp are Unix seconds; other times are RFC 3339 in UTC."""

    iss: str
    sub: str  # the license
    aud: str  # the product
    iat: int
    nbf: int
    exp: int
    jti: str
    account_id: str
    mode: str
    device_id: str
    status: str
    max_devices: int  # 0: no limit
    entitlements: dict[str, bool | int | str]
    license_expires_at: str | None
    lease_expires_at: str | None
    grace_ends_at: str | None
    trial: bool
    revision: int
    revocation_max_age: int  # in seconds; 0: no list is needed
    nonce: str | None
    device_key: str | None


@dataclass(frozen=True)
class KeySet:
    account_id: str
    mode: str
    iat: int
    exp: int
    keys: list[dict[str, Any]]

    def key(self, kid: str) -> bytes | None:
        """Returns the receipt key of an id, None if the set does not have it."""
        for key in self.keys:
            if key["kid"] == kid:
                raw = decode(key["x"]) if key["kty"] == "OKP" and key["crv"] == "Ed25519" else None
                return raw if raw is not None and len(raw) == 32 and _key_id(raw) == kid else None
        return None


@dataclass(frozen=True)
class Revocations:
    account_id: str
    mode: str
    as_of: int
    epoch: int
    after: int
    entries: bytes

    def voids(self, revision: int, *ids: str) -> bool:
        """Reports whether the list voids a revision of a license, or of a device of the license."""
        name = sha256("\0".join(("licet revocation", *ids)).encode()).digest()[:_NAME_SIZE]
        for at in range(0, len(self.entries), _ENTRY_SIZE):
            if self.entries[at : at + _NAME_SIZE] == name:
                return int.from_bytes(self.entries[at + _NAME_SIZE : at + _ENTRY_SIZE], "big") >= revision
        return False


def decode(text: str) -> bytes | None:
    """Returns the bytes of base64url without padding, None if the text is something else."""
    if len(text) % 4 == 1 or not _BASE64.fullmatch(text):
        return None
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return raw if _encode(raw) == text else None  # unused bits are zero


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _key_id(key: bytes) -> str:
    """Returns the id of a key: its thumbprint, RFC 7638."""
    return _encode(sha256(f'{{"crv":"Ed25519","kty":"OKP","x":"{_encode(key)}"}}'.encode()).digest())


def parse_root(text: str) -> bytes:
    """Returns the public half of a root key from its text."""
    raw = decode(text.removeprefix("licet_root_")) if text.startswith("licet_root_") else None
    if raw is None or len(raw) != 32:
        raise ValueError("a root key is licet_root_ and 43 characters")
    return raw


def _open(text: str, kind: str, key_of: Callable[[str], bytes | None]) -> dict[str, Any]:
    """Verifies a document, in the order of docs/reference/receipts.md, and returns its content."""
    if len(text) > _LIMITS[kind]:
        raise Refused("malformed", kind, f"longer than {_LIMITS[kind]} characters")
    parts = text.split(".")
    decoded = [decode(part) for part in parts]
    if len(parts) != 3 or None in decoded:
        raise Refused("malformed", kind, "not three parts in base64url")
    head_text, content, signature = (part or b"" for part in decoded)
    head = _parse(head_text, kind)
    _check(head, kind, _HEADER)
    if "crit" in head:
        raise Refused("malformed", kind, "crit names extensions, and this format has none")
    if head["alg"] not in ("EdDSA", "Ed25519"):
        raise Refused("algorithm", kind, "alg is not EdDSA")
    if head["typ"] != _TYPES[kind]:
        raise Refused("type", kind, f"typ is not {_TYPES[kind]}")
    key = key_of(head["kid"])
    if key is None:
        raise Refused("key", kind, "kid is not a known key")
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, f"{parts[0]}.{parts[1]}".encode())
    except (InvalidSignature, ValueError):  # ValueError: bytes that are no key
        raise Refused("signature", kind, "the signature is wrong") from None
    return _parse(content, kind)


def _parse(text: bytes, kind: str) -> dict[str, Any]:
    try:
        return parse_object(text)
    except ValueError:
        raise Refused("malformed", kind, "not the JSON of the format") from None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_text_or_null(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0  # True is an int, too


def _is_positive(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_entitlements(value: Any) -> bool:
    return isinstance(value, dict) and all(
        each is True or isinstance(each, str) or type(each) is int for each in value.values()
    )


def _is_keys(value: Any) -> bool:
    return (
        isinstance(value, list)
        and 1 <= len(value) <= 16
        and all(isinstance(key, dict) for key in value)
        and all(_is_text(key.get(name)) for key in value for name in ("kty", "crv", "x", "kid"))
        and len({key["kid"] for key in value}) == len(value)
    )


_HEADER = {"alg": _is_text, "kid": _is_text, "typ": _is_text}
_DOCUMENT = {"iss": _is_text, "account_id": _is_name, "mode": _is_name}
_KEYS = _DOCUMENT | {"iat": _is_positive, "exp": _is_positive, "keys": _is_keys}
_RECEIPT = _DOCUMENT | {
    "sub": _is_name, "aud": _is_name, "iat": _is_positive, "nbf": _is_positive, "exp": _is_positive, "jti": _is_text,
    "device_id": _is_name, "status": _is_text, "max_devices": _is_count, "entitlements": _is_entitlements,
    "license_expires_at": _is_text_or_null, "lease_expires_at": _is_text_or_null, "grace_ends_at": _is_text_or_null,
    "trial": _is_boolean, "revision": _is_positive, "revocation_max_age": _is_count,
}  # fmt: skip
_REVOCATIONS = _DOCUMENT | {"as_of": _is_positive, "epoch": _is_count, "after": _is_count, "entries": _is_text}


def _check(content: dict[str, Any], kind: str, checks: Mapping[str, Callable[[Any], bool]]) -> None:
    for name, passes in checks.items():
        if name not in content or not passes(content[name]):
            raise Refused("malformed", kind, f"{name} is missing, of a wrong type or out of range")


def open_key_set(text: str, root: bytes) -> KeySet:
    """Verifies a set of receipt keys under the root key."""
    root_id = _key_id(root)
    content = _open(text, "keys", lambda kid: root if kid == root_id else None)
    _check(content, "keys", _KEYS)
    if content["exp"] <= content["iat"]:
        raise Refused("malformed", "keys", "exp is out of range")
    return KeySet(**{name: content[name] for name in KeySet.__dataclass_fields__})


def open_receipt(text: str, keys: KeySet) -> Receipt:
    """Verifies a receipt under the keys of a set."""
    content = _open(text, "receipt", keys.key)
    _check(content, "receipt", _RECEIPT)
    optional = [content.get(name, "") for name in ("nonce", "device_key")]
    if content["exp"] < content["nbf"] or not all(map(_is_text, optional)):
        raise Refused("malformed", "receipt", "a member is of a wrong type or out of range")
    content = {"nonce": None, "device_key": None, **content}
    return Receipt(**{name: content[name] for name in Receipt.__dataclass_fields__})


def open_revocations(text: str, keys: KeySet) -> Revocations:
    """Verifies a list of revocations under the keys of a set."""
    content = _open(text, "revocations", keys.key)
    _check(content, "revocations", _REVOCATIONS)
    entries = decode(content["entries"])
    if entries is None or not _in_order(entries) or content["after"] > content["epoch"]:
        raise Refused("malformed", "revocations", "entries or after are out of range")
    content["entries"] = entries
    return Revocations(**{name: content[name] for name in Revocations.__dataclass_fields__})


def _in_order(entries: bytes) -> bool:
    names = [entries[at : at + _NAME_SIZE] for at in range(0, len(entries), _ENTRY_SIZE)]
    return len(entries) % _ENTRY_SIZE == 0 and all(a < b for a, b in zip(names, names[1:]))
