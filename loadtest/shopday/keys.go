package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"licet/client"
	"licet/loadtest/stage"
)

// openKeys makes the API keys for the day's work, each with no more scopes than it needs.
func (s *keyring) openKeys(ctx context.Context, rootKey string) error {
	var err error
	if s.root, err = s.client(rootKey); err != nil {
		return err
	}
	for key, err := range s.root.Keys(ctx) {
		if err != nil {
			return err
		}
		s.ledger.opened(&keyEntry{id: key.ID, name: key.Name, scopes: key.Scopes})
		s.rootScopes = key.Scopes
	}
	for _, k := range []struct {
		into   **client.Client
		name   string
		scopes []string
	}{
		{&s.desk, "service desk", []string{"orders", "orders:refunds", "licenses"}},
		{&s.clerk, "clerk", []string{"products"}},
		{&s.reader, "bookkeeper", []string{"orders:read", "licenses:read", "products:read", "keys:read"}},
	} {
		issued, err := s.makeKey(ctx, client.NewKey{Name: k.name, Scopes: k.scopes})
		if err != nil {
			return err
		}
		if *k.into, err = s.client(issued.APIKey); err != nil {
			return err
		}
	}
	till, err := s.makeKey(ctx, client.NewKey{Name: "till", Scopes: []string{"orders"}, RequireSignature: true})
	if err != nil {
		return err
	}
	s.tillKey, s.tillID = till.APIKey, till.ID
	s.till, err = s.client(till.APIKey, client.WithSigning(till.ID, till.APISecret))
	return err
}

// makeKey makes an API key and records it. If its text is lost, makeKey revokes the key
// and makes another.
func (s *keyring) makeKey(ctx context.Context, k client.NewKey) (*client.IssuedKey, error) {
	for {
		issued, err := s.root.CreateKey(ctx, k)
		if issued != nil {
			s.ledger.opened(&keyEntry{id: issued.ID, name: k.Name, scopes: k.Scopes, signed: k.RequireSignature,
				ends: k.ExpiresAt})
		}
		switch {
		case err == nil:
			s.ledger.Did("API keys made")
			return issued, nil
		case !errors.Is(err, client.ErrSecretLost):
			return nil, fmt.Errorf("make the API key of the %s: %w", k.Name, err)
		}
		// The response with the text of the key is lost.
		if _, err := s.root.RevokeKey(ctx, issued.ID); err != nil {
			return nil, err
		}
		s.ledger.keys[issued.ID].revoked = true
	}
}

// userOf makes an API key, and a client with it. A failure is a problem, and returns nil.
func (s *keyring) userOf(ctx context.Context, k client.NewKey) (*client.IssuedKey, *client.Client) {
	issued, err := s.makeKey(ctx, k)
	if !s.worked("making an API key", k.Name, err) {
		return nil, nil
	}
	user, err := s.client(issued.APIKey)
	s.worked("making a client", k.Name, err)
	return issued, user
}

// overstep tries with each key what the key must not do.
func (s *keyring) overstep(ctx context.Context) {
	order := client.NewOrder{ProductID: "editor", Amount: 1, Currency: "USD"}
	s.refused("an order by a key that may only read", "bookkeeper", 40300, errorOf(s.reader.CreateOrder(ctx, order)))
	s.refused("an order by a key for products", "clerk", 40300, errorOf(s.clerk.CreateOrder(ctx, order)))
	s.refused("a grant by a key for orders", "till", 40300,
		errorOf(s.till.GrantLicenses(ctx, client.Grant{ProductID: "editor", Quantity: 1})))
	s.refused("a product by a key for licenses", "service desk", 40300,
		errorOf(s.desk.PutProduct(ctx, "editor", client.ProductTerms{Name: "Mine"})))
	s.refused("an API key by a key that may only read", "bookkeeper", 40300,
		errorOf(s.reader.CreateKey(ctx, client.NewKey{Name: "more", Scopes: []string{"keys"}})))

	_, manager := s.userOf(ctx, client.NewKey{Name: "manager", Scopes: []string{"keys", "orders:read"}})
	if manager == nil {
		return
	}
	s.refused("an API key with more scopes than its maker's", "manager", 42200,
		errorOf(manager.CreateKey(ctx, client.NewKey{Name: "more", Scopes: []string{"orders:read", "licenses"}})))

	unsigned, err := s.client(s.tillKey)
	if s.worked("making a client", "till", err) {
		s.refused("a request without the signature that its key demands", "till", 40102,
			errorOf(unsigned.CreateOrder(ctx, order)))
	}
	forger, err := s.client(s.tillKey,
		client.WithSigning(s.tillID, "lks_test_0123456789ABCDEFGHJKMNPQRSTVWXYZ0123456789ABCDEFGHJK"))
	if s.worked("making a client", "till", err) {
		s.refused("a request signed with another secret", "till", 40101, errorOf(forger.CreateOrder(ctx, order)))
	}
}

// keeper makes an API key that may rotate the secret of each key, and a client that signs with the key. A failure is a
// problem, and returns nil.
func (s *keyring) keeper(ctx context.Context) (*client.IssuedKey, *client.Client) {
	issued, err := s.makeKey(ctx, client.NewKey{Name: "keeper", Scopes: s.rootScopes, RequireSignature: true})
	if !s.worked("making an API key", "keeper", err) {
		return nil, nil
	}
	keeper, err := s.client(issued.APIKey, client.WithSigning(issued.ID, issued.APISecret))
	s.worked("making a client", "keeper", err)
	return issued, keeper
}

// rotate gives a key a new secret. If the answer with the secret is lost, it rotates
// again, as the client advises; then the secret before is not valid any more.
func (s *keyring) rotate(
	ctx context.Context, by *client.Client, id string, overlap time.Duration,
) (issued *client.IssuedKey, again bool, err error) {
	for {
		issued, err = by.RotateKey(ctx, id, client.Rotation{Overlap: &overlap})
		if !errors.Is(err, client.ErrSecretLost) {
			return issued, again, err
		}
		again = true
	}
}

const (
	// overlap is how long the till keeps using its previous secret.
	overlap = 3 * time.Second
	// revocation is how long nodes may still accept a revoked API key.
	revocation = 2 * time.Second
)

// rotateTill gives the till a new secret. Both secrets are valid until the overlap ends,
// and then the old one is not.
func (s *keyring) rotateTill(ctx context.Context) {
	old := s.till
	_, keeper := s.keeper(ctx)
	if keeper == nil {
		return
	}
	issued, again, err := s.rotate(ctx, keeper, s.tillID, overlap)
	if !s.done("secrets rotated", "till", err) {
		return
	}
	s.till, err = s.client(s.tillKey, client.WithSigning(s.tillID, issued.APISecret))
	if !s.worked("making a client", "till", err) {
		return
	}
	until := issued.PreviousSecretUntil
	good := until
	if again {
		good = time.Time{}
	}
	s.watchEnd(ctx, "the secret before a rotation", old, good, until, 40101)
	for node := range nodeCount {
		_, err := s.till.ListOrders(stage.AtNode(ctx, node), client.OrderFilter{}, client.Page{Limit: 1})
		s.done("requests signed with the new secret", "till", err)
	}
}

// revokeKey revokes a key that is in use.
func (s *keyring) revokeKey(ctx context.Context) {
	issued, thief := s.userOf(ctx, client.NewKey{Name: "stolen", Scopes: []string{"orders:read"}})
	if thief == nil {
		return
	}
	for node := range nodeCount { // each remembers it from here on
		_, err := thief.ListOrders(stage.AtNode(ctx, node), client.OrderFilter{}, client.Page{Limit: 1})
		s.worked("using an API key before it is revoked", "stolen", err)
	}
	_, err := s.root.RevokeKey(ctx, issued.ID)
	revoked := time.Now()
	if s.done("API keys revoked", "stolen", err) {
		s.ledger.keys[issued.ID].revoked = true
		s.watchEnd(ctx, "a revoked API key", thief, time.Time{}, revoked.Add(revocation), 40100)
	}
}

// expireKey lets a key expire, and then revokes it: until then it counts as derived from
// its master key.
func (s *keyring) expireKey(ctx context.Context) {
	ends := time.Now().Add(shortLife).Truncate(time.Millisecond)
	issued, guest := s.userOf(ctx,
		client.NewKey{Name: "for a moment", Scopes: []string{"orders:read"}, ExpiresAt: ends})
	if guest == nil {
		return
	}
	s.watchEnd(ctx, "an API key that has run out", guest, ends, ends, 40100)
	now, err := s.reader.Key(ctx, issued.ID)
	s.check(err == nil && now.Status == stateExpired, "an API key has run out, and is %+v, %v", now, err)
	s.refused("rotating an API key that has run out", "for a moment", 40407,
		errorOf(s.root.RotateKey(ctx, issued.ID, client.Rotation{})))
	if _, err = s.root.RevokeKey(ctx, issued.ID); s.done("API keys revoked", "for a moment", err) {
		s.ledger.keys[issued.ID].revoked = true
	}
}

// watchEnd uses a key at each node until it is refused there. Answers before good must be
// successes. Requests after end must be refused with the code, and stay refused.
func (s *keyring) watchEnd(ctx context.Context, what string, c *client.Client, good, end time.Time, code int) {
	for node := range nodeCount {
		refusals := 0
		for refusals < 3 && ctx.Err() == nil {
			sent := time.Now()
			_, err := c.ListOrders(stage.AtNode(ctx, node), client.OrderFilter{}, client.Page{Limit: 1})
			answered := time.Now()
			switch got := codeOf(err); {
			case got != 0 && got != code:
				s.ledger.Problem("%s: a request was answered %d (%v)", what, got, err)
				return
			case got == code && answered.Before(good):
				s.ledger.Problem("%s was refused %v too early", what, good.Sub(answered))
				return
			case got == 0 && sent.After(end):
				s.ledger.Problem("%s was taken %v too late", what, sent.Sub(end))
				return
			case got == 0 && refusals > 0:
				s.ledger.Problem("%s was taken again after it had been refused", what)
				return
			case got == code:
				refusals++
			}
			time.Sleep(20 * time.Millisecond) // so as not to be a load
		}
	}
	s.ledger.Did("refused: " + what)
}
