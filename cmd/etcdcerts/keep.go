package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// tries bounds how often an operation starts over because another run of etcdcerts was faster.
const tries = 5

// keep creates what is missing, renews what will expire soon, and leaves the rest alone.
func keep(ctx context.Context, cfg config, s store, now time.Time, stdout io.Writer) error {
	clients, members, err := authorities(ctx, cfg, s, now, stdout)
	if err != nil {
		return err
	}
	for _, w := range cfg.wanted(clients, members) {
		if err := w.keep(ctx, cfg, s, now, stdout); err != nil {
			return fmt.Errorf("the Secret %s: %w", w.secret, err)
		}
	}
	return errors.Join(clients.ending(now), members.ending(now))
}

// The members of the Secret that contains the authorities.
const (
	clientAuthority = "client-ca"
	memberAuthority = "peer-ca"
)

// authorities reads the two authorities, or creates them. Clients have an authority of their own, so that no client can
// pass for a member.
func authorities(
	ctx context.Context, cfg config, s store, now time.Time, stdout io.Writer,
) (clients, members *authority, err error) {
	name := cfg.service + "-authority"
	for range tries {
		have, err := s.get(ctx, name)
		if errors.Is(err, errNotFound) {
			have, err = cfg.newAuthorities(name, now)
			if err == nil {
				err = s.put(ctx, have)
			}
			if errors.Is(err, errConflict) {
				continue
			}
			if err == nil {
				fmt.Fprintf(stdout, "%s: made, good for ten years\n", name)
			}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the Secret %s: %w", name, err)
		}
		// An authority that can't be read is never replaced: all certificates that it has signed would become invalid.
		if clients, err = have.authority(clientAuthority); err == nil {
			members, err = have.authority(memberAuthority)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the Secret %s: %w; put it back from a copy, or remove it to have all "+
				"certificates made anew", name, err)
		}
		return clients, members, nil
	}
	return nil, nil, fmt.Errorf("the Secret %s: %w", name, errConflict)
}

func (c config) newAuthorities(name string, now time.Time) (*secret, error) {
	made := newSecret(name, "Opaque")
	for _, which := range []string{clientAuthority, memberAuthority} {
		a, err := newAuthority(c.service+" "+which, now)
		if err != nil {
			return nil, err
		}
		made.Data[which+".crt"], made.Data[which+".key"] = a.certPEM, a.keyPEM
	}
	return made, nil
}

func (s *secret) authority(which string) (*authority, error) {
	a, err := readAuthority(s.Data[which+".crt"], s.Data[which+".key"])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", which, err)
	}
	return a, nil
}

func newSecret(name, kind string) *secret {
	return &secret{
		APIVersion: "v1", Kind: "Secret", Type: kind,
		Metadata: metadata{Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "etcdcerts",
			"app.kubernetes.io/part-of": "licet"}},
		Data: map[string][]byte{},
	}
}

// wanted is a certificate that must exist, in a Secret of its own.
type wanted struct {
	secret string
	who    identity
	by     *authority
}

// wanted lists the certificates: two of the members, toward clients and toward each other, and two of clients. etcd
// takes a client's user from the name: nodes are the user licet, backups and defragmentation the user root. A client's
// certificate names no host, since etcd would check the client's address.
func (c config) wanted(clients, members *authority) []wanted {
	hosts := c.hosts()
	return []wanted{
		{c.service + "-server-tls", identity{c.service, slices.Concat(hosts, []string{"localhost"})}, clients},
		{c.service + "-peer-tls", identity{c.service, hosts}, members},
		{c.service + "-client-tls", identity{"licet", nil}, clients},
		{c.service + "-maintenance-tls", identity{"root", nil}, clients},
	}
}

// hosts lists the names of all members, inside the namespace and from other namespaces.
func (c config) hosts() []string {
	var list []string
	for i := range c.members {
		name := fmt.Sprintf("%s-%d.%s", c.service, i, c.service)
		list = append(list, name, name+"."+c.namespace, name+"."+c.namespace+".svc")
	}
	return list
}

// keep checks one certificate, and replaces it if it is not good.
func (w wanted) keep(ctx context.Context, cfg config, s store, now time.Time, stdout io.Writer) error {
	for range tries {
		have, err := s.get(ctx, w.secret)
		verb := "renewed"
		if errors.Is(err, errNotFound) {
			have, err, verb = newSecret(w.secret, "kubernetes.io/tls"), nil, "made"
		}
		if err != nil {
			return err
		}
		if w.by.good(w.who, have.Data["tls.crt"], have.Data["tls.key"], now) &&
			bytes.Equal(have.Data["ca.crt"], w.by.certPEM) {
			fmt.Fprintf(stdout, "%s: good\n", w.secret)
			return nil
		}
		certificate, key, err := w.by.issue(w.who, now, cfg.lifetime)
		if err != nil {
			return err
		}
		have.Data = map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": w.by.certPEM}
		switch err := s.put(ctx, have); {
		case err == nil:
			fmt.Fprintf(stdout, "%s: %s, good until %s\n", w.secret, verb,
				now.Add(cfg.lifetime).UTC().Format(time.DateOnly))
			return nil
		case !errors.Is(err, errConflict):
			return err
		}
	}
	return errConflict
}
