package stage

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"licet/loadtest/rig"
)

// Browser is a buyer on the pay pages: it reads them, presses their buttons and follows
// redirects. It repeats what the service does not answer, as buyers do.
type Browser struct{ http *http.Client }

// NewBrowser returns a browser whose requests go through a balancer.
func NewBrowser(b *Balancer) *Browser {
	return &Browser{&http.Client{
		Transport:     b,
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Patience is how long a buyer, or a client, repeats a request.
const Patience = 30 * time.Second

// visit asks for a page, or sends its form, and returns the answer.
func (b *Browser) visit(ctx context.Context, address, action string) (status int, location, page string, err error) {
	until := time.Now().Add(Patience)
	for {
		status, location, page, err = b.try(ctx, address, action)
		final := err == nil && status < http.StatusInternalServerError
		if final || ctx.Err() != nil || time.Now().After(until) {
			return status, location, page, err
		}
		rig.Rest(ctx, 200*time.Millisecond)
	}
}

func (b *Browser) try(ctx context.Context, address, action string) (status int, location, page string, err error) {
	method, form := http.MethodGet, ""
	if action != "" {
		method, form = http.MethodPost, url.Values{"action": {action}}.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form))
	if err != nil {
		return 0, "", "", err
	}
	if action != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", PublicURL)
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	response, err := b.http.Do(request)
	if err != nil {
		return 0, "", "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return 0, "", "", fmt.Errorf("read a page: %w", err)
	}
	return response.StatusCode, response.Header.Get("Location"), html.UnescapeString(string(text)), nil
}

// Open returns a page, which must exist.
func (b *Browser) Open(ctx context.Context, address string) (string, error) {
	status, _, page, err := b.visit(ctx, address, "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the page answers HTTP %d: %.200s", status, page)
	}
	return page, err
}

// Send sends the form to an address, and returns the address that this leads to, which may be at a payment provider.
func (b *Browser) Send(ctx context.Context, address, action string) (location string, err error) {
	status, location, page, err := b.visit(ctx, address, action)
	if err == nil && status != http.StatusSeeOther {
		err = &PageError{status, page}
	}
	return location, err
}

// Press sends the form to an address, and returns the page that this leads to.
func (b *Browser) Press(ctx context.Context, address, action string) (string, error) {
	location, err := b.Send(ctx, address, action)
	if err != nil {
		return "", err
	}
	return b.Open(ctx, location)
}

// PageError is a page that refuses something.
type PageError struct {
	Status int
	page   string
}

func (e *PageError) Error() string {
	return fmt.Sprintf("the page answers HTTP %d: %.200s", e.Status, e.page)
}
