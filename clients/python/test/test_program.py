"""A program against a service.

The environment names the service, as clients/testdata/check.bash sets it. order tells the stand-in before the service
what shall happen.
"""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import stat
import tempfile
import time
import unittest
import urllib.request
import uuid
from typing import Any

from licet import FileStore, Program, Receipt, Refused, ServiceError

_URL, _KEY = os.environ["LICET_URL"], os.environ["LICET_API_KEY"]
_HOUR, _DAY = 3600, 86400
_BUSY = json.dumps({"code": 42900, "message": "", "error": {"reason": "rate_limited", "retryable": True}})


def _send(method: str, path: str, body: Any) -> Any:
    headers = {"Authorization": f"Bearer {_KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(_URL + path, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def order(**orders: Any) -> list[str]:
    """Returns the requests since the last orders."""
    return [request.rsplit("/", 1)[1] for request in _send("POST", "/standin", orders) or []]


def gone(times: int = 50) -> list[str]:
    return order(fail=[{"status": 0}] * times)


def back() -> list[str]:
    return order(fail=[])


def grant(product_id: str = "sold", max_devices: int = 2, **more: Any) -> str:
    body = {"product_id": product_id, "quantity": 1, "max_devices": max_devices, **more}
    return _send("POST", "/v1/licenses", body)["data"]["licenses"][0]["license_key"]


class Memory:
    def __init__(self, text: str | None = None) -> None:
        self.text = text

    def load(self) -> str | None:
        return self.text

    def save(self, text: str) -> None:
        self.text = text


class ProgramTest(unittest.TestCase):
    def setUp(self) -> None:
        self.offset = 0
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.device = str(uuid.uuid4())
        normal = {"offset": 0, "validity": 7 * _DAY, "keys_validity": 90 * _DAY, "max_age": _DAY, "seal": 0}
        order(**normal, forge="", fail=[])
        self.addCleanup(order, **normal, forge="", fail=[])

    def travel(self, seconds: float) -> None:
        """Moves the clocks of the service and of the programs."""
        self.offset += int(seconds)
        order(offset=self.offset)

    def program(self, **more: Any) -> Program:
        options = {
            "url": _URL,
            "root": os.environ["LICET_ROOT"],
            "account_id": os.environ["LICET_ACCOUNT"],
            "mode": "test",
            "product_id": "sold",
            "device_id": self.device,
            "store": FileStore(self.folder / "new" / f"{uuid.uuid4()}.json"),
            "retry_for": 3,
            "now": lambda: time.time() + self.offset,
        }
        return Program(**options | more)

    def other(self, **more: Any) -> Program:
        return self.program(device_id=str(uuid.uuid4()), **more)

    def activated(self, **more: Any) -> tuple[Program, str]:
        program, key = self.program(**more), grant()
        program.activate(key)
        order()
        return program, key

    def expect(self, program: Program, allowed: bool, reason: str | None, online: bool) -> Receipt:
        check = program.check()
        self.assertEqual((check.allowed, check.reason, check.online), (allowed, reason, online))
        self.assertEqual(check.receipt is not None, allowed)
        return check.receipt  # type: ignore[return-value]

    def refused(self, call: Any, *args: Any, kind: type[Exception] = ServiceError, **members: Any) -> None:
        with self.assertRaises(kind) as caught:
            call(*args)
        for name, value in members.items():
            self.assertEqual(getattr(caught.exception, name), value, caught.exception)

    def test_without_a_license(self) -> None:
        self.expect(self.program(), False, "not_activated", False)

    def test_activates_and_then_runs_without_the_service(self) -> None:
        path = self.folder / "a" / "state.json"
        program = self.program(store=FileStore(path))
        receipt = program.activate(grant(entitlements={"seats": 5}), device_name="Laptop")
        self.assertEqual((receipt.aud, receipt.max_devices, receipt.entitlements["seats"]), ("sold", 2, 5))
        self.assertEqual(order()[-2:], ["activate", "jwks.json"])
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        gone()
        self.expect(self.program(store=FileStore(path)), True, None, False)
        self.assertEqual(order(), [])

    def test_counts_until_revocation_max_age_and_for_the_grace(self) -> None:
        store = Memory()
        program, _ = self.activated(store=store)
        gone()
        self.travel(_DAY - 60)
        self.expect(program, True, None, False)
        self.assertEqual(order(), ["revocations"])  # one try
        self.travel(120)
        self.expect(self.program(store=store, grace=_HOUR), True, None, False)
        self.expect(program, False, "stale", False)
        back()
        self.expect(program, True, None, True)

    def test_a_stale_receipt_is_good_with_a_list_from_a_cache(self) -> None:
        program, key = self.activated(retry_for=0)
        self.travel(_DAY + 60)
        order(fail=[{"status": 0}])
        self.expect(program, True, None, True)
        self.assertEqual(order(void=key), ["validate", "revocations"])
        self.travel(_DAY + 60)
        order(fail=[{"status": 0}])
        self.expect(program, False, "voided", False)
        gone()
        self.expect(program, False, "voided", False)

    def test_a_voided_receipt_ends_with_the_next_list(self) -> None:
        program, key = self.activated()
        self.expect(program, True, None, False)
        _send("POST", f"/v1/licenses/{key}/suspend", {})
        order(void=key)
        self.travel(_DAY / 2)
        self.expect(program, False, "license_suspended", True)
        self.assertEqual(gone(), ["revocations", "validate"])
        self.expect(program, False, "unreachable", False)
        back()
        _send("POST", f"/v1/licenses/{key}/reinstate", {})
        self.assertEqual(self.expect(program, True, None, True).revision, 2)

    def test_a_list_that_has_voided_the_receipt_can_not_be_put_back(self) -> None:
        store = Memory()
        program, key = self.activated(store=store)
        documents = json.loads(store.text or "")["documents"]
        order(void=key, fail=[{"status": 100}] + [{"status": 0}] * 50)
        self.travel(_DAY / 2)
        self.expect(program, False, "voided", False)
        now = json.loads(store.text or "")
        self.assertEqual(now["documents"]["receipt"], documents["receipt"])
        store.text = json.dumps(now | {"documents": documents})
        self.expect(program, False, "older", False)
        back()
        self.assertEqual(self.expect(program, True, None, True).revision, 2)

    def test_a_license_that_has_changed_gets_a_newer_receipt(self) -> None:
        program, key = self.activated()
        order(void=key, void_device=self.device)
        self.travel(_DAY / 2)
        self.assertEqual(self.expect(program, True, None, True).revision, 2)

    def test_asks_for_a_list_no_sooner_than_told_and_then_for_its_increment(self) -> None:
        store = Memory()
        program, _ = self.activated(store=store)
        self.travel(_DAY / 2 + 1)
        self.expect(program, True, None, True)
        self.expect(program, True, None, False)
        self.assertEqual(order(void="LIC-OTHER"), ["revocations"])
        self.travel(_DAY / 2 + 1)
        self.expect(program, True, None, True)
        state = json.loads(store.text or "")
        self.assertEqual(order(), [f"revocations?after={state['seen']['epoch'] - 1}"])
        self.assertEqual(len(state["documents"]["revocations"]), 2)

    def test_a_list_that_has_not_changed_makes_no_receipt_younger(self) -> None:
        store = Memory()
        program, _ = self.activated(store=store)
        order(seal=1)
        self.travel(_DAY / 2 + 1)
        self.expect(program, True, None, True)
        order()
        before = json.loads(store.text or "")
        self.travel(_DAY / 2 + 1)
        self.expect(program, True, None, True)  # 304
        now = json.loads(store.text or "")
        self.assertEqual(now["documents"], before["documents"])
        self.assertEqual(now["lists"]["etag"], before["lists"]["etag"])
        self.assertRegex(order()[0], r"^revocations\?after=")
        self.travel(_DAY / 2 + 1)
        self.expect(program, True, None, True)
        self.assertEqual(order(), ["validate"])

    def test_renews_the_receipt_at_half_of_its_life(self) -> None:
        program, _ = self.activated()
        self.travel(3.5 * _DAY)
        receipt = self.expect(program, True, None, True)
        self.assertLess(abs(receipt.iat - time.time() - self.offset), 60)
        self.assertEqual(order(), ["validate"])

    def test_follows_new_receipt_keys(self) -> None:
        program, _ = self.activated()
        order(rotate=True)
        order(rotate=True)
        self.travel(_DAY / 2)
        self.expect(program, True, None, True)  # the list needs the new set, which lacks the key of the receipt
        self.assertEqual(order(), ["revocations", "jwks.json", "validate"])
        order(keys_validity=3 * _DAY)
        self.travel(60 * _DAY)
        order(rotate=True)
        self.expect(program, True, None, True)

    def test_refuses_what_does_not_answer_this_device_and_request(self) -> None:
        for forge, reason in (("nonce", "nonce"), ("device", "device"), ("key", "key"), ("set", "key")):
            program, key = self.program(), grant()
            order(forge=forge)
            self.refused(program.activate, key, kind=Refused, reason=reason)
            order(forge="")
            self.expect(program, False, "not_activated", False)

    def test_a_forged_list_counts_for_nothing(self) -> None:
        store = Memory()
        program, _ = self.activated(store=store)
        self.travel(_DAY / 2)
        order(forge="list")
        self.expect(program, True, None, True)
        self.assertEqual(order(), ["revocations", "jwks.json", "revocations", "validate"])
        self.assertEqual(json.loads(store.text or "")["documents"]["revocations"], [])

    def test_refuses_documents_that_were_put_back(self) -> None:
        store = Memory()
        program, key = self.activated(store=store)
        before = json.loads(store.text or "")
        order(void=key)
        self.travel(4 * _DAY)
        self.expect(program, True, None, True)
        now = json.loads(store.text or "")
        old = {name: before["documents"][name] for name in ("receipt", "revocations")}
        store.text = json.dumps(now | {"documents": now["documents"] | old})
        gone()
        self.expect(program, False, "older", False)
        store.text = json.dumps(before | {"seen": before["seen"] | {"time": now["seen"]["time"]}})
        self.offset = 0
        self.expect(program, False, "clock_set_back", False)

    def test_an_older_receipt_of_an_earlier_license(self) -> None:
        store = Memory()
        program, key = self.activated(store=store)
        old = json.loads(store.text or "")["documents"]["receipt"]
        order(void=key)  # and raises the revision
        newest = program.validate()
        program.activate(grant())
        state = json.loads(store.text or "")
        self.assertEqual(state["seen"]["earlier"], [{"license_id": newest.sub, "revision": newest.revision}])
        gone()
        store.text = json.dumps(state | {"documents": state["documents"] | {"receipt": old}})
        self.expect(program, False, "older", False)
        del state["seen"]["earlier"]  # a text of a version that remembered one license
        store.text = json.dumps(state)
        self.expect(program, True, None, False)

    def test_a_trial_and_only_one(self) -> None:
        _send("PUT", "/v1/products/tried", {"trial": {"validity": "P14D", "per": "device"}})
        program = self.program(product_id="tried")
        receipt = program.trial(buyer_email="a@example.com")
        self.assertTrue(receipt.trial)
        self.expect(program, True, None, False)
        self.assertEqual(program.trial().sub, receipt.sub)
        self.refused(self.program().trial, code=40308, reason="trial_not_offered")

    def test_refusals_of_the_service(self) -> None:
        program, key = self.program(), grant(max_devices=1)
        program.activate(key)
        full = {"current_devices": 1, "max_devices": 1}
        self.refused(self.other().activate, key, code=40901, details=full)
        self.refused(self.program(product_id="other").activate, key, reason="product_mismatch")
        self.refused(self.program().activate, "LIC-1", reason="invalid_license_key", status=400)
        self.refused(program.deactivate, reason="self_service_not_allowed")
        self.expect(program, True, None, False)

    def test_frees_the_device(self) -> None:
        product = {"name": "Free", "max_devices": 1, "self_service_deactivation": True}
        _send("PUT", "/v1/products/free", product)
        program, key = self.program(product_id="free"), grant("free", 1)
        program.activate(key)
        program.deactivate()
        self.expect(program, False, "not_activated", False)
        self.refused(program.validate, reason="not_activated", status=0)
        self.refused(program.deactivate, reason="not_activated", status=0)
        self.other(product_id="free").activate(key)
        self.refused(program.activate, key, reason="device_limit_reached")

    def test_sends_again_what_may_succeed(self) -> None:
        program, _ = self.activated()
        limited = {"status": 429, "retry_after": "1", "body": _BUSY}
        order(fail=[{"status": 0}, {"status": 502, "body": "<html>"}, limited])
        started = time.monotonic()
        program.validate()
        self.assertGreaterEqual(time.monotonic() - started, 1)
        self.assertEqual(order(), ["validate"] * 4)
        order(fail=[{"status": 429, "retry_after": "60", "body": _BUSY}])
        self.refused(program.validate, reason="rate_limited", retry_after=60)
        gone(1000)
        self.refused(program.validate, reason="unreachable", status=0)
        self.assertGreater(len(back()), 2)

    def test_another_server_at_the_address_decides_nothing(self) -> None:
        program, _ = self.activated()
        for answer in (
            {"status": 200, "body": "<html>sign in"},
            {"status": 302, "location": f"{_URL}/v1/other"},
            {"status": 404, "body": "{}"},
            {"status": 200, "body": json.dumps({"code": 0, "data": {}})},
            {"status": 200, "body": "null"},
            {"status": 400, "body": json.dumps({"code": 40000, "error": [1]})},
            {"status": 200, "body": "A" * (2 << 20)},
        ):
            order(fail=[answer])
            with self.subTest(answer["status"], body=answer.get("body", "")[:20]):
                self.refused(program.validate)
            self.assertEqual(order(), ["validate"])
            self.expect(program, True, None, False)

    def test_a_state_that_is_none(self) -> None:
        for text in ("", "{", "null", "7"):
            self.expect(self.program(store=Memory(text)), False, "not_activated", False)

    def test_a_state_with_a_member_of_another_type_is_none(self) -> None:
        store = Memory()
        self.activated(store=store)
        good = json.loads(store.text or "")
        nested = [(of, name) for of, members in good.items() if isinstance(members, dict) for name in members]
        for of, name in [(of, "") for of in good] + nested:
            for wrong in (None, True, 7, "x", [7], {}):
                state = json.loads(json.dumps(good))
                at, member = (state[of], name) if name else (state, of)
                if type(at[member]) is type(wrong) and not isinstance(wrong, list):
                    continue
                at[member] = wrong
                with self.subTest(of, member=name, wrong=wrong):
                    self.expect(self.program(store=Memory(json.dumps(state))), False, "not_activated", False)
        self.expect(self.program(store=Memory("[" * 100000)), False, "not_activated", False)

    def test_calls_at_the_same_time_do_not_lose_what_another_has_stored(self) -> None:
        program, _ = self.activated(store=Memory())
        self.travel(4 * _DAY)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            checks = [pool.submit(program.check) for _ in range(3)]
        self.assertEqual(sorted(check.result().online for check in checks), [False, False, True])

    def test_saves_in_one_step(self) -> None:
        path = self.folder / "one.json"
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(FileStore(path).save, ["b" * 100000, "c" * 100000]))
        self.assertIn(path.read_text(), ("b" * 100000, "c" * 100000))
        self.assertEqual(os.listdir(self.folder), ["one.json"])
        with self.assertRaises(OSError):
            FileStore(path / "a").save("a")

    def test_options_that_can_not_work(self) -> None:
        for wrong in ({"root": "licet_root_AA"}, {"url": "ftp://example.com"}, {"url": "https://user:pw@example.com"}):
            with self.assertRaises(ValueError):
                self.program(**wrong)

    def test_receipts_can_not_be_changed(self) -> None:
        program, _ = self.activated()
        with self.assertRaises(dataclasses.FrozenInstanceError):
            self.expect(program, True, None, False).revision = 9  # type: ignore[misc]


if __name__ == "__main__":
    unittest.main()
