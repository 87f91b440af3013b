package history

import (
	"fmt"

	"licet/licensing"
	"licet/node/service"
)

const (
	importerCount = 3  // how many clients bring the same external keys
	externals     = 12 // how many keys they bring
)

// externalKey returns how an importer writes external keys. All write the same keys, if case, blanks and dashes do not
// count.
func externalKey(importer int) string {
	return [importerCount]string{"old-%03d", "OLD%03d", "Old - %03d"}[importer]
}

// importKeys grants licenses with external keys, in an order of the importer's own. It repeats each request, a few
// times at most, until the answer is success or refusal. The first importer's requests have Idempotency-Keys.
func (r *run) importKeys(importer int) {
	random := r.random("import", uint64(importer))
	for _, number := range random.Perm(externals) {
		in := service.Grant{ProductID: "pro", Quantity: 1,
			ExternalKey: fmt.Sprintf(externalKey(importer), number)}
		if importer == 0 {
			in.Once = once("import", number)
		}
		for range 5 {
			d := deed{What: "import", External: number}
			r.askGrant(r.anyProcess(random), &d, in)
			r.noteDeed(d)
			if d.Out.Verdict == accepted || d.Out.Verdict == refused {
				break
			}
		}
	}
}

// aliasAt is a write of an alias.
type aliasAt struct {
	revision int64
	license  licensing.LicenseID
	created  bool
}

// aliases: an alias is made once, in the transaction that makes its license; an answer names the license that has the
// external key; and a key is refused only if a license has it.
func (i *inspection) aliases(t *timeline) {
	for name, writes := range t.aliases {
		if len(writes) != 1 || !writes[0].created {
			i.add("aliases", "the alias %x was written at %+v", name, writes)
			continue
		}
		if t.madeForReissue(name, writes[0]) {
			continue
		}
		states := t.licenses[writes[0].license]
		if len(states) == 0 || states[0].revision != writes[0].revision || !states[0].noteWritten {
			i.add("aliases", "the alias %x was made neither along with its license %s nor as its new key", name,
				writes[0].license)
		}
	}
	for _, d := range i.run.deeds {
		if d.What != "import" {
			continue
		}
		name := testKeys.AliasOf(i.run.owner, licensing.MatchCompact.Of(fmt.Sprintf("OLD%03d", d.External)))
		writes := t.aliases[string(name[2:])]
		stored := len(writes) > 0 && writes[0].revision <= d.After
		switch {
		case d.Out.Verdict == accepted && (!stored || len(d.Keys) != 1 || d.Keys[0].ID() != writes[0].license):
			i.add("aliases", "key %d was granted with %v, and stored are %+v", d.External, d.Keys, writes)
		case d.Out.Verdict == refused && d.Out.Reason != licensing.ReasonExternalKeyInUse:
			i.add("aliases", "key %d was refused: %s", d.External, d.Out)
		case d.Out.Verdict == refused && !stored:
			i.add("aliases", "key %d was refused at revision %d, and stored are %+v", d.External, d.After, writes)
		}
	}
}
