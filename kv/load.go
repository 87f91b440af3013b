package kv

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet"
	"licet/node"
)

// stored is the token of a record that exists: what a swap must know of it
// beyond the record itself.
type stored struct {
	revision int64 // of the record's key
	writers  []writer
	unknown  []byte // fields that only a newer format knows
	// Of a license:
	inline  []licet.Device // the devices in its record, in the order they were bound
	spilled bool           // the devices have keys of their own
}

// Load reads records with one transaction, which is linearizable because it
// holds Gets that are.
func (s *Store) Load(ctx context.Context, wants ...node.Want) ([]node.Snapshot, error) {
	var gets []clientv3.Op
	for _, want := range wants {
		gets = appendGets(gets, want)
	}
	response, err := s.txn(ctx, "load", nil, gets, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", licet.ErrUnavailable, err)
	}
	snapshots, err := readSnapshots(wants, response.Responses)
	s.watchSnapshots(snapshots)
	return snapshots, broken(err)
}

// appendGets adds what reads one want: its record, and the key that each
// device would have if the license's devices had keys of their own.
func appendGets(gets []clientv3.Op, want node.Want) []clientv3.Op {
	gets = append(gets, clientv3.OpGet(recordKey(want.Ref)))
	if want.Ref.Kind == licet.KindLicense {
		id := licet.LicenseKey(want.Ref.ID).ID()
		for _, device := range want.Devices {
			gets = append(gets, clientv3.OpGet(deviceKey(id, device)))
		}
	}
	return gets
}

// readSnapshots reads the answers to the gets of wants, in their order.
func readSnapshots(wants []node.Want, responses []*etcdserverpb.ResponseOp) ([]node.Snapshot, error) {
	snapshots := make([]node.Snapshot, len(wants))
	next := func() *mvccpb.KeyValue {
		kvs := responses[0].GetResponseRange().Kvs
		responses = responses[1:]
		if len(kvs) == 0 {
			return nil
		}
		return kvs[0]
	}
	for i, want := range wants {
		record := next()
		var entries []*mvccpb.KeyValue
		if want.Ref.Kind == licet.KindLicense {
			for range want.Devices {
				entries = append(entries, next())
			}
		}
		if record == nil {
			continue
		}
		var err error
		if snapshots[i], err = readSnapshot(want, record, entries); err != nil {
			return nil, fmt.Errorf("record of kind %d at revision %d: %w", want.Ref.Kind, record.ModRevision, err)
		}
	}
	return snapshots, nil
}

func readSnapshot(want node.Want, record *mvccpb.KeyValue, entries []*mvccpb.KeyValue) (node.Snapshot, error) {
	token := &stored{revision: record.ModRevision}
	snapshot := node.Snapshot{Token: token}
	var err error
	switch want.Ref.Kind {
	case licet.KindOrder:
		var order *storedOrder
		order, err = decodeOrder(want.Ref, record.Value)
		token.writers, token.unknown = order.writers, order.unknown
		snapshot.Record.Order = &order.order
	case licet.KindProduct:
		snapshot.Record.Product, err = decodeProduct(want.Ref, record.Value)
	case licet.KindClaim:
		snapshot.Record.Claim, token.writers, err = decodeClaim(record.Value)
	case licet.KindLicense:
		var license *storedLicense
		license, err = decodeLicense(licet.LicenseKey(want.Ref.ID).ID(), record.Value)
		if err != nil {
			break
		}
		token.writers, token.unknown = license.writers, license.unknown
		token.inline, token.spilled = license.devices, license.spilled
		snapshot.Record.License = &license.license
		snapshot.Record.Devices, err = deviceEntries(want.Devices, license, entries)
	}
	return snapshot, err
}

// deviceEntries tells of each wanted device whether it is bound: by its own
// key where the license's devices have such, else by the license itself.
func deviceEntries(wanted []string, license *storedLicense, own []*mvccpb.KeyValue) (licet.Devices, error) {
	devices := make(licet.Devices, len(wanted))
	for i, id := range wanted {
		entry := &licet.DeviceEntry{Device: licet.Device{ID: id}}
		if license.spilled && own[i] != nil {
			device, err := decodeDeviceValue(own[i].Value)
			if err != nil {
				return nil, err
			}
			entry.Device, entry.Bound = device, true
		}
		devices[id] = entry
	}
	for _, device := range license.devices {
		if entry, wanted := devices[device.ID]; wanted {
			entry.Device, entry.Bound = device, true
		}
	}
	return devices, nil
}
