package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"licet/client"
)

const (
	rivalPage   = 100
	pageEnd     = 500              // bytes at the end of a page, with the cursor of the next page
	rivalWait   = 10 * time.Second // of a long poll
	rivalBodies = 256              // connections of a client that completes no request
	rivalBody   = 60 << 10         // bytes of a body that lacks some
)

// exportAll makes a client read all licenses and all events, many times at the same time.
func (r *rival) exportAll(context.Context) turnFunc {
	var cursors [fairRivals][rivalAtOnce]string
	return together(func(ctx context.Context, c, i int) error {
		path := []string{"/v1/licenses", "/v1/events"}[i%2] + "?limit=100" + cursors[c][i]
		page, err := r.send(ctx, "GET", path, "")
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(page[max(0, len(page)-pageEnd):]), `"next_cursor":"`)
		cursors[c][i] = ""
		if cursor, _, more := strings.Cut(rest, `"`); more && !strings.Contains(rest, `"has_more":false`) {
			cursors[c][i] = "&cursor=" + cursor
		}
		return nil
	})
}

// waitForEvents makes one client grant licenses, and the other clients wait for the events of these licenses.
func (r *rival) waitForEvents(context.Context) turnFunc {
	wait := together(func(ctx context.Context, _, _ int) error {
		_, err := r.here.Events.List(ctx, client.EventFilter{After: client.Now}, client.Page{Limit: rivalPage},
			rivalWait)
		return err
	})
	return func(ctx context.Context, c, turn int) error {
		if c > 0 {
			return wait(ctx, c, turn)
		}
		_, err := r.here.Licenses.Grant(ctx, client.Grant{ProductID: "rival", Quantity: 1})
		return err
	}
}

// neverComplete makes a client begin large requests, without credentials, and never complete them.
func (r *rival) neverComplete(context.Context) turnFunc {
	begun := "POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 65536\r\n\r\n" +
		strings.Repeat(" ", rivalBody)
	open := r.newHoard(rivalBodies)
	return func(ctx context.Context, c, _ int) error {
		conn, err := open.replace(ctx, c)
		if err != nil {
			return err
		}
		if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		_, err = io.WriteString(conn, begun)
		return err
	}
}

// lookUpForeign makes a client look up a license of the other account. The license has many devices.
func (r *rival) lookUpForeign(context.Context) turnFunc {
	return together(func(ctx context.Context, _, _ int) error {
		_, err := r.send(ctx, "GET", "/v1/licenses/"+string(r.foreign), "")
		if errors.Is(err, statusError(http.StatusNotFound)) {
			return nil // the node has looked the license up
		}
		return err
	})
}
