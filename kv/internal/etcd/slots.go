package etcd

import (
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/licensing"
)

// SlotRange is a range of keys in every slot, as paths below the slot: from From up to To, without To.
type SlotRange struct{ From, To string }

// Family returns the range of all keys of a family.
func Family(prefix string) SlotRange { return SlotRange{prefix, clientv3.GetPrefixRangeEnd(prefix)} }

// SlotPage is a page of the keys in a range of every slot.
type SlotPage struct {
	Kvs      []*mvccpb.KeyValue // by slot, and in each slot in the order of keys
	Revision int64              // of the store, at which they were read
	Next     string             // the key with which the next page begins; empty: there are no more keys
}

// SlotsWith returns the slots in use with a key in a range.
func (c *Client) SlotsWith(ctx context.Context, operation string, r SlotRange) (with []licensing.Slot, err error) {
	slots, _, err := c.slotsInUse(ctx, operation)
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(slots, MaxOps) {
		responses, err := c.readSlots(ctx, operation, r, some, "", clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		for i, slot := range some {
			if len(responses[i].GetResponseRange().Kvs) > 0 {
				with = append(with, slot)
			}
		}
	}
	return with, nil
}

// PageInSlots reads up to limit keys of a range in the slots in use, from the key from on, or from the first one. It
// reads at a revision; at revision 0, at the latest one. One request reads up to [MaxOps] slots.
func (c *Client) PageInSlots(
	ctx context.Context, operation string, r SlotRange, from string, limit int, revision int64,
	opts ...clientv3.OpOption,
) (page SlotPage, err error) {
	slots, latest, err := c.slotsInUse(ctx, operation)
	if err != nil {
		return SlotPage{}, err
	}
	if page.Revision = revision; revision == 0 {
		page.Revision = latest
	}
	if first, _, resumes := keyspace.CutSlot(from); resumes {
		at, _ := slices.BinarySearch(slots, first)
		slots = slots[at:]
	}
	for len(slots) > 0 {
		some := slots[:min(len(slots), MaxOps)]
		// A slot that has more keys than its share is read to its end before the next slot.
		share := max(1, (limit-len(page.Kvs))/len(some))
		responses, err := c.readSlots(ctx, operation, r, some, from, append(opts[:len(opts):len(opts)],
			clientv3.WithLimit(int64(share)), clientv3.WithRev(page.Revision))...)
		if err != nil {
			return SlotPage{}, err
		}
		for i, slot := range some {
			found := responses[i].GetResponseRange()
			page.Kvs = append(page.Kvs, found.Kvs...)
			for more := found.More; more; {
				next := After(page.Kvs[len(page.Kvs)-1].Key)
				if len(page.Kvs) >= limit {
					page.Next = next
					return page, nil
				}
				rest, err := c.Page(ctx, operation, next, keyspace.InSlot(slot, r.To), int64(limit-len(page.Kvs)),
					page.Revision, opts...)
				if err != nil {
					return SlotPage{}, err
				}
				page.Kvs, more = append(page.Kvs, rest.Kvs...), rest.More && len(rest.Kvs) > 0
			}
			if len(page.Kvs) >= limit && i+1 < len(slots) {
				page.Next = keyspace.InSlot(slots[i+1], r.From)
				return page, nil
			}
		}
		slots = slots[len(some):]
	}
	return page, nil
}

// readSlots reads a range in up to [MaxOps] slots in one request. In the slot of from, if any, it begins with from.
func (c *Client) readSlots(
	ctx context.Context, operation string, r SlotRange, slots []licensing.Slot, from string, opts ...clientv3.OpOption,
) ([]*etcdserverpb.ResponseOp, error) {
	first, _, resumes := keyspace.CutSlot(from)
	gets := make([]clientv3.Op, len(slots))
	for i, slot := range slots {
		begin := keyspace.InSlot(slot, r.From)
		if resumes && slot == first {
			begin = from
		}
		gets[i] = clientv3.OpGet(begin,
			append(opts[:len(opts):len(opts)], clientv3.WithRange(keyspace.InSlot(slot, r.To)))...)
	}
	response, err := c.Txn(ctx, operation, nil, gets, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	NoteReads(ctx, response.Responses)
	return response.Responses, nil
}

// EachInSlots calls each for the keys of a range in the slots in use, and reads a page of them at a time. It reads at a
// revision; at revision 0, each page at the latest one.
func (c *Client) EachInSlots(
	ctx context.Context, operation string, r SlotRange, pageSize int, revision int64, each func(*mvccpb.KeyValue),
	opts ...clientv3.OpOption,
) error {
	for from, more := "", true; more; {
		page, err := c.PageInSlots(ctx, operation, r, from, pageSize, revision, opts...)
		if err != nil {
			return err
		}
		for _, kv := range page.Kvs {
			each(kv)
		}
		from, more = page.Next, page.Next != ""
	}
	return nil
}

// slotsInUse returns the slots that owners are in, in their order, and the revision at which they were read.
func (c *Client) slotsInUse(ctx context.Context, operation string) ([]licensing.Slot, int64, error) {
	found, err := c.List(ctx, operation, keyspace.SlotsPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, 0, err
	}
	return SlotsIn(found.Kvs), found.Header.Revision, nil
}

// SlotsIn returns the slots that the keys below keyspace.SlotsPrefix name, in their order.
func SlotsIn(kvs []*mvccpb.KeyValue) []licensing.Slot {
	slots := make([]licensing.Slot, 0, len(kvs))
	for _, kv := range kvs {
		// A key that is not the key of a slot is left to verify.
		if slot, ok := licensing.ParseSlot(string(kv.Key[len(keyspace.SlotsPrefix):])); ok {
			slots = append(slots, slot)
		}
	}
	return slots
}
