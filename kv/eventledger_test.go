package kv

import (
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// ledger reads the ledger of an owner.
func (l *eventsLab) ledger(owner licensing.Owner) *layout.Ledger {
	l.t.Helper()
	kvs := kvtest.Must(l.store.etcd.Native.Get(l.t.Context(), keyspace.LedgerKey(owner)))(l.t).Kvs
	if len(kvs) == 0 {
		return &layout.Ledger{}
	}
	return kvtest.Must(layout.DecodeLedger(kvs[0].Value))(l.t)
}
