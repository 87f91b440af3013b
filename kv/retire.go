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
	"licet/kv/internal/layout"
	"licet/licensing"
)

// MasterUse counts the secrets that are derived from a master key.
type MasterUse struct {
	ID      string
	Retired bool // nothing is, and nothing will be
	// Keys counts the API keys whose secret is derived from it, without those
	// that are revoked; Previous those whose secret before a rotation is, and is
	// still good, until Until at the latest.
	Keys, Previous int
	Until          time.Time
	// Webhooks counts the endpoints of webhooks whose secret is derived from it.
	// Those whose secret before a rotation is count among Previous.
	Webhooks int
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
	// retireMargin is how much later than by this clock a secret that was
	// replaced is taken to end: the clocks of nodes may be behind.
	retireMargin = 10 * time.Minute
	// masterPage is how many API keys one request reads.
	masterPage = 500
)

// InUse reports whether any secret is derived from the master key.
func (u *MasterUse) InUse() bool { return u.Keys > 0 || u.Previous > 0 || u.Webhooks > 0 }

// String names what is derived from the master key.
func (u *MasterUse) String() string {
	text := fmt.Sprintf("the secrets of %d API keys", u.Keys)
	if u.Webhooks > 0 {
		text += fmt.Sprintf(" and %d webhook endpoints", u.Webhooks)
	}
	if u.Previous > 0 {
		text += fmt.Sprintf(" and, until %s, the secrets before of %d", u.Until.Format(time.RFC3339), u.Previous)
	}
	var users []string
	for _, user := range u.Users {
		users = append(users, fmt.Sprintf("%s (%s, %s)", user.ID, user.Owner.AccountID, user.Owner.Mode))
	}
	if u.Keys+u.Webhooks+u.Previous > len(users) {
		users = append(users, "…")
	}
	return text + ": " + strings.Join(users, ", ")
}

// MasterUses tells of each master key that the store uses or has used what is
// derived from it at now. It reads all API keys and endpoints of webhooks, at one
// revision. Ids sort.
func (s *apiKeys) MasterUses(ctx context.Context, now time.Time) ([]MasterUse, error) {
	found, err := s.readMasterUsage(ctx, now)
	if err != nil {
		return nil, err
	}
	return found.uses, nil
}

// masterUsage is how master keys are used at one revision.
type masterUsage struct {
	uses []MasterUse
	// The revisions of the marks that every change of an API key, and of an endpoint of
	// webhooks, replaces.
	mark, webhooksMark int64
}

func (m *masterUsage) of(id string) *MasterUse {
	i := slices.IndexFunc(m.uses, func(u MasterUse) bool { return u.ID == id })
	if i < 0 {
		return nil
	}
	return &m.uses[i]
}

func (s *apiKeys) readMasterUsage(ctx context.Context, now time.Time) (*masterUsage, error) {
	response, err := s.etcd.Txn(ctx, "scan_masters", nil, []clientv3.Op{
		clientv3.OpGet(layout.MastersPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(layout.RetiredPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(layout.APIKeysMark),
		clientv3.OpGet(layout.WebhooksMark),
	}, nil)
	if err != nil {
		return nil, etcd.Unavailable(err)
	}
	found := &masterUsage{}
	for _, kv := range response.Responses[0].GetResponseRange().Kvs {
		found.uses = append(found.uses, MasterUse{ID: string(kv.Key[len(layout.MastersPrefix):])})
	}
	for _, kv := range response.Responses[1].GetResponseRange().Kvs {
		found.uses = append(found.uses, MasterUse{ID: string(kv.Key[len(layout.RetiredPrefix):]), Retired: true})
	}
	slices.SortFunc(found.uses, func(a, b MasterUse) int { return strings.Compare(a.ID, b.ID) })
	if mark := etcd.First(response.Responses, 2); mark != nil {
		found.mark = mark.ModRevision
	}
	if mark := etcd.First(response.Responses, 3); mark != nil {
		found.webhooksMark = mark.ModRevision
	}
	for prefix, count := range map[string]func(*mvccpb.KeyValue, time.Time) error{
		layout.Prefix + "k/": found.count, layout.WebhooksPrefix: found.countWebhooks,
	} {
		if err := s.readFamily(ctx, prefix, response.Header.Revision,
			func(kv *mvccpb.KeyValue) error { return count(kv, now) }); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// readFamily reads all keys of a prefix at a revision, page by page.
func (s *apiKeys) readFamily(
	ctx context.Context, prefix string, revision int64, each func(*mvccpb.KeyValue) error,
) error {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		page, err := s.etcd.List(ctx, "scan_masters", from, clientv3.WithRange(end),
			clientv3.WithLimit(masterPage), clientv3.WithRev(revision))
		if err != nil {
			return err
		}
		for _, kv := range page.Kvs {
			if err := each(kv); err != nil {
				return err
			}
			from = etcd.After(kv.Key)
		}
		if !page.More {
			return nil
		}
	}
}

// count counts the master keys from which an API key's secrets are derived. A revoked key counts for none: its secret
// is not needed again.
func (m *masterUsage) count(kv *mvccpb.KeyValue, now time.Time) error {
	hash, ok := strings.CutPrefix(string(kv.Key), layout.Prefix+"k/")
	if !ok || len(hash) != len(licensing.APIKey{}.Hash) {
		return layout.Internal(fmt.Errorf("the key of an API key: %w", layout.ErrMalformed))
	}
	stored, err := layout.DecodeAPIKey([32]byte([]byte(hash)), kv.Value)
	if err != nil {
		return layout.Internal(err)
	}
	key := &stored.Key
	if !key.RevokedAt.IsZero() {
		return nil
	}
	user := MasterUser{ID: key.ID, Owner: key.Owner}
	if use := m.of(key.MasterID); use != nil {
		use.Keys++
		use.Users = appendUser(use.Users, user)
	}
	m.countPrevious(key.Previous, user, now)
	return nil
}

// countPrevious counts what the secret before a rotation is derived from.
func (m *masterUsage) countPrevious(previous licensing.PreviousSecret, user MasterUser, now time.Time) {
	if use := m.of(previous.MasterID); use != nil && now.Before(previous.Until.Add(retireMargin)) {
		use.Previous++
		if previous.Until.After(use.Until) {
			use.Until = previous.Until
		}
		use.Users = appendUser(use.Users, user)
	}
}

// countWebhooks counts what an owner's endpoints are derived from. Those that are
// disabled may be enabled again.
func (m *masterUsage) countWebhooks(kv *mvccpb.KeyValue, now time.Time) error {
	owner, _, ok := layout.CutOwner(string(kv.Key[len(layout.WebhooksPrefix):]))
	if !ok {
		return layout.Internal(fmt.Errorf("the key of endpoints of webhooks: %w", layout.ErrMalformed))
	}
	stored, err := layout.DecodeWebhooks(owner, kv.Value)
	if err != nil {
		return layout.Internal(err)
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
	return nil
}

func appendUser(users []MasterUser, user MasterUser) []MasterUser {
	if len(users) < maxMasterUsers {
		users = append(users, user)
	}
	return users
}

// RetireMaster notes that nothing is derived from a master key any more, so
// that a ring need not have it, and that nothing will be. It refuses while
// anything is, and to retire the only one in use. Retiring one again changes
// nothing.
func (s *apiKeys) RetireMaster(ctx context.Context, id string, now time.Time) error {
	for range changeTries {
		found, err := s.readMasterUsage(ctx, now)
		if err != nil {
			return err
		}
		switch use := found.of(id); {
		case use == nil:
			return fmt.Errorf("the store has never used a master key %q", id)
		case use.Retired:
			return nil
		case use.InUse():
			return fmt.Errorf("the master key %q is in use: from it are derived %v", id, use)
		case !slices.ContainsFunc(found.uses, func(u MasterUse) bool { return u.ID != id && !u.Retired }):
			return fmt.Errorf("the master key %q is the only one in use: make another one first", id)
		}
		retired, err := s.retireMaster(ctx, id, found)
		if err != nil || retired {
			return err
		}
	}
	return etcd.Unavailable(errors.New("API keys or endpoints of webhooks keep being changed"))
}

// retireMaster moves the fingerprint of a master key, unless an API key or an endpoint
// of webhooks was made or changed since the scan.
func (s *apiKeys) retireMaster(ctx context.Context, id string, found *masterUsage) (bool, error) {
	print, err := s.etcd.Get(ctx, "retire_master", layout.MasterKeyKey(id))
	if err != nil || print == nil {
		return false, err // retired meanwhile
	}
	var inDoubt bool
	response, err := s.etcd.Resolve(ctx, "retire_master", &inDoubt,
		[]clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(layout.APIKeysMark), "=", found.mark),
			clientv3.Compare(clientv3.ModRevision(layout.WebhooksMark), "=", found.webhooksMark),
			masterInUse(id),
		},
		[]clientv3.Op{
			clientv3.OpDelete(layout.MasterKeyKey(id)),
			clientv3.OpPut(layout.RetiredMasterKey(id), string(print)),
		},
		[]clientv3.Op{clientv3.OpGet(layout.APIKeysMark, clientv3.WithKeysOnly())})
	if err != nil {
		return false, err
	}
	return response.Succeeded, nil
}
