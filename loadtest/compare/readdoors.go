package main

import (
	"context"
	"io"
	"strings"
	"time"

	"licet/client"
)

const (
	rivalPage   = 100
	rivalWait   = 10 * time.Second // of a long poll
	rivalBodies = 256              // connections of a client that completes no request
	rivalBody   = 60 << 10         // bytes of a body that lacks some
)

// exportAll makes a client read all licenses and all events, many times at the same time.
func (r *rival) exportAll(context.Context) (attack, func(context.Context) error, error) {
	var cursors [fairRivals][rivalAtOnce]string
	return together(func(ctx context.Context, c, i int) error {
		at := client.Page{Limit: rivalPage, Cursor: cursors[c][i]}
		if i%2 == 0 {
			page, err := r.here.ListLicenses(ctx, client.LicenseFilter{}, at)
			if err == nil {
				cursors[c][i] = page.NextCursor
			}
			return err
		}
		page, err := r.here.ListEvents(ctx, client.EventFilter{}, at, 0)
		if err == nil {
			cursors[c][i] = ""
			if page.HasMore {
				cursors[c][i] = page.NextCursor
			}
		}
		return err
	}), done, nil
}

// waitForEvents makes one client grant licenses, and the other clients wait for the events of these licenses.
func (r *rival) waitForEvents(context.Context) (attack, func(context.Context) error, error) {
	wait := together(func(ctx context.Context, _, _ int) error {
		_, err := r.here.ListEvents(ctx, client.EventFilter{After: client.Now}, client.Page{Limit: rivalPage},
			rivalWait)
		return err
	})
	return func(ctx context.Context, c, turn int) error {
		if c > 0 {
			return wait(ctx, c, turn)
		}
		_, err := r.here.GrantLicenses(ctx, client.Grant{ProductID: "rival", Quantity: 1})
		return err
	}, done, nil
}

// neverComplete makes a client begin large requests, without credentials, and never complete them.
func (r *rival) neverComplete(context.Context) (attack, func(context.Context) error, error) {
	begun := "POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 65536\r\n\r\n" +
		strings.Repeat(" ", rivalBody)
	open := newHoard(rivalBodies)
	return func(ctx context.Context, c, _ int) error {
		conn, err := open.replace(ctx, c, r.dial)
		if err != nil {
			return err
		}
		if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		_, err = io.WriteString(conn, begun)
		return err
	}, open.close, nil
}

// lookUpForeign makes a client look up a license of the other account. The license has many devices.
func (r *rival) lookUpForeign(context.Context) (attack, func(context.Context) error, error) {
	return together(func(ctx context.Context, _, _ int) error {
		_, err := r.here.License(ctx, string(r.foreign))
		if client.HasReason(err, "license_not_found") {
			return nil // the node has looked the license up
		}
		return err
	}), done, nil
}
