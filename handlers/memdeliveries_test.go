package handlers_test

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"licet/licensing"
	"licet/node/store"
)

// memDeliveries is a store.DeliveryLog without a database, for requests over HTTP. It delivers nothing:
// a test puts the deliveries in.
type memDeliveries struct {
	store.DeliveryLog // no other method is called
	store             *memStore
	progresses        map[string]store.DeliveryProgress
	items             map[string][]store.Delivery // in the order of a page
	replays           map[string][]store.Replay
}

const maxMemReplays = 16

func newMemDeliveries(db *memStore) *memDeliveries {
	return &memDeliveries{
		store: db, progresses: make(map[string]store.DeliveryProgress),
		items: make(map[string][]store.Delivery), replays: make(map[string][]store.Replay),
	}
}

func (m *memDeliveries) Progresses(_ context.Context, endpoints ...string) (map[string]store.DeliveryProgress, error) {
	defer m.store.read()()
	found := make(map[string]store.DeliveryProgress)
	for _, id := range endpoints {
		if p, ok := m.progresses[id]; ok {
			found[id] = p
		}
	}
	return found, m.store.fail
}

func (m *memDeliveries) Deliveries(
	_ context.Context, endpoint string, page store.DeliveryPage,
) (store.Deliveries, error) {
	defer m.store.read()()
	at, err := strconv.Atoi(cmp.Or(page.After, "0"))
	if err != nil {
		return store.Deliveries{}, store.ErrBadPosition
	}
	var list store.Deliveries
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

func (m *memDeliveries) AddReplay(
	_ context.Context, _ licensing.Owner, endpoint string, replay store.Replay, claims ...store.Write,
) error {
	defer m.store.read()()
	if m.store.fail != nil {
		return m.store.fail
	}
	if len(m.replays[endpoint]) >= maxMemReplays {
		return store.ErrTooManyReplays
	}
	if !m.store.writeClaims(claims) {
		return store.ErrClaimTaken
	}
	m.replays[endpoint] = append(m.replays[endpoint], replay)
	return m.store.commit
}

// asked returns the requested replays.
func (m *memDeliveries) asked(endpoint string) []store.Replay {
	defer m.store.read()()
	return slices.Clone(m.replays[endpoint])
}
