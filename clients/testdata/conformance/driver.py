"""The driver of the client in Python for TestConformance in client/offline: reads calls and writes outcomes, one JSON
text a line."""

import json
import sys
import time

import licet


def outcome(call):
    program = licet.Program(
        url=call["url"], root=call["root"], account_id=call["account_id"], mode="test", product_id=call["product_id"],
        device_id=call["device_id"], store=licet.FileStore(call["state"]), retry_for=call["retry_for"],
        lease_seconds=call["lease_seconds"] or None, grace=call["grace"], now=lambda: time.time() + call["ahead"],
    )
    try:
        if call["call"] in ("check", "refresh"):
            check = program.check()
            return {"ok": check.allowed, "reason": check.reason or ""}
        if call["call"] == "activate":
            program.activate(call["license_key"])
        else:
            getattr(program, call["call"])()
        return {"ok": True}
    except licet.ServiceError as error:
        return {"ok": False, "code": error.code, "reason": error.reason}
    except licet.Refused as error:
        return {"ok": False, "reason": error.reason}


for line in sys.stdin:
    print(json.dumps(outcome(json.loads(line))), flush=True)
