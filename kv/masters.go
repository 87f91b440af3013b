package kv

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/licensing"
	"licet/licensing/keyring"
)

// CheckRing compares a ring with the fingerprints of the master keys that the
// store uses. The ring may have keys that the store does not use yet. It may also have retired keys, unless new
// secrets would be derived from them.
func (s *apiKeys) CheckRing(ctx context.Context, ring keyring.MasterRing) error {
	current := ring.Current().ID
	response, err := s.etcd.Txn(ctx, "check_ring", nil, []clientv3.Op{
		clientv3.OpGet(keyspace.MastersPrefix, clientv3.WithPrefix()),
		clientv3.OpGet(keyspace.RetiredMasterKey(current), clientv3.WithKeysOnly()),
	}, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	var problems []error
	if etcd.First(response.Responses, 1) != nil {
		problems = append(problems, errRetired(current))
	}
	for _, kv := range response.Responses[0].GetResponseRange().Kvs {
		id := string(kv.Key[len(keyspace.MastersPrefix):])
		master, found := ring.Lookup(id)
		if !found {
			problems = append(problems,
				fmt.Errorf("the store uses the master key %q, and the master key ring lacks it: put its line back", id))
			continue
		}
		same, err := matches(master, kv.Value)
		if err != nil {
			return err
		}
		if !same {
			problems = append(problems, errOtherMaster(id))
		}
	}
	return errors.Join(problems...)
}

// UseMaster notes that secrets are derived from a master key from now on. It refuses a retired master key.
func (s *apiKeys) UseMaster(ctx context.Context, master keyring.MasterKey) error {
	print, err := master.Fingerprint()
	if err != nil {
		return err
	}
	at, retired := keyspace.MasterKeyKey(master.ID), keyspace.RetiredMasterKey(master.ID)
	var inDoubt bool
	response, err := s.etcd.Resolve(ctx, "use_master", &inDoubt,
		[]clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(at), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(retired), "=", 0),
		},
		[]clientv3.Op{clientv3.OpPut(at, string(print[:]))},
		[]clientv3.Op{clientv3.OpGet(at)})
	if err != nil || response.Succeeded {
		return err
	}
	kv := etcd.First(response.Responses, 0)
	if kv == nil {
		return errRetired(master.ID)
	}
	if same, err := matches(master, kv.Value); err != nil || same {
		return err
	}
	return errOtherMaster(master.ID)
}

func matches(master keyring.MasterKey, fingerprint []byte) (bool, error) {
	print, err := master.Fingerprint()
	return subtle.ConstantTimeCompare(print[:], fingerprint) == 1, err
}

// masterInUse demands that the store has a fingerprint of the master key.
func masterInUse(id string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(keyspace.MasterKeyKey(id)), ">", 0)
}

func errOtherMaster(id string) error {
	return fmt.Errorf("the store uses another master key %q than the master key ring has: put the right line back", id)
}

func errRetired(id string) error {
	return fmt.Errorf("the master key %q was retired, so nodes can't derive new secrets from it: put another line "+
		"first in the master key ring", id)
}

func errMasterUnused(id string) error {
	return fmt.Errorf("%w: the store has no fingerprint of the master key %q", licensing.ErrInternal, id)
}
