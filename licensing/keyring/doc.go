// Package keyring contains the secrets of a store, and everything that needs a secret: license keys, the texts of API
// keys, and the secrets and keys that are derived from master keys.
//
// The master keys ([MasterRing]) never enter the store. From them derive the secrets of API keys and webhook
// endpoints, pay tokens, and the keys that seal the store's id key ([IDKey]) and the root secrets of receipt keys
// ([RootSecret]). From the id key derive license ids, and the names and seals of external keys and trials
// ([LicenseKeys]).
//
// No derivation may ever change: a change would break keys and secrets that shops and their customers have.
//
// Like package licensing, keyring is pure: no I/O, no clock, no randomness. Callers pass random bytes. Package
// licensing has the rules and needs no secret; it does not import keyring.
//
// The map of the package:
//
//	masterkey.go    master keys, and the secrets derived from them
//	idkey.go        the secret under which license ids are made, and its seal
//	rootsecret.go   the secret that receipt keys are derived from, and its seal
//	licensekeys.go  makes, parses and writes license keys, with the id key and the check key of a store
//	keycheck.go     the check characters of license keys and API keys
//	seededkeys.go   the keys of orders and grants for several licenses
//	externalkey.go  the aliases and seals of external keys
//	trialname.go    the names of trials
//	apikeytext.go   texts of API keys: create and check
//	crockford.go    Crockford's base32
package keyring
