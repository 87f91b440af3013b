"""Every vector of testdata/receipts is accepted or refused, with its reason."""

import dataclasses
import json
import os
import pathlib
import unittest

from licet.documents import Refused, Seen, parse_root
from licet.verify import Documents, Expected, verify

_HERE = pathlib.Path(__file__).resolve()
_FILE = os.environ.get("LICET_VECTORS") or _HERE.parents[3] / "testdata" / "receipts" / "vectors.json"
_COMMON = json.loads(pathlib.Path(_FILE).read_text("utf-8"))


class Vectors(unittest.TestCase):
    def test_vectors(self) -> None:
        for v in _COMMON["vectors"]:
            with self.subTest(v["name"]):
                want = Expected(
                    root=parse_root(_COMMON["root"]),
                    account_id=_COMMON["account_id"],
                    mode=_COMMON["mode"],
                    product_id=_COMMON["product_id"],
                    device_id=_COMMON["device_id"],
                    grace=v["grace"],
                    nonce=v["nonce"],
                )
                documents = Documents(v["keys"], v["receipt"] + "A" * v["padding"], v["revocations"])
                try:
                    got, seen = "", verify(want, documents, Seen(**v["seen"]), v["now"]).seen
                except Refused as refused:
                    got, seen = refused.reason, refused.seen
                self.assertEqual(got, v["want"])
                after = v["after"] and {"earlier": [], **v["after"]}
                self.assertEqual(seen and dataclasses.asdict(seen), after)

    def test_there_are_enough(self) -> None:
        self.assertGreaterEqual(sum(v["want"] != "" for v in _COMMON["vectors"]), 60)


if __name__ == "__main__":
    unittest.main()
