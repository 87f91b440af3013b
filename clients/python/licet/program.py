"""The license of a program on a device."""

import contextlib
import dataclasses
import json
import re
import secrets
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from .documents import Receipt, Refused, Seen, decode, parse_root
from .service import ServiceError, get, parse_address, post
from .strictjson import parse_object
from .verify import Documents, Expected, Verified, verify

_LONG_INCREMENT = 256 << 10  # above this length, the whole list replaces an increment: the next one is at least as long


class Store(Protocol):
    """Keeps one text between two starts of the program. The text contains the license key."""

    def load(self) -> str | None:
        """Returns the text that was saved last, None if there is none."""

    def save(self, text: str) -> None: ...


@dataclass(frozen=True)
class Check:
    """Whether the program may run."""

    allowed: bool
    receipt: Receipt | None  # what allows it
    reason: str | None  # why not: the reason of a Refused or of a ServiceError, or not_activated
    online: bool  # whether the service has sent what was due, or said no; False: what is stored has decided


@dataclass
class _State:
    license_key: str = ""
    documents: Documents = field(default_factory=Documents)
    seen: Seen = field(default_factory=Seen)
    lists: dict[str, Any] = field(default_factory=lambda: {"etag": "", "until": 0})  # until when its max-age lasts
    account_id: str = ""  # empty in a state that an earlier version has stored
    mode: str = ""

    def belong_to(self, account_id: str, mode: str) -> None:
        """Forgets lists, and what the device has seen, if they are of another account or mode.

        Such a program was switched, as from test to live: positions and times of the two are not comparable.
        """
        if self.account_id and (self.account_id, self.mode) != (account_id, mode):
            self.documents.revocations, self.lists, self.seen = [], _State().lists, Seen()
        self.account_id, self.mode = account_id, mode


class _NotValid(ServiceError):
    """The answer that a license is not valid."""


class Program:
    """The license of a program on a device. Safe for use by several threads.

    url is that of the service, and root the public half of the account's root key in this mode (licet_root_…).
    device_id has 1 to 255 characters that stay the same on this device. grace is for how many seconds a receipt counts
    longer without a newer list of revocations. receipt_seconds and lease_seconds are the validity of receipts and
    leases to ask for; None: the product's. retry_for is for how many seconds a request that failed is sent again.
    """

    def __init__(
        self, *, url: str, root: str, account_id: str, mode: str, product_id: str, device_id: str, store: Store,
        grace: int = 0, receipt_seconds: int | None = None, lease_seconds: int | None = None, retry_for: float = 30,
        now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._expected = Expected(parse_root(root), account_id, mode, product_id, device_id, grace)
        self._url = parse_address(url) + "/v1"
        self._device = {"account_id": account_id, "mode": mode, "device_id": device_id}
        self._asked = {"product_id": product_id, "receipt_seconds": receipt_seconds, "lease_seconds": lease_seconds}
        self._store, self._patience, self._clock = store, retry_for, now
        self._lock = threading.Lock()

    def activate(self, license_key: str | None = None, *, device_name: str | None = None) -> Receipt:
        """Binds this device to a license; without a key, to the license that is stored. Raises if that fails."""
        with self._turn() as state:
            body = {"license_key": _required(license_key or state.license_key), "device_name": device_name}
            return self._obtain(state, "licenses/activate", body, self._patience)

    def trial(self, *, buyer_email: str | None = None) -> Receipt:
        """Starts a trial of the product on this device, or goes on with a trial that this device has started.

        Activates the trial again if this device has given it back. Raises if that fails, such as with license_expired
        after its end.
        """
        with self._turn() as state:
            return self._obtain(state, "trials", {"buyer_email": buyer_email}, self._patience)

    def validate(self) -> Receipt:
        """Asks the service now whether this device may use its license. Raises if not, and if no answer comes."""
        with self._turn() as state:
            return self._validate(state, self._patience)

    def deactivate(self) -> None:
        """Frees this device's slot of the license, and forgets the license. Raises if that fails."""
        with self._turn() as state:
            body = {"license_key": _required(state.license_key), **self._device}
            post(f"{self._url}/licenses/deactivate", body, self._patience)
            state.license_key = state.documents.receipt = ""

    def check(self) -> Check:
        """Reports whether the program may run.

        Uses the receipt that is stored, asks the service when a receipt, a list or a set of keys is due, and keeps to
        the offline rules where no answer comes. Raises only if the store does.
        """
        with self._turn() as state:
            verified, reason = self._verify_stored(state)
            online = False
            try:
                online = self._refresh(state, verified, reason)
                if online:
                    verified, reason = self._verify_stored(state)
            except (Refused, ServiceError) as error:
                online = _is_verdict(error)
                verified, reason = self._verify_stored(state)
                if isinstance(error, Refused) or not state.documents.receipt:
                    reason = error.reason
            receipt = verified.receipt if verified else None
            return Check(verified is not None, receipt, None if verified else reason, online)

    def _verify_stored(self, state: _State) -> tuple[Verified | None, str]:
        try:
            return self._verify(state.documents, state.seen), ""
        except Refused as refused:
            return None, refused.reason if state.documents.receipt else "not_activated"

    def _refresh(self, state: _State, verified: Verified | None, reason: str) -> bool:
        """Renews what is due. reason says why no stored receipt is valid. Reports whether the service was asked."""
        if not state.license_key and not state.documents.receipt:
            return False
        now = self._now()
        if verified is None:
            try:
                self._validate(state, self._patience)
            except (Refused, ServiceError) as error:
                if _is_verdict(error) or reason != "stale":
                    raise
                # A cache may have a newer list although the service has no good receipt, or can't be reached.
                self._update(state, lists=True)
            return True
        # A program that may run anyway does not wait long, and sends once.
        receipt, keys = verified.receipt, verified.keys
        age, known_for = receipt.revocation_max_age, now - verified.known
        # In its grace, the program runs only because no answer has come: one answer of two is enough to end that.
        in_grace = 0 < age <= known_for
        if now >= (receipt.iat + receipt.exp) / 2:
            try:
                self._validate(state, 0)
            except (Refused, ServiceError) as error:
                if _is_verdict(error) or not in_grace:
                    raise
                self._update(state, lists=True)
            return True
        # The service sends at most half of revocation_max_age as max-age: more is that of another server or time.
        is_fresh = now < state.lists["until"] <= now + age / 2
        list_is_due = in_grace or age > 0 and known_for >= age / 2 and not is_fresh
        keys_are_due = keys.exp < receipt.exp
        if not list_is_due and not keys_are_due:
            return False
        try:
            self._update(state, keys=keys_are_due, lists=list_is_due)
        except (Refused, ServiceError) as error:
            if isinstance(error, ServiceError) and not in_grace:
                raise
            self._validate(state, 0)  # a newer receipt may be good
        return True

    def _update(self, state: _State, *, keys: bool = False, lists: bool = False) -> None:
        """Gets documents, and keeps them if the stored receipt is good with them."""
        following = dataclasses.replace(state, documents=dataclasses.replace(state.documents))
        if keys:
            following.documents.keys = self._get_keys(0)
        if lists:
            self._get_lists(following, 0)
        self._accept(state, following, 0)

    def _validate(self, state: _State, retry_for: float) -> Receipt:
        try:
            body = {"license_key": _required(state.license_key)}
            return self._obtain(state, "licenses/validate", body, retry_for)
        except ServiceError as error:
            if _is_verdict(error):
                state.documents.receipt = ""  # the answer counts without a network, too
            raise

    def _obtain(self, state: _State, route: str, body: dict[str, Any], retry_for: float) -> Receipt:
        """Asks a route for a receipt, and accepts only a receipt that answers this request."""
        nonce = secrets.token_urlsafe(16)
        asked = {**body, **self._device, **self._asked, "receipt": True, "nonce": nonce}
        data = post(f"{self._url}/{route}", asked, retry_for)
        if data.get("valid") is False:
            raise _NotValid("the license is not valid", 200, reason=str(data.get("reason")))
        if not isinstance(data.get("receipt"), str):
            key = data.get("license_key")
            other = state.license_key != key if state.license_key else bool(state.documents.receipt)
            if "license_key" not in body and isinstance(key, str) and key and not other:
                # A trial that this device lacks, or that is not usable: an activation takes it, or says why not.
                state.license_key = key
                return self._obtain(state, "licenses/activate", {"license_key": key}, retry_for)
            raise ServiceError("the service issues no receipts", 200, reason="no_receipt")
        documents = dataclasses.replace(state.documents, receipt=data["receipt"])
        following = dataclasses.replace(state, documents=documents)
        receipt = self._accept(state, following, retry_for, nonce).receipt
        state.license_key = str(body.get("license_key") or data.get("license_key") or "")
        return receipt

    def _accept(self, state: _State, following: _State, retry_for: float, nonce: str = "") -> Verified:
        """Verifies the documents of a following state, and keeps them and their lists in the state.

        Gets a set of keys and a whole list where these are what is refused.
        """
        got: set[str] = set()
        while True:
            try:
                verified = self._verify(following.documents, state.seen, nonce)
                state.documents, state.lists, state.seen = following.documents, following.lists, verified.seen
                return verified
            except Refused as refused:
                if "keys" not in got and (refused.document == "keys" or refused.reason == "key"):
                    got.add("keys")
                    following.documents.keys = self._get_keys(retry_for)
                elif "lists" not in got and refused.document == "revocations":
                    got.add("lists")
                    self._get_lists(following, retry_for, True)
                else:
                    # Newer keys and lists may rule out the stored receipt, too: keep them, so that this holds offline.
                    if refused.document == "receipt" or refused.seen:
                        following.documents.receipt = state.documents.receipt
                        state.documents, state.lists = following.documents, following.lists
                    state.seen = refused.seen or state.seen
                    raise

    def _address(self, document: str) -> str:
        account, mode = (urllib.parse.quote(self._device[name], safe="") for name in ("account_id", "mode"))
        return f"{self._url}/accounts/{account}/{mode}/{document}"

    def _get_keys(self, retry_for: float) -> str:
        answer = get(self._address("jwks.json"), "", 256 << 10, retry_for)
        try:
            return str(json.loads(answer.text)["signed"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Refused("malformed", "keys", "the answer is no JSON") from None

    def _get_lists(self, state: _State, retry_for: float, anew: bool = False) -> None:
        """Gets the increment since the whole list of a state, or a whole list, and puts it into the state."""
        texts = state.documents.revocations
        stored = [] if anew or len(texts) > 1 and len(texts[1]) > _LONG_INCREMENT else texts
        after = _peek(stored[0]).get("epoch") if stored else 0
        query = f"?after={after}" if after else ""
        etag = state.lists["etag"] if stored else ""
        answer = get(self._address("revocations") + query, etag, 16 << 20, retry_for)
        found = re.search(r"\bmax-age=([0-9]{1,9})", answer.headers.get("Cache-Control", ""))
        fresh = answer.headers.get("ETag", "") if answer.status != 304 else etag
        state.lists = {"etag": fresh, "until": self._now() + int(found[1] if found else 0)}
        if answer.status == 304:
            state.documents.revocations = stored
            return
        begins = _peek(answer.text).get("after")
        is_increment = bool(after) and isinstance(begins, int) and 0 < begins <= after
        state.documents.revocations = [stored[0], answer.text] if is_increment else [answer.text]

    def _verify(self, documents: Documents, seen: Seen, nonce: str = "") -> Verified:
        return verify(dataclasses.replace(self._expected, nonce=nonce), documents, seen, self._now())

    def _now(self) -> int:
        return int(self._clock())

    @contextlib.contextmanager
    def _turn(self) -> Iterator[_State]:
        """Runs one call after the other, each with the state that is stored, and stores what a call has changed."""
        with self._lock:
            text = self._store.load()
            state = _parse_state(text or "")
            state.belong_to(self._expected.account_id, self._expected.mode)
            try:
                yield state
            finally:
                changed = json.dumps(dataclasses.asdict(state), separators=(",", ":"))
                if changed != text:
                    self._store.save(changed)


def _required(license_key: str) -> str:
    """Returns a license key, unless it is empty."""
    if not license_key:
        raise ServiceError("there is no license on this device", reason="not_activated")
    return license_key


def _is_verdict(error: Exception) -> bool:
    """Reports whether the service has answered that this device may not use the license."""
    return isinstance(error, _NotValid) or isinstance(error, ServiceError) and error.code in (40001, 40401)


def _peek(document: str) -> dict[str, Any]:
    """Returns the content of a list, unverified: only to know which list it is."""
    try:
        return parse_object(decode(document.split(".")[1]) or b"")
    except (ValueError, IndexError):
        return {}


def _parse_state(text: str) -> _State:
    """Returns the state of a text. A text that is none counts as no state: the program is not activated."""
    try:
        value = json.loads(text)
        documents, seen = _known(Documents, value["documents"]), _known(Seen, value["seen"])
        owner = value.get("account_id", ""), value.get("mode", "")
        state = _State(value["license_key"], documents, seen, value["lists"], *owner)
    except (ValueError, KeyError, TypeError, RecursionError):
        return _State()
    texts, licenses = state.documents.revocations, state.seen.earlier  # an earlier version stored no earlier, no as_of
    right = (
        _is_like(dataclasses.asdict(state), dataclasses.asdict(_State()))
        and all(isinstance(each, str) for each in texts)
        and all(_is_like(each, {"license_id": "", "revision": 0}) for each in licenses)
    )
    return state if right else _State()


def _known(kind: Any, members: dict[str, Any]) -> Any:
    """Returns an object of the members that its class has: a later version may have stored further members."""
    if not isinstance(members, dict):
        raise TypeError
    return kind(**{each.name: members[each.name] for each in dataclasses.fields(kind) if each.name in members})


def _is_like(value: Any, model: Any) -> bool:
    """Reports whether a value has the members of a model, with the same types. The items of lists do not matter."""
    if type(value) is not type(model):
        return False
    return not isinstance(model, dict) or all(_is_like(value.get(name), model[name]) for name in model)
