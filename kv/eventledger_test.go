package kv

import (
	"time"

	"licet/licensing"
)

// ledger reads the ledger of an owner.
func (l *eventsLab) ledger(owner licensing.Owner) *eventLedger {
	l.t.Helper()
	kvs := must(l.store.client.Get(testContext(l.t, 10*time.Second), ledgerKey(owner)))(l.t).Kvs
	if len(kvs) == 0 {
		return &eventLedger{}
	}
	return must(readLedger(kvs[0].Value))(l.t)
}
