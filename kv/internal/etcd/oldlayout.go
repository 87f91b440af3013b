package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
)

// ErrOldLayout refuses a store whose keys this build can't read. No build converts such a store.
var ErrOldLayout = fmt.Errorf("an earlier build wrote this store in the layout lc1, and this build reads only the "+
	"layout %s: use an empty etcd or an empty data directory; export the licenses with the earlier build, rename the "+
	"column license_key of the file to external_key, and import the file with \"licet licenses import\"",
	keyspace.Prefix[:len(keyspace.Prefix)-1])

// RefuseOldLayout returns [ErrOldLayout] if the store has a key that every store of the layout before this one has. A
// user of etcd that may not read such a key uses a store of this layout.
func RefuseOldLayout(ctx context.Context, kv clientv3.KV) error {
	found, err := kv.Get(ctx, keyspace.OldCheckKey, clientv3.WithKeysOnly())
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return nil
	case err == nil && len(found.Kvs) > 0:
		return ErrOldLayout
	}
	return err
}

// refuseOldLayout calls RefuseOldLayout until etcd answers or ctx ends.
func (c *Client) refuseOldLayout(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := RefuseOldLayout(ctx, c.KV)
		if err == nil || errors.Is(err, ErrOldLayout) || ctx.Err() != nil || Classify(err) != Unknown {
			return err
		}
		PauseBeforeResend(ctx, attempt)
	}
}
