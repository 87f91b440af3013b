// Package licensing is the vocabulary of the service and its law: what a license,
// an order, a product and an API key are, and which changes to them are legal.
//
// The story in five steps. A shop creates an [Order]. The buyer pays it, and
// in the same stroke a [License] comes to be, carrying a [LicenseKey]. An
// installed copy activates that key on its [Device], which takes one of the
// license's slots. A device can be removed, which frees the slot. A license
// can be suspended, revoked or run out, and says so through its [Status].
//
// Everything here is pure: no I/O, no clock, no randomness. A change is a
// [Command]; [Apply] takes a [Record] as it is stored, one command and the
// time, and answers with what the record becomes or with an [Error]. The same
// input always gives the same answer, so that the rules are tested by tables,
// and a recorded history of the running service can be replayed through them.
//
// Which transaction carries a change, and who may run when, is not decided
// here: package node folds commands into transactions, package kv stores them
// in etcd, package handlers speaks HTTP.
package licensing
