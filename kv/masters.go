package kv

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
)

// LicenseKeys returns what makes, reads and writes the license keys of the store, with the store's check key and id
// key. See [Store.KeyCheck] and IDKey.
func (s *Store) LicenseKeys(
	ctx context.Context, ring keyring.MasterRing, entropy io.Reader,
) (keys keyring.LicenseKeys, err error) {
	check, err := s.KeyCheck(ctx, entropy)
	if err != nil {
		return keys, err
	}
	id, err := s.IDKey(ctx, ring, entropy)
	if err != nil {
		return keys, err
	}
	return keyring.NewLicenseKeys(check, id), nil
}

// ReadLicenseKeys returns what LicenseKeys returns, and writes nothing; nil if the store has no id key.
func (s *Store) ReadLicenseKeys(ctx context.Context, ring keyring.MasterRing) (*keyring.LicenseKeys, error) {
	stored, err := s.etcd.Get(ctx, "check_key", keyspace.CheckKey)
	if err != nil || stored == nil {
		return nil, err
	}
	check, err := keyCheckOf(stored, nil)
	if err != nil {
		return nil, err
	}
	id, at, err := s.openIDKey(ctx, ring)
	if err != nil || at.revision == 0 {
		return nil, err
	}
	keys := keyring.NewLicenseKeys(check, id)
	return &keys, nil
}

// IDKey returns the id key of the store, which it opens with the ring. On a new store, the first call makes the id key
// out of entropy. If another master key than the ring's current key seals the id key, IDKey seals the id key again. A
// store without space keeps the old seal: a node must also start while etcd is full.
func (s *apiKeys) IDKey(ctx context.Context, ring keyring.MasterRing, entropy io.Reader) (keyring.IDKey, error) {
	for range changeTries {
		key, at, err := s.openIDKey(ctx, ring)
		if err != nil || at.MasterID == ring.Current().ID {
			return key, err
		}
		made := at.revision > 0
		if !made {
			var fresh [keyring.IDKeySize]byte
			if _, err := io.ReadFull(entropy, fresh[:]); err != nil {
				return key, fmt.Errorf("make an id key: %w", err)
			}
			key = keyring.NewIDKey(fresh)
		}
		sealed, err := s.sealIDKey(ctx, key, ring.Current(), at.revision, entropy)
		switch {
		case err != nil && made:
			s.log.Warn().Err(err).Str("master_key", at.MasterID).
				Msg("the id key stays sealed under a master key that is not the first of the ring; the next start " +
					"of a node tries again")
			return key, nil
		case err != nil:
			return keyring.IDKey{}, err
		case sealed:
			return key, nil
		}
	}
	return keyring.IDKey{}, etcd.Unavailable(errors.New("other nodes keep sealing the id key"))
}

// idKeySeal says which master key seals the id key, and at which revision it was sealed; both are zero on a new store.
type idKeySeal struct {
	MasterID string
	revision int64
}

// openIDKey reads and opens the id key.
func (s *apiKeys) openIDKey(ctx context.Context, ring keyring.MasterRing) (keyring.IDKey, idKeySeal, error) {
	response, err := s.etcd.Txn(ctx, "id_key", nil, []clientv3.Op{clientv3.OpGet(keyspace.IDKeyKey)}, nil)
	if err != nil {
		return keyring.IDKey{}, idKeySeal{}, etcd.Unavailable(err)
	}
	kv := etcd.First(response.Responses, 0)
	if kv == nil {
		return keyring.IDKey{}, idKeySeal{}, nil
	}
	stored, err := layout.DecodeIDKey(kv.Value)
	if err != nil {
		return keyring.IDKey{}, idKeySeal{}, fmt.Errorf("the store's id key: %w", err)
	}
	master, found := ring.Lookup(stored.MasterID)
	if !found {
		return keyring.IDKey{}, idKeySeal{}, fmt.Errorf("the id key of the store is sealed under the master key %q, "+
			"and the master key ring lacks it: put its line back", stored.MasterID)
	}
	key, err := master.OpenIDKey(stored.Sealed[:])
	if err != nil {
		return keyring.IDKey{}, idKeySeal{}, fmt.Errorf("%w: %w", errOtherMaster(master.ID), err)
	}
	return key, idKeySeal{stored.MasterID, kv.ModRevision}, nil
}

// sealIDKey stores the id key, sealed under a master key, unless another node has stored it since the revision.
func (s *apiKeys) sealIDKey(
	ctx context.Context, key keyring.IDKey, master keyring.MasterKey, since int64, entropy io.Reader,
) (sealed bool, err error) {
	var nonce [keyring.IDKeyNonceSize]byte
	if _, err := io.ReadFull(entropy, nonce[:]); err != nil {
		return false, fmt.Errorf("seal the id key: %w", err)
	}
	secret, err := master.SealIDKey(key, nonce)
	if err != nil {
		return false, err
	}
	if err := s.UseMaster(ctx, master); err != nil {
		return false, err
	}
	value := layout.SealedIDKey{MasterID: master.ID, Sealed: [keyring.SealedIDKeySize]byte(secret)}
	// An earlier copy of this transaction may have landed: then the caller reads and finds its own seal.
	var inDoubt bool
	response, err := s.etcd.Resolve(ctx, "seal_id_key", &inDoubt,
		[]clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(keyspace.IDKeyKey), "=", since),
			masterInUse(master.ID),
		},
		[]clientv3.Op{clientv3.OpPut(keyspace.IDKeyKey, string(value.Encode()))},
		[]clientv3.Op{clientv3.OpGet(keyspace.IDKeyKey, clientv3.WithKeysOnly())})
	if err != nil {
		return false, err
	}
	return response.Succeeded, nil
}

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
