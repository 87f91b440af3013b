package node

import (
	"hash/maphash"
	"slices"
	"sync/atomic"

	"licet/licensing"
)

const (
	// ownerCells is how many counters a row of shares has for owners. Two owners use
	// the same counters of both rows with a chance of 1 in ownerCells², or 268 million.
	ownerCells = 1 << 14
	// strangerCells are the counters of what has no known owner yet.
	strangerCells = 3
)

// share names the two counters of an owner, or of a class of strangers, in shares:
// 16 bits for each row. 0 stands for nobody.
type share uint32

func newShare(first, second uint32) share { return share(first<<16 | second) }

// The classes of what has no known owner until the store was asked. Each class gets
// what an owner gets, so that neither guesses nor licenses that no node has asked
// for lately can take all places.
const (
	unknownLicense share = (ownerCells+1)<<16 | (ownerCells + 1)
	unknownOrder   share = (ownerCells+2)<<16 | (ownerCells + 2)
	unknownAPIKey  share = (ownerCells+3)<<16 | (ownerCells + 3)
)

// isStranger reports whether a share is that of a class of strangers.
func (s share) isStranger() bool { return s>>16 > ownerCells }

// shares counts how many commands and reads each owner has under way. There are as
// many counters as ever, whatever owners there are: an owner is counted in one of
// each row, by a hash with a random seed, and the lesser of the two is what the
// owner has, or more where others share both. It is safe for concurrent use, and
// takes no locks: each activation comes by here.
type shares struct {
	seed maphash.Seed
	rows [2][1 + ownerCells + strangerCells]atomic.Int32
}

// of returns the share of an owner.
func (s *shares) of(owner licensing.Owner) share {
	h := maphash.Comparable(s.seed, owner)
	return newShare(1+uint32(h%ownerCells), 1+uint32(h>>32%ownerCells))
}

// add counts n more under way, or fewer where n is negative. It returns how many
// are then.
func (s *shares) add(who share, n int) int64 {
	first := s.rows[0][who>>16].Add(int32(n))
	return int64(min(first, s.rows[1][who&0xffff].Add(int32(n))))
}

// under returns how many are under way.
func (s *shares) under(who share) int64 {
	return int64(min(s.rows[0][who>>16].Load(), s.rows[1][who&0xffff].Load()))
}

// shareOf returns the share that a command on a record counts for: that of the
// record's owner, of the caller who asks for a license, or of the license's owner
// as far as the store remembers.
func (n *Node) shareOf(ref licensing.Ref, cmd licensing.Command) share {
	owner := ref.Owner
	if owner == (licensing.Owner{}) && cmd != nil {
		owner = licensing.CallerOf(cmd)
	}
	if owner == (licensing.Owner{}) {
		var known bool
		if owner, known = n.cfg.Queries.OwnerOf(ref); !known {
			return unknownLicense
		}
	}
	return n.admission.shares.of(owner)
}

// tellOwner counts calls of strangers for their license's owner, once the license
// was read. Where the owner has no place left for one, the call is refused: nothing
// was done for it yet. It returns the others.
func (n *Node) tellOwner(calls []*call, license *licensing.License) []*call {
	isStranger := func(c *call) bool { return share(c.who.Load()).isStranger() }
	if license == nil || !slices.ContainsFunc(calls, isStranger) {
		return calls
	}
	owner := n.admission.shares.of(license.Owner)
	rest := make([]*call, 0, len(calls))
	for _, c := range calls {
		if isStranger(c) && !n.admission.becomeOwners(c, owner) {
			c.answer(licensing.Result{}, n.admission.refuseOwner())
		} else {
			rest = append(rest, c)
		}
	}
	return rest
}

// becomeOwners counts a stranger's call for an owner, who must have a place left.
func (a *admission) becomeOwners(c *call, owner share) bool {
	if !a.join(owner) {
		return false
	}
	old := c.who.Load()
	if share(old).isStranger() && c.who.CompareAndSwap(old, uint32(owner)) {
		a.shares.add(share(old), -1)
	} else { // the caller has gone
		a.shares.add(owner, -1)
	}
	return true
}
