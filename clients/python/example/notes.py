"""A program that needs a license: python notes.py [activate LICENSE-KEY | trial | deactivate]"""

import os
import pathlib
import platform
import sys
import uuid

import licet

folder = pathlib.Path(os.environ.get("NOTES_FOLDER", ".notes"))


def device_id() -> str:
    """Returns an id that stays the same: random, so that it says nothing about the user's hardware."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with open(folder / "device", "x") as file:
            file.write(str(uuid.uuid4()))
    except FileExistsError:
        pass
    return (folder / "device").read_text()


# A program that you sell has these values built in.
license = licet.Program(
    url=os.environ["LICET_URL"],
    root=os.environ["LICET_ROOT"],
    account_id=os.environ["LICET_ACCOUNT"],
    mode="test",
    product_id="notes",
    device_id=device_id(),
    store=licet.FileStore(folder / "license.json"),
    grace=3 * 24 * 3600,  # users may be on a trip
)

HINTS = {
    "not_activated": "run notes.py activate LICENSE-KEY",
    "device_limit_reached": "all devices of this license are in use: deactivate one of them",
    "stale": "connect to the internet once",
    "clock_set_back": "set the clock of this device",
    "not_yet_valid": "set the clock of this device",
}


def main(command: str = "", key: str = "") -> str | None:
    try:
        match command:
            case "activate":
                license.activate(key, device_name=platform.node())
            case "trial":
                license.trial()
            case "deactivate":
                license.deactivate()
            case _:
                check = license.check()
                if not check.allowed:
                    return f"notes: no license: {HINTS.get(check.reason, check.reason)}"
                print(f"notes starts, with {check.receipt.entitlements}")
    except (licet.ServiceError, licet.Refused) as error:
        return f"notes: {error}: {HINTS.get(error.reason, error.reason)}"
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
