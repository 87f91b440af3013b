package node

import (
	"hash/maphash"
	"net/netip"
	"slices"
	"sync/atomic"

	"licet/licensing"
)

const (
	// ownerCells is how many counters a row of shares has for owners. Two owners use the same counters of both
	// rows with a chance of 1 in ownerCells², or 268 million.
	ownerCells = 1 << 14
	// unknownCells is how many counters a row has for requests whose owner is not known yet.
	unknownCells = 3
	// networkCells is how many counters a row has for the networks of end users whose licenses are not known yet.
	networkCells = 1 << 13
)

// share names the two counters of an owner, or of a class of unknown owners, in shares: 16 bits for each row. 0
// is no share.
type share uint32

func newShare(first, second uint32) share { return share(first<<16 | second) }

// The classes of requests whose owner only the store can tell. Each class gets what an owner gets, so neither
// guesses nor licenses that no node has asked for lately can take all places.
const (
	unknownLicense share = (ownerCells+1)<<16 | (ownerCells + 1)
	unknownOrder   share = (ownerCells+2)<<16 | (ownerCells + 2)
	unknownAPIKey  share = (ownerCells+3)<<16 | (ownerCells + 3)
)

// isUnknown reports whether a share is that of a class of unknown owners, or of a network in it.
func (s share) isUnknown() bool { return s>>16 > ownerCells }

// isNetwork reports whether a share is that of a network. What counts for a network counts for unknownLicense too.
func (s share) isNetwork() bool { return s>>16 > ownerCells+unknownCells }

// shares counts how many commands and reads each owner has under way. The number of counters is fixed: a hash
// with a random seed gives each owner one counter of each row, and the lesser of the two counts the owner, or
// more if other owners share both. shares is safe for concurrent use and takes no locks: each activation counts
// here.
type shares struct {
	seed maphash.Seed
	rows [2][1 + ownerCells + unknownCells + networkCells]atomic.Int32
}

// of returns the share of an owner.
func (s *shares) of(owner licensing.Owner) share {
	h := maphash.Comparable(s.seed, owner)
	return newShare(1+uint32(h%ownerCells), 1+uint32(h>>32%ownerCells))
}

// ofEndUser returns the share of an end user who asks for a license that is not known yet: the share of the network,
// or of all unknown licenses if the network is not known.
func (s *shares) ofEndUser(network netip.Addr) share {
	if network.IsValid() {
		return s.ofNetwork(network)
	}
	return unknownLicense
}

// ofNetwork returns the share of a network whose end users ask for licenses that are not known yet.
func (s *shares) ofNetwork(network netip.Addr) share {
	const first = 1 + ownerCells + unknownCells
	h := maphash.Comparable(s.seed, network)
	return newShare(first+uint32(h%networkCells), first+uint32(h>>32%networkCells))
}

// add counts n more under way, or fewer if n is negative, and returns the new count.
func (s *shares) add(who share, n int) int64 {
	if who.isNetwork() {
		s.add(unknownLicense, n)
	}
	first := s.rows[0][who>>16].Add(int32(n))
	return int64(min(first, s.rows[1][who&0xffff].Add(int32(n))))
}

// under returns how many commands and reads a share has under way.
func (s *shares) under(who share) int64 {
	return int64(min(s.rows[0][who>>16].Load(), s.rows[1][who&0xffff].Load()))
}

// shareOf returns the share that a command on a record counts for: the share of the record's owner, of the caller
// who asks for a license, or of the license's owner if the store remembers the license; else the share of the end
// user's network, or of all unknown licenses if the command names no network.
func (n *Node) shareOf(ref licensing.Ref, cmd licensing.Command) share {
	owner := ref.Owner
	if owner == (licensing.Owner{}) && cmd != nil {
		owner = licensing.CallerOf(cmd)
	}
	if owner == (licensing.Owner{}) {
		var known bool
		if owner, known = n.cfg.Queries.OwnerOf(ref); !known {
			return n.admission.shares.ofEndUser(licensing.NetworkOf(cmd))
		}
	}
	return n.admission.shares.of(owner)
}

// countForOwner counts calls of an unknown owner for their license's owner, once the license was read. If the
// owner has no place left, countForOwner refuses the call: the node has done nothing for it yet. countForOwner
// returns the other calls.
func (s *runner) countForOwner(calls []*call, license *licensing.License) []*call {
	isUnknown := func(c *call) bool { return share(c.who.Load()).isUnknown() }
	if license == nil || !slices.ContainsFunc(calls, isUnknown) {
		return calls
	}
	owner := s.admission.shares.of(license.Owner)
	rest := make([]*call, 0, len(calls))
	for _, c := range calls {
		if isUnknown(c) && !s.admission.becomeOwners(c, owner) {
			c.fail(s.admission.refuseOwner())
		} else {
			rest = append(rest, c)
		}
	}
	return rest
}

// becomeOwners counts a call of an unknown owner for an owner, and reports whether the owner had a place left.
func (a *admission) becomeOwners(c *call, owner share) bool {
	if !a.join(owner) {
		return false
	}
	old := c.who.Load()
	if share(old).isUnknown() && c.who.CompareAndSwap(old, uint32(owner)) {
		a.shares.add(share(old), -1)
	} else { // the caller has given up
		a.shares.add(owner, -1)
	}
	return true
}
