package kv

import (
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// putTrial writes a trial and the license that it issues, or removes a trial.
func (sw *swap) putTrial(key []byte, write *store.Write, token *stored, writers []layout.Writer) error {
	if removes(write) {
		sw.remove(key, token.size)
		sw.growth.Trials--
		return nil
	}
	trial := layout.Trial{Trial: *write.Record.Trial, Writers: writers}
	sw.putRecord(key, trial.Encode(), token)
	if token.revision == 0 {
		sw.growth.Trials++
	}
	for _, issued := range write.Record.Issued { // its device has events only if the owner listens
		sw.assumed = append(sw.assumed, layout.Listening{Owner: write.Ref.Owner, Listens: token.listens})
		sw.putMetadata(issued, write.Record.Metadata, &stored{})
	}
	return sw.putIssued(&write.Record, writers)
}

// removeLicense removes a license without an order and with its devices in its record, and all that leads to it.
func (sw *swap) removeLicense(key []byte, record *licensing.Record, token *stored) {
	l := record.License
	id := l.Key.ID()
	sw.compare(key, token.revision)
	sw.remove(key, token.size)
	if token.metadata > 0 {
		sw.remove([]byte(keyspace.MetadataKey(id)), token.metadata)
	}
	for i := range l.Reissues.Count() {
		name := licensing.NewLicenseID(id.Slot(), [licensing.LicenseBlockSize]byte([]byte(l.Reissues.Block(i))))
		alias := layout.EncodeAlias(licensing.Alias{License: id, Owner: l.Owner})
		sw.remove([]byte(keyspace.AliasKey(licensing.AliasName(name))), len(alias))
	}
	for _, listed := range keyspace.CustomerKeys(l, token.customer) {
		sw.relist(listed, "")
	}
	sw.relist(keyspace.ListingKey(l.Owner, l.CreatedAt, id), "")
	sw.reschedule(string(key), token.due, 0)
	last := layout.License{License: *l} // only the place of the location is used
	sw.writeLicenseEvents(last.Encode(), record.Events, token.lastEvent)
	sw.gone = append(sw.gone, id)
}

// noteTrial completes the snapshot of a trial: a trial that does not exist has a token too, which says whether the
// owner listens.
func (s *Store) noteTrial(owner licensing.Owner, snapshot *store.Snapshot) {
	token, exists := snapshot.Token.(*stored)
	if !exists {
		token = &stored{}
		snapshot.Token = token
	}
	token.listens = s.fences.listens(owner)
	snapshot.Record.Listening = s.recordActivations || token.listens
}
