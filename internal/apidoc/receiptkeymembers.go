package apidoc

// receiptKeyMembers describes the members of receipt keys; see members.
func receiptKeyMembers() map[string]string {
	return map[string]string{
		"root": "the public half of the key that signs the set of receipt keys; put it into your program. It never " +
			"changes",
		"jwks_url":         "address of the set of receipt keys, signed with the root key; needs no API key",
		"ReceiptKeys.keys": "the set of receipt keys, oldest first",
		"kid":              "the id of the receipt key, in the header of what it has signed",
		"Jwks.keys":        "the receipt keys as JSON Web Keys (RFC 7517), oldest first",
		"signed":           "the same set as a document that the root key has signed",
		"kty":              "`OKP`",
		"crv":              "`Ed25519`",
		"x":                "the public key, 32 bytes in base64url",
		"use":              "`sig`",
		"alg":              "`EdDSA`",
		"signs_from":       "from when the receipt key signs: caches may have the set from before",
		"ends_at":          "when the receipt key leaves the set; null: not known yet",
	}
}
