package main

import (
	"context"
	"fmt"

	"licet/client"
	"licet/loadtest/stage"
)

// shop is the customers, and the shop that sells to them.
type shop struct {
	journal  *journal
	desk     *client.Client // with an API key
	program  *client.Client // an installed copy, without one
	browser  *stage.Browser
	shared   []string // license keys
	operated func()   // called after each operation
	proceed  func(context.Context)
}

const productID = "editor"

// open makes the product and the licenses that all customers share.
func (s *shop) open(ctx context.Context) error {
	devices := maxDevices
	if _, err := s.desk.PutProduct(ctx, productID,
		client.ProductTerms{Name: "Editor", KeyPrefix: "EDIT", MaxDevices: &devices}); err != nil {
		return fmt.Errorf("describe the product: %w", err)
	}
	granted, err := s.desk.GrantLicenses(ctx,
		client.Grant{ProductID: productID, Quantity: sharedLicenses, MaxDevices: new(int)})
	if err != nil {
		return fmt.Errorf("grant licenses: %w", err)
	}
	for i := range granted {
		s.shared = append(s.shared, granted[i].LicenseKey)
		s.journal.acknowledged(change{kind: "license.issued", subject: granted[i].LicenseKey})
	}
	return nil
}

// play carries out the plan of a customer. The first failure ends it: the client has already repeated each
// request for as long as its patience lasts.
func (s *shop) play(ctx context.Context, t customerPlan) {
	license := ""
	if t.ordered {
		var err error
		if license, err = s.buy(ctx, &t); err != nil {
			s.failed(ctx, &t, err)
			return
		}
	} else {
		license = s.shared[t.shared]
	}
	for i := range t.devices {
		if err := s.activate(ctx, license, t.device(i)); err != nil {
			s.failed(ctx, &t, err)
			return
		}
	}
	for i := range t.removals {
		if err := s.remove(ctx, license, t.device(i)); err != nil {
			s.failed(ctx, &t, err)
			return
		}
	}
}

func (s *shop) failed(ctx context.Context, t *customerPlan, err error) {
	if ctx.Err() == nil {
		s.journal.Problem("%v: %v", t, err)
	}
}

// buy makes an order, and leaves, cancels or pays it. It returns the license of a paid
// order.
func (s *shop) buy(ctx context.Context, t *customerPlan) (license string, err error) {
	s.proceed(ctx)
	o, err := s.desk.CreateOrder(ctx, client.NewOrder{
		ProductID: productID, Amount: 4900, Currency: "USD", Description: t.String(),
		BuyerEmail: fmt.Sprintf("buyer-%d@example.com", t.n),
	})
	if err != nil {
		return "", fmt.Errorf("make an order: %w", err)
	}
	s.journal.acknowledged(change{kind: "order.created", subject: o.OrderNo})
	s.journal.Did("orders made")
	s.operated()
	switch t.fate {
	case canceled:
		if _, err := s.desk.CancelOrder(ctx, o.OrderNo, "not wanted any more"); err != nil {
			return "", fmt.Errorf("cancel order %s: %w", o.OrderNo, err)
		}
		s.journal.acknowledged(change{kind: "order.canceled", subject: o.OrderNo})
		s.journal.Did("orders canceled")
	case paid:
		if _, err := s.browser.Press(ctx, o.PayURL, "pay"); err != nil {
			return "", fmt.Errorf("pay order %s: %w", o.OrderNo, err)
		}
		now, err := s.desk.Order(ctx, o.OrderNo)
		if err != nil {
			return "", fmt.Errorf("look order %s up: %w", o.OrderNo, err)
		}
		if now.Status != "paid" || now.LicenseKey == "" {
			return "", fmt.Errorf("order %s was paid, and is %s, with license %q", o.OrderNo, now.Status,
				now.LicenseKey)
		}
		s.journal.acknowledged(change{kind: "order.paid", subject: o.OrderNo},
			change{kind: "license.issued", subject: now.LicenseKey})
		s.journal.Did("orders paid")
		return now.LicenseKey, nil
	}
	return "", nil
}

func (s *shop) activate(ctx context.Context, license, device string) error {
	s.proceed(ctx)
	if _, err := s.program.Activate(ctx,
		client.Activation{LicenseKey: license, DeviceID: device, Mode: "test"}); err != nil {
		return fmt.Errorf("activate %s on %s: %w", license, device, err)
	}
	s.journal.activated(license, device)
	s.journal.Did("devices bound")
	s.operated()
	return nil
}

func (s *shop) remove(ctx context.Context, license, device string) error {
	s.proceed(ctx)
	var response client.Response
	r, err := s.desk.RemoveDevice(ctx, license, device, client.Record(&response))
	switch {
	case err != nil:
		return fmt.Errorf("remove %s from %s: %w", device, license, err)
	case !r.Removed && response.Tries == 1: // of a request that was sent again, the first may have removed it
		return fmt.Errorf("license %s had lost %s", license, device)
	}
	s.journal.acknowledged(change{kind: "device.removed", subject: license, device: device})
	s.journal.Did("devices removed")
	s.operated()
	return nil
}
