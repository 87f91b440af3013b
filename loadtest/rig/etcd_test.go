package rig

import (
	"context"
	"testing"
	"time"

	"licet/internal/process"
)

// TestMain makes this binary a member of etcd where it was started as one.
func TestMain(m *testing.M) {
	process.BeEtcd()
	m.Run()
}

// TestLeaderIsLostAndComesBack kills the leader of three members, and starts it
// again with the data it had.
func TestLeaderIsLostAndComesBack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := StartEtcd(ctx, t.TempDir(), 3, "1h")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	first, err := c.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Admin.Put(ctx, "key", "value"); err != nil {
		t.Fatal(err)
	}
	c.Members[first].Kill()
	second, err := c.Leader(ctx)
	for err != nil || second == first { // there is none yet
		if ctx.Err() != nil {
			t.Fatal("no other leader: ", err)
		}
		second, err = c.Leader(ctx)
	}
	if err := c.StartMember(ctx, first, startTimeout); err != nil {
		t.Fatal(err)
	}
	client, err := NewEtcdClient(c.Endpoints[first : first+1])
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer, err := client.Get(ctx, "key")
	if err != nil || len(answer.Kvs) != 1 {
		t.Errorf("the member that came back has %v, %v", answer, err)
	}
}
