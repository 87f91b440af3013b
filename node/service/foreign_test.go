package service_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node/service"
	"licet/node/store"
)

// etcdRequests counts the requests of a store to etcd.
func etcdRequests(t *testing.T, m *metrics.Metrics) (count uint64) {
	t.Helper()
	all := make(chan prometheus.Metric)
	go func() {
		defer close(all)
		m.StoreDuration.Collect(all)
	}()
	for one := range all {
		var written dto.Metric
		if err := one.Write(&written); err != nil {
			t.Fatal(err)
		}
		count += written.GetHistogram().GetSampleCount()
	}
	return count
}

// TestForeignThings looks up records of another account, and a pay page with a wrong token: the answer and the number
// of requests to etcd are the same as for a record that does not exist.
func TestForeignThings(t *testing.T) {
	cfg := nodetest.StoreConfig()
	db := nodetest.OpenWith(t, cfg)
	n := nodetest.New(t, db)
	ctx := nodetest.Context(t)
	owner, stranger := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test)

	order, _, err := n.CreateOrder(ctx, owner, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	metadata := `{"a":"` + strings.Repeat("x", 8<<10) + `"}`
	granted, _, err := n.Grant(ctx, owner,
		service.Grant{ProductID: order.ProductID, Quantity: 2, MaxDevices: new(0), Metadata: metadata})
	nodetest.WantError(t, err, nil)
	many := granted[0].License.Key
	for i := range 40 {
		_, err := n.Activate(ctx,
			licensing.Activate{Target: licensing.Target{Key: many}, Device: fmt.Sprint("device-", i)})
		nodetest.WantError(t, err, nil)
	}
	page := store.DevicePage{Limit: 1000}
	reissued, _, err := n.ReissueLicense(ctx, owner,
		service.Reissue{Target: licensing.Target{Key: granted[1].License.Key, Caller: owner}})
	nodetest.WantError(t, err, nil)
	newKey, _, err := nodetest.LicenseKeys.Parse(nodetest.LicenseKeys.Text(reissued.License.CurrentKey()))
	nodetest.WantError(t, err, nil)
	_, err = n.ResolveKey(ctx, newKey, owner, netip.Addr{}) // this node remembers the key
	nodetest.WantError(t, err, nil)
	noNewKey := nodetest.LicenseKeys.MintReissued("LIC", owner, [keyring.LicenseKeyEntropy]byte{1, 2, 3})
	byNewKey := func(n *service.Service, key licensing.LicenseKey) error {
		key, err := n.ResolveKey(ctx, key, stranger, netip.Addr{})
		if err == nil {
			_, err = n.License(ctx, stranger, key, page)
		}
		return err
	}
	noLicense := nodetest.LicenseKeys.Mint("LIC", owner, [keyring.LicenseKeyEntropy]byte{1, 2, 3})
	noOrder := licensing.NewOrderNo(owner, strings.Repeat("0", 26))
	event := nodetest.FeedOf(t, db, owner)[0].ID
	noEvent := []byte(event) // with another hash of the record
	if at := &noEvent[len(event)-8]; *at == 'A' {
		*at = 'B'
	} else {
		*at = 'A'
	}
	for _, c := range []struct {
		name             string
		foreign, unknown func(n *service.Service) error
		want             error
	}{
		{"a license", func(n *service.Service) error {
			_, err := n.License(ctx, stranger, many, page)
			return err
		}, func(n *service.Service) error {
			_, err := n.License(ctx, stranger, noLicense, page)
			return err
		}, licensing.ErrLicenseNotFound},
		{"a reissued key",
			func(n *service.Service) error { return byNewKey(n, newKey) },
			func(n *service.Service) error { return byNewKey(n, noNewKey) }, licensing.ErrLicenseNotFound},
		{"the events of a license", func(n *service.Service) error {
			_, err := n.LicenseEvents(ctx, stranger, many, store.HistoryPage{Limit: 100})
			return err
		}, func(n *service.Service) error {
			_, err := n.LicenseEvents(ctx, stranger, noLicense, store.HistoryPage{Limit: 100})
			return err
		}, licensing.ErrLicenseNotFound},
		{"an order", func(n *service.Service) error {
			_, err := n.Order(ctx, stranger, order.OrderNo)
			return err
		}, func(n *service.Service) error {
			_, err := n.Order(ctx, stranger, noOrder)
			return err
		}, licensing.ErrOrderNotFound},
		{"the events of an order", func(n *service.Service) error {
			_, err := n.OrderEvents(ctx, stranger, order.OrderNo, store.HistoryPage{Limit: 100})
			return err
		}, func(n *service.Service) error {
			_, err := n.OrderEvents(ctx, stranger, noOrder, store.HistoryPage{Limit: 100})
			return err
		}, licensing.ErrOrderNotFound},
		{"an event", func(n *service.Service) error {
			_, err := n.Event(ctx, stranger, event)
			return err
		}, func(n *service.Service) error {
			_, err := n.Event(ctx, stranger, string(noEvent))
			return err
		}, licensing.ErrEventNotFound},
		{"a pay page", func(n *service.Service) error {
			_, err := n.OrderToPay(ctx, order.OrderNo, strings.Repeat("0", 32))
			return err
		}, func(n *service.Service) error {
			_, err := n.OrderToPay(ctx, noOrder, strings.Repeat("0", 32))
			return err
		}, licensing.ErrOrderNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			fresh := nodetest.StoreConfig()
			for where, counted := range map[string]*metrics.Metrics{
				"this node": cfg.Metrics, "another node": fresh.Metrics,
			} {
				n := n
				if counted == fresh.Metrics {
					n = nodetest.New(t, nodetest.OpenWith(t, fresh))
				}
				cost := func(look func(*service.Service) error) uint64 {
					t.Helper()
					before := etcdRequests(t, counted)
					nodetest.WantError(t, look(n), c.want)
					return etcdRequests(t, counted) - before
				}
				if foreign, unknown := cost(c.foreign), cost(c.unknown); foreign != unknown {
					t.Errorf("%s: %d requests, and %d for a record that does not exist", where, foreign, unknown)
				}
			}
		})
	}
}
