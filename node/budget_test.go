package node

import (
	"testing"
	"time"

	"licet/licensing"
)

// TestOwnersOfRecords: budgets and the limit of changes find the owner of a record of every kind, also before the
// record is stored.
func TestOwnersOfRecords(t *testing.T) {
	owner := licensing.Owner{AccountID: "acct_1", Mode: licensing.Live}
	for kind := licensing.KindLicense; kind <= licensing.KindReceiptKeys; kind++ {
		ref, record := licensing.Ref{Kind: kind, Owner: owner}, licensing.Record{}
		switch kind {
		case licensing.KindLicense:
			ref.Owner = licensing.Owner{}
			record.License = &licensing.License{Owner: owner}
		case licensing.KindAlias: // no command changes it
			continue
		}
		if got := ownerOf(ref, &record); got != owner {
			t.Errorf("%v: %v", kind, got)
		}
		var cmd licensing.Command = licensing.ChangeSettings{Owner: owner} // stands for any command
		if who, limited := changerOf(ref, &record, cmd, time.Time{}); !limited || who.owner != owner {
			t.Errorf("%v: changed by %v, limited %v", kind, who, limited)
		}
	}
}
