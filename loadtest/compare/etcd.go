package main

import (
	"context"

	"licet/loadtest/rig"
)

// accountName is whom the API keys are for.
const accountName = "compare"

// cluster is an etcd with what is measured of it beside the load.
type cluster struct{ *rig.Cluster }

func startEtcd(ctx context.Context, dir string, members int, retention string) (*cluster, error) {
	started, err := rig.StartEtcd(ctx, dir, members, retention)
	if err != nil {
		return nil, err
	}
	return &cluster{started}, nil
}
