package history

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	mathrand "math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"licet/licensing"
	"licet/licensing/keyring"
)

// maxKeys bounds the new keys of one license that clients ask for. Some of them come too late: a license gets eight.
const maxKeys = 24

// overlap is the overlap of a reissue that has one. It outlasts every run, so that no answer depends on the time, and
// is shorter than the validity of receipts.
const overlap = 3 * 24 * time.Hour

// key is a new key of a license in the model: its number, from 1, and whether bound devices may use the keys before.
// Of a license with leases, it is also known when the license got the key, as stored.
type key struct {
	number  int8
	overlap bool
	at      span
}

// replaced returns why a license refuses the key with a number, 0 for its first key; empty if it takes the key.
func (s state) replaced(number int, bound bool) licensing.Reason {
	later := s.keys[:]
	for number != 0 {
		if later[0].number == 0 {
			return licensing.ReasonLicenseNotFound
		}
		found := int(later[0].number) == number
		if later = later[1:]; found {
			break
		}
		if len(later) == 0 {
			return licensing.ReasonLicenseNotFound
		}
	}
	for _, k := range later {
		if k.number != 0 && !(bound && k.overlap) {
			return licensing.ReasonLicenseKeyReplaced
		}
	}
	return ""
}

// position returns how many new keys a license got until it had the key with a number.
func (s state) position(number int) (n int) {
	for n < s.reissues() && (n == 0 || int(s.keys[n-1].number) != number) && number != 0 {
		n++
	}
	return n
}

// reissuedAt returns when a license with leases got its latest key by the clock of a node, as stored: not before the
// key before. Of other licenses the time explains nothing.
func (s state) reissuedAt(clock span) (at span) {
	if s.leases.length == 0 {
		return at
	}
	if n := s.reissues(); n > 0 {
		before := s.keys[n-1].at
		clock = span{max(clock.from, before.from), max(clock.to, before.to)}
	}
	return clock
}

// reissues returns how many new keys a license has.
func (s state) reissues() (n int) {
	for n < len(s.keys) && s.keys[n].number != 0 {
		n++
	}
	return n
}

// presents reports whether Apply checks the key that a question presents: what an operator asks for, and removals by an
// operator, name the license as an id does.
func (in input) presents() bool {
	return in.Action == activate || in.Action == validate || in.Action == remove && in.ByUser
}

// mintReissued makes the keys that clients may give to a license.
func mintReissued(owner licensing.Owner) []licensing.LicenseKey {
	keys := make([]licensing.LicenseKey, maxKeys)
	for i := range keys {
		var entropy [keyring.LicenseKeyEntropy]byte
		_, _ = rand.Read(entropy[:])
		keys[i] = testKeys.MintReissued("LIC", owner, entropy)
	}
	return keys
}

// reissueOrPresent completes a question: the number of the new key, or which key to present. Clients present any key
// that a client has asked for, and the latest more often.
func (l *license) reissueOrPresent(in *input, random *mathrand.Rand) {
	switch {
	case in.Action == reissue:
		in.Number = int(l.newest.Add(1))
		in.Overlap = random.IntN(3) > 0
		if in.Number > maxKeys {
			in.Action, in.Number = get, 0
		}
	case in.presents() && random.IntN(2) == 0:
		in.Number = min(int(l.newest.Load()), maxKeys)
	case in.presents():
		in.Number = random.IntN(min(int(l.newest.Load()), maxKeys) + 1)
	}
}

// presented returns the key that a question presents, as a node resolves it.
func (r *run) presented(ctx context.Context, p *process, l *license, in input) (licensing.LicenseKey, error) {
	switch {
	case in.presents() && r.bug.keyUnchecked != nil && r.bug.keyUnchecked(l, in):
		return in.Key.ID().Key(""), nil
	case in.Number == 0 || !in.presents():
		return in.Key, nil
	}
	return p.node.ResolveKey(ctx, l.reissued[in.Number-1], licensing.Owner{}, netip.Addr{})
}

// reissueSize is the length of an entry in the list of new keys, in a stored license: the alias, and two times.
const reissueSize = licensing.LicenseBlockSize + 8 + 8

// overlapEnd returns when the first overlap after a key ends, 0 if the key has not been replaced. The key is named by
// its block; the first key has none.
func (s *licenseAt) overlapEnd(block string) (end int64) {
	is := block == ""
	for at := 0; at < len(s.reissues); at += reissueSize {
		entry := s.reissues[at:][:reissueSize]
		if until := int64(binary.BigEndian.Uint64([]byte(entry[reissueSize-8:]))); is && (end == 0 || until < end) {
			end = until
		}
		is = is || strings.HasPrefix(entry, block)
	}
	return end
}

// overlaps: a receipt ends with the overlap of the key that its device has presented. states are those of a license.
func (i *inspection) overlaps(l *license, states []*licenseAt, ops []operation) {
	for _, op := range ops {
		if op.Held.Revision == 0 || !op.In.presents() {
			continue
		}
		block := ""
		if op.In.Number != 0 {
			block = l.reissued[op.In.Number-1].By()
		}
		var before *licenseAt
		for _, s := range states {
			if s.revision <= op.Before {
				before = s
			}
		}
		if before == nil {
			continue
		}
		if end := before.overlapEnd(block); end != 0 && op.Held.Ends > end {
			i.add("overlaps", "%s: the receipt %+v for key %d outlasts its overlap, %d", l.key, op.Held,
				op.In.Number, end)
		}
	}
}

// madeForReissue reports whether an alias was written along with a list of new keys that has the alias, and had not
// before.
func (t *timeline) madeForReissue(name string, w aliasAt) bool {
	before := 0
	for _, s := range t.licenses[w.license] {
		for at := 0; s.revision == w.revision && at < len(s.reissues); at += reissueSize {
			if strings.HasPrefix(s.reissues[at:], name) {
				return at >= before
			}
		}
		before = len(s.reissues)
	}
	return false
}
