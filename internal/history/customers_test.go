package history

import (
	"context"
	"crypto/sha256"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"licet/licensing"
)

// listings are the listings of customers that licenses are in: the kind and the hash of each.
type listings map[licensing.LicenseID]map[string]bool

// note takes in a change of an entry. place is the entry's key without the owner: listing, time of creation, license.
func (l listings) note(slot licensing.Slot, place string, event *clientv3.Event) {
	const listing, moment = 1 + 16, 8
	id := licenseIn(slot, place[listing+moment:])
	if l[id] == nil {
		l[id] = map[string]bool{}
	}
	if l[id][place[:listing]] = true; event.Type == clientv3.EventTypeDelete {
		delete(l[id], place[:listing])
	}
}

// of returns the listings that a license is in.
func (l listings) of(id licensing.LicenseID) []string { return slices.Sorted(maps.Keys(l[id])) }

// listingsOf returns the listings that a license belongs in, by the value of its metadata key.
func listingsOf(note string) ([]string, error) {
	if note == "" {
		return nil, nil
	}
	m, err := parse([]byte(note[1:]))
	var found []string
	add := func(kind, customer string) {
		if customer != "" {
			sum := sha256.Sum256([]byte(customer))
			found = append(found, kind+string(sum[:16]))
		}
	}
	add("b", strings.ToLower(m.text(5)))
	add("r", m.text(6))
	return found, err
}

// customers: at every revision a license is in the listings of the customer that it names, and in no others.
func (i *inspection) customers(key licensing.LicenseKey, states []*licenseAt) {
	for _, s := range states {
		if !slices.Equal(s.listed, s.belongs) {
			i.add("facts", "%s: is in the listings %x of customers, belongs in %x: %s", key, s.listed, s.belongs, s)
		}
	}
}

// unlisted leaves one in three changes of customers' listings out of a write.
func unlisted(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error) {
	if rand.IntN(3) == 0 {
		txn = proto.CloneOf(txn)
		txn.Success = slices.DeleteFunc(txn.Success, func(op *pb.RequestOp) bool {
			return isOf("g/", op.GetRequestPut().GetKey()) || isOf("g/", op.GetRequestDeleteRange().GetKey())
		})
	}
	return handler(ctx, txn)
}
