package handlers_test

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"licet/licensing"
	"licet/node"
)

// memDeliveries is what a node is asked over HTTP of a node.DeliveryStore, without a
// database. What delivers is not in it: a test puts here what that would have stored.
type memDeliveries struct {
	node.DeliveryStore // nothing else of it is called
	store              *memStore
	progresses         map[string]node.DeliveryProgress
	items              map[string][]node.Delivery // as a page has them
	replays            map[string][]node.Replay
}

const maxMemReplays = 16

func newMemDeliveries(store *memStore) *memDeliveries {
	return &memDeliveries{
		store: store, progresses: make(map[string]node.DeliveryProgress),
		items: make(map[string][]node.Delivery), replays: make(map[string][]node.Replay),
	}
}

func (m *memDeliveries) Progresses(_ context.Context, endpoints ...string) (map[string]node.DeliveryProgress, error) {
	defer m.store.read()()
	found := make(map[string]node.DeliveryProgress)
	for _, id := range endpoints {
		if p, ok := m.progresses[id]; ok {
			found[id] = p
		}
	}
	return found, m.store.fail
}

func (m *memDeliveries) Deliveries(_ context.Context, endpoint string, page node.DeliveryPage) (node.Deliveries, error) {
	defer m.store.read()()
	at, err := strconv.Atoi(cmp.Or(page.After, "0"))
	if err != nil {
		return node.Deliveries{}, node.ErrBadPosition
	}
	var list node.Deliveries
	for i, d := range m.items[endpoint] {
		switch {
		case i < at, page.Status != "" && page.Status != d.Status:
		case len(list.Items) == page.Limit:
			list.Next = strconv.Itoa(i)
			return list, m.store.fail
		default:
			list.Items = append(list.Items, d)
		}
	}
	return list, m.store.fail
}

func (m *memDeliveries) AddReplay(_ context.Context, _ licensing.Owner, endpoint string, replay node.Replay, claims ...node.Write) error {
	defer m.store.read()()
	if m.store.fail != nil {
		return m.store.fail
	}
	if len(m.replays[endpoint]) >= maxMemReplays {
		return node.ErrTooManyReplays
	}
	if !m.store.writeClaims(claims) {
		return node.ErrClaimTaken
	}
	m.replays[endpoint] = append(m.replays[endpoint], replay)
	return m.store.commit
}

// asked gives the replays that were asked for.
func (m *memDeliveries) asked(endpoint string) []node.Replay {
	defer m.store.read()()
	return slices.Clone(m.replays[endpoint])
}
