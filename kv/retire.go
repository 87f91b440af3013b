package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
)

// MasterUse counts the secrets that are derived from a master key.
type MasterUse struct {
	ID      string
	Retired bool // no secret is derived from it, and none will be
	// Keys counts the API keys whose secret is derived from the master key, without revoked keys. Previous counts the
	// secrets from before a rotation that are derived from it and still valid, until Until at the latest.
	Keys, Previous int
	Until          time.Time
	// Webhooks counts the webhook endpoints whose secret is derived from the master key. Their secrets from before a
	// rotation count in Previous.
	Webhooks int
	IDKey    bool // the master key seals the id key of the store
	Roots    int  // counts the accounts, each in one mode, whose root secret for receipts the master key seals
	// Some of these keys and endpoints, up to maxMasterUsers.
	Users []MasterUser
}

// MasterUser is an API key, or an endpoint of webhooks.
type MasterUser struct {
	ID    string
	Owner licensing.Owner
}

const (
	maxMasterUsers = 10
	// retireMargin is how much later a replaced secret ends than this node's clock says: the clocks of other nodes may
	// be behind.
	retireMargin = 10 * time.Minute
	// idKeyName is the name of the id key, as licet store verify shows it.
	idKeyName = "cell/id_key"
	// masterPage is how many API keys one request reads.
	masterPage = 500
)

// InUse reports whether any secret is derived from the master key, or the id key is sealed under it.
func (u *MasterUse) InUse() bool {
	return u.Keys > 0 || u.Previous > 0 || u.Webhooks > 0 || u.IDKey || u.Roots > 0
}

// String says what needs the master key.
func (u *MasterUse) String() string {
	var needs []string
	if u.IDKey {
		needs = append(needs, "it seals the id key of the store, until a node starts with another master key first in "+
			"its ring")
	}
	if u.Roots > 0 {
		needs = append(needs, fmt.Sprintf("it seals the root keys for receipts of %d accounts and modes, until a node "+
			"starts with another master key first in its ring", u.Roots))
	}
	if u.Keys > 0 || u.Previous > 0 || u.Webhooks > 0 {
		needs = append(needs, "derived from it: "+u.secrets())
	}
	return strings.Join(needs, "; ")
}

// secrets counts and names what is derived from the master key.
func (u *MasterUse) secrets() string {
	var parts []string
	if u.Keys > 0 {
		parts = append(parts, fmt.Sprintf("the secrets of %d API keys", u.Keys))
	}
	if u.Webhooks > 0 {
		parts = append(parts, fmt.Sprintf("the secrets of %d webhook endpoints", u.Webhooks))
	}
	if u.Previous > 0 {
		parts = append(parts,
			fmt.Sprintf("until %s the previous secrets of %d", u.Until.Format(time.RFC3339), u.Previous))
	}
	var users []string
	for _, user := range u.Users {
		users = append(users, fmt.Sprintf("%s (%s, %s)", user.ID, user.Owner.AccountID, user.Owner.Mode))
	}
	if u.Keys+u.Webhooks+u.Previous > len(users) {
		users = append(users, "…")
	}
	return strings.Join(parts, " and ") + ": " + strings.Join(users, ", ")
}

// MasterUsage is how master keys are used at one revision.
type MasterUsage struct {
	Uses []MasterUse // of the master keys that the store uses or has used, by id
	// Unreadable counts the API keys and the owners' records of endpoints that can't be read, and the id key if it
	// can't. Any master key may protect them. UnreadableNames has the names of up to maxMasterUsers of them, as licet
	// store verify shows them.
	Unreadable      int
	UnreadableNames []string
	// The revisions of the marks that changes replace (of API keys, of webhook endpoints, of receipt keys), and of the
	// sealed id key.
	mark, webhooksMark, idKey, receiptsMark int64
}

func (m *MasterUsage) of(id string) *MasterUse {
	i := slices.IndexFunc(m.Uses, func(u MasterUse) bool { return u.ID == id })
	if i < 0 {
		return nil
	}
	return &m.Uses[i]
}

func (m *MasterUsage) unreadable(name string) {
	if m.Unreadable++; m.Unreadable <= maxMasterUsers {
		m.UnreadableNames = append(m.UnreadableNames, name)
	}
}

// SayUnreadable says which values can't be read.
func (m *MasterUsage) SayUnreadable() string {
	names := strings.Join(m.UnreadableNames, ", ")
	if m.Unreadable > len(m.UnreadableNames) {
		names += ", …"
	}
	return fmt.Sprintf("%d API keys or records of webhook endpoints, of receipt keys or of the id key can't be read, "+
		"and any master key may protect them: %s; licet store verify shows them", m.Unreadable, names)
}

// MasterUses counts for each master key the secrets that are derived from it at now. It reads all API keys and
// endpoints of webhooks, at one revision.
func (s *apiKeys) MasterUses(ctx context.Context, now time.Time) (*MasterUsage, error) {
	response, err := s.etcd.Txn(ctx, "scan_masters", nil, []clientv3.Op{
		clientv3.OpGet(keyspace.MastersPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(keyspace.RetiredPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(keyspace.APIKeysMark),
		clientv3.OpGet(keyspace.WebhooksMark),
		clientv3.OpGet(keyspace.IDKeyKey),
		clientv3.OpGet(keyspace.ReceiptKeysMark),
	}, nil)
	if err != nil {
		return nil, etcd.Unavailable(err)
	}
	found := &MasterUsage{}
	for _, kv := range response.Responses[0].GetResponseRange().Kvs {
		found.Uses = append(found.Uses, MasterUse{ID: string(kv.Key[len(keyspace.MastersPrefix):])})
	}
	for _, kv := range response.Responses[1].GetResponseRange().Kvs {
		found.Uses = append(found.Uses, MasterUse{ID: string(kv.Key[len(keyspace.RetiredPrefix):]), Retired: true})
	}
	slices.SortFunc(found.Uses, func(a, b MasterUse) int { return strings.Compare(a.ID, b.ID) })
	if mark := etcd.First(response.Responses, 2); mark != nil {
		found.mark = mark.ModRevision
	}
	if mark := etcd.First(response.Responses, 3); mark != nil {
		found.webhooksMark = mark.ModRevision
	}
	if mark := etcd.First(response.Responses, 5); mark != nil {
		found.receiptsMark = mark.ModRevision
	}
	if sealed := etcd.First(response.Responses, 4); sealed != nil {
		found.idKey = sealed.ModRevision
		key, err := layout.DecodeIDKey(sealed.Value)
		if s.etcd.Unreadable(keyspace.IDKeyKey, idKeyName, err) {
			found.unreadable(idKeyName)
		}
		if use := found.of(key.MasterID); use != nil {
			use.IDKey = true
		}
	}
	for prefix, count := range map[string]func(*mvccpb.KeyValue, time.Time) (name string, err error){
		keyspace.APIKeysFamily: found.count, keyspace.WebhooksFamily: found.countWebhooks,
		keyspace.ReceiptKeysFamily: found.countRoot,
	} {
		if err := s.etcd.EachInSlots(ctx, "scan_masters", etcd.Family(prefix), masterPage, response.Header.Revision,
			func(kv *mvccpb.KeyValue) {
				if name, err := count(kv, now); s.etcd.Unreadable(string(kv.Key), name, err) {
					found.unreadable(name)
				}
			}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// count counts the master keys from which an API key's secrets are derived. A revoked key counts for none: its secret
// is not needed again. If the API key can't be read, count returns its name and the reason.
func (m *MasterUsage) count(kv *mvccpb.KeyValue, now time.Time) (name string, err error) {
	hash, _ := keyspace.CutFamily(string(kv.Key), keyspace.APIKeysFamily)
	name = "k/" + verify.Opaque(hash)
	if len(hash) != len(licensing.APIKey{}.Hash) {
		return name, layout.ErrMalformed
	}
	stored, err := layout.DecodeAPIKey([32]byte([]byte(hash)), kv.Value)
	if err != nil {
		return name, err
	}
	key := &stored.Key
	if !key.RevokedAt.IsZero() {
		return name, nil
	}
	user := MasterUser{ID: key.ID, Owner: key.Owner}
	if use := m.of(key.MasterID); use != nil {
		use.Keys++
		use.Users = appendUser(use.Users, user)
	}
	m.countPrevious(key.Previous, user, now)
	return name, nil
}

// countPrevious counts the master key of the secret before a rotation.
func (m *MasterUsage) countPrevious(previous licensing.PreviousSecret, user MasterUser, now time.Time) {
	if use := m.of(previous.MasterID); use != nil && now.Before(previous.Until.Add(retireMargin)) {
		use.Previous++
		if previous.Until.After(use.Until) {
			use.Until = previous.Until
		}
		use.Users = appendUser(use.Users, user)
	}
}

// countWebhooks counts the master keys of an owner's endpoints. Disabled endpoints count too, since they may be enabled
// again.
func (m *MasterUsage) countWebhooks(kv *mvccpb.KeyValue, now time.Time) (name string, err error) {
	owner, ok := keyspace.OwnerIn(kv.Key, keyspace.WebhooksFamily)
	if !ok {
		return "w/" + verify.Opaque(string(kv.Key)), layout.ErrMalformed
	}
	name = "w/" + keyspace.OwnerPath(owner)
	stored, err := layout.DecodeWebhooks(owner, kv.Value)
	if err != nil {
		return name, err
	}
	for i := range stored.Webhooks.Endpoints {
		e := &stored.Webhooks.Endpoints[i]
		user := MasterUser{ID: e.ID, Owner: owner}
		if use := m.of(e.MasterID); use != nil {
			use.Webhooks++
			use.Users = appendUser(use.Users, user)
		}
		m.countPrevious(e.Previous, user, now)
	}
	return name, nil
}

// countRoot counts the master key that seals an owner's root secret for receipts.
func (m *MasterUsage) countRoot(kv *mvccpb.KeyValue, _ time.Time) (name string, err error) {
	owner, ok := keyspace.OwnerIn(kv.Key, keyspace.ReceiptKeysFamily)
	if !ok {
		return keyspace.ReceiptKeysFamily + verify.Opaque(string(kv.Key)), layout.ErrMalformed
	}
	name = keyspace.ReceiptKeysFamily + keyspace.OwnerPath(owner)
	stored, err := layout.DecodeReceiptKeys(owner, kv.Value)
	if err != nil {
		return name, err
	}
	if use := m.of(stored.ReceiptKeys.Root.MasterID); use != nil {
		use.Roots++
	}
	return name, nil
}

func appendUser(users []MasterUser, user MasterUser) []MasterUser {
	if len(users) < maxMasterUsers {
		users = append(users, user)
	}
	return users
}

// RetireMaster marks a master key as retired: no secret is derived from it any more, so a ring need not have it, and
// none will be. It fails while a secret is derived from the key, or may be, because a value can't be read. It also
// fails for the only key in use. Retiring a retired key changes nothing.
func (s *apiKeys) RetireMaster(ctx context.Context, id string, now time.Time) error {
	for range changeTries {
		found, err := s.MasterUses(ctx, now)
		if err != nil {
			return err
		}
		switch use := found.of(id); {
		case use == nil:
			return fmt.Errorf("the store has never used a master key %q", id)
		case use.Retired:
			return nil
		case use.InUse():
			return fmt.Errorf("the master key %q is in use: %v", id, use)
		case found.Unreadable > 0:
			return fmt.Errorf("the master key %q may be in use: %s", id, found.SayUnreadable())
		case !slices.ContainsFunc(found.Uses, func(u MasterUse) bool { return u.ID != id && !u.Retired }):
			return fmt.Errorf("the master key %q is the only master key in use: make another master key first", id)
		}
		retired, err := s.retireMaster(ctx, id, found)
		if err != nil || retired {
			return err
		}
	}
	return etcd.Unavailable(errors.New("API keys, webhook endpoints or receipt keys keep changing"))
}

// retireMaster moves the fingerprint of a master key, unless an API key or an endpoint
// of webhooks was made or changed since the scan.
func (s *apiKeys) retireMaster(ctx context.Context, id string, found *MasterUsage) (bool, error) {
	print, err := s.etcd.Get(ctx, "retire_master", keyspace.MasterKeyKey(id))
	if err != nil || print == nil {
		return false, err // retired meanwhile
	}
	var inDoubt bool
	response, err := s.etcd.Resolve(ctx, "retire_master", &inDoubt,
		[]clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(keyspace.APIKeysMark), "=", found.mark),
			clientv3.Compare(clientv3.ModRevision(keyspace.WebhooksMark), "=", found.webhooksMark),
			clientv3.Compare(clientv3.ModRevision(keyspace.IDKeyKey), "=", found.idKey),
			clientv3.Compare(clientv3.ModRevision(keyspace.ReceiptKeysMark), "=", found.receiptsMark),
			masterInUse(id),
		},
		[]clientv3.Op{
			clientv3.OpDelete(keyspace.MasterKeyKey(id)),
			clientv3.OpPut(keyspace.RetiredMasterKey(id), string(print)),
		},
		[]clientv3.Op{clientv3.OpGet(keyspace.APIKeysMark, clientv3.WithKeysOnly())})
	if err != nil {
		return false, err
	}
	return response.Succeeded, nil
}
