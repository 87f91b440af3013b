// Package receipt contains the signed documents by which an installed program checks its license without a network: the
// set of receipt keys, receipts, and lists of revocations. Each is a JSON Web Signature in compact form (RFC 7515),
// signed with Ed25519 (RFC 8037).
//
// An account has a root key in each mode. A program embeds the public half of the root key, see [ParseRoot]. The root
// key signs the set of receipt keys, and a receipt key signs receipts and lists. So receipt keys change without a new
// version of the program.
//
// This package signs and verifies; it neither stores nor fetches. docs/reference/receipts.md has the format for other
// languages, and testdata/receipts contains documents that each client must accept or refuse.
//
// The package imports nothing but the standard library, since customers' programs link it.
//
//	jws.go          compact signatures: sign, split, verify
//	json.go         JSON that all languages read alike
//	key.go          public keys as text and as JSON Web Keys
//	keyset.go       the set of receipt keys, signed by the root key
//	claims.go       the content of a receipt
//	verifier.go     the checks of a receipt on a device
//	revocations.go  lists of receipts that are void before their end
//	seen.go         the newest revisions that a device has seen, by license
//	airgap.go       requests, receipt files and releases of devices without network
//	armor.go        armored texts, which carry them
//	reason.go       why a document is refused
package receipt
