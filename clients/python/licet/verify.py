"""The checks of a receipt on a device."""

from dataclasses import dataclass, field, replace

from .documents import KeySet, Receipt, Refused, Revocations, Seen, open_key_set, open_receipt, open_revocations

_LEEWAY = 300  # how far a device's clock may be behind the service's, in seconds
_MAX_EARLIER = 15  # how many licenses the device remembers besides the last one


@dataclass(frozen=True)
class Expected:
    """What a program expects of its documents.

    root is the bytes of the root key; grace is in seconds; nonce is of the request that the receipt must answer, or
    empty.
    """

    root: bytes
    account_id: str
    mode: str
    product_id: str
    device_id: str
    grace: int
    nonce: str = ""


@dataclass
class Documents:
    """What a device has, each as the service sent it: revocations are a whole list and the increments after it."""

    keys: str = ""
    receipt: str = ""
    revocations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Verified:
    receipt: Receipt
    keys: KeySet
    known: int  # the time of the service until which the device knows what was revoked
    seen: Seen


def verify(want: Expected, documents: Documents, seen: Seen, now: int) -> Verified:
    """Checks the set of keys, the receipt, the clock and the lists. Raises Refused with the first reason."""
    soon = now + _LEEWAY
    shown: Seen | None = None  # by documents that pass all checks but the last two

    def require(holds: bool, reason: str, document: str, detail: str) -> None:
        if not holds:
            raise Refused(reason, document, detail, shown)

    def is_ours(document: KeySet | Receipt | Revocations) -> bool:
        return document.account_id == want.account_id and document.mode == want.mode

    keys = open_key_set(documents.keys, want.root)
    require(is_ours(keys), "audience", "keys", "of another account or mode")
    require(keys.iat >= seen.keys, "older", "keys", "the device has seen a newer set")
    require(keys.iat <= soon, "not_yet_valid", "keys", "from the future")
    require(keys.exp > now, "expired", "keys", "the set has ended")

    receipt = open_receipt(documents.receipt, keys)
    ours = is_ours(receipt) and receipt.aud == want.product_id
    require(ours, "audience", "receipt", "of another account, mode or product")
    require(receipt.device_id == want.device_id, "device", "receipt", "of another device")
    require(want.nonce in ("", receipt.nonce), "nonce", "receipt", "answers another request")
    require(receipt.nbf <= soon and receipt.iat <= soon, "not_yet_valid", "receipt", "from the future")
    require(receipt.exp > now, "expired", "receipt", "the receipt has ended")
    licenses = [{"license_id": seen.license_id, "revision": seen.revision}, *seen.earlier]
    is_newest = all(each["license_id"] != receipt.sub or receipt.revision >= each["revision"] for each in licenses)
    require(is_newest, "older", "receipt", "the device has seen a newer one")
    require(seen.time <= soon, "clock_set_back", "receipt", "the device has seen a later time of the service")

    lists: list[Revocations] = []
    epoch = as_of = 0
    for document in documents.revocations:
        each = open_revocations(document, keys)
        require(is_ours(each), "audience", "revocations", "of another account or mode")
        require(each.as_of <= soon, "not_yet_valid", "revocations", "from the future")
        continues = each.after <= epoch <= each.epoch and each.as_of >= as_of
        require(continues, "older", "revocations", "does not continue the list before")
        lists.append(each)
        epoch, as_of = each.epoch, each.as_of
    is_latest = epoch >= seen.epoch and as_of >= seen.as_of
    require(is_latest, "older", "revocations", "the device has seen a newer list")
    known = max(receipt.iat, as_of)
    shown = replace(seen, time=max(seen.time, keys.iat, known), keys=keys.iat, epoch=epoch, as_of=as_of)
    is_off = receipt.status in ("revoked", "suspended")
    require(not is_off, "voided", "receipt", "the license is revoked or suspended")
    for each in lists:
        for ids in ((receipt.sub,), (receipt.sub, receipt.device_id)):
            require(not each.voids(receipt.revision, *ids), "voided", "receipt", "the service has revoked the receipt")
    fresh = receipt.revocation_max_age == 0 or now - known < receipt.revocation_max_age + want.grace
    require(fresh, "stale", "revocations", f"the newest list is {now - known} seconds old")
    earlier = [each for each in licenses if each["license_id"] not in ("", receipt.sub)][:_MAX_EARLIER]
    shown = replace(shown, license_id=receipt.sub, revision=receipt.revision, earlier=earlier)
    return Verified(receipt, keys, known, shown)
