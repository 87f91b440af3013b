package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// browser is how buyers see the pay pages: it reads them, presses their buttons
// and goes where it is led. Where the service is away it tries again, as buyers
// do.
type browser struct{ http *http.Client }

func newBrowser(b *balancer) *browser {
	return &browser{&http.Client{
		Transport:     b,
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// patience is how long somebody tries again.
const patience = 30 * time.Second

// visit asks for a page, or sends its form, and gives the answer.
func (b *browser) visit(ctx context.Context, address, action string) (status int, location, page string, err error) {
	until := time.Now().Add(patience)
	for {
		status, location, page, err = b.try(ctx, address, action)
		settled := err == nil && status < http.StatusInternalServerError
		if settled || ctx.Err() != nil || time.Now().After(until) {
			return status, location, page, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (b *browser) try(ctx context.Context, address, action string) (status int, location, page string, err error) {
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
		request.Header.Set("Origin", publicURL)
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

// open gives a page that must be there.
func (b *browser) open(ctx context.Context, address string) (string, error) {
	status, _, page, err := b.visit(ctx, address, "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the page answers HTTP %d: %.200s", status, page)
	}
	return page, err
}

// form finds where the form of a pay page leads, and that it has the button.
func (b *browser) form(page, address, action string) (string, error) {
	found := regexp.MustCompile(`<form method="post" action="([^"]+)">`).FindStringSubmatch(page)
	if found == nil || !strings.Contains(page, `name="action" value="`+action+`"`) {
		return "", errors.New("the page has no form with that button")
	}
	base, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	to, err := base.Parse(found[1])
	if err != nil {
		return "", err
	}
	return to.String(), nil
}

// press sends the form to an address, and gives the page that this leads to.
func (b *browser) press(ctx context.Context, address, action string) (string, error) {
	status, location, page, err := b.visit(ctx, address, action)
	switch {
	case err != nil:
		return "", err
	case status != http.StatusSeeOther:
		return "", &pageError{status, page}
	}
	return b.open(ctx, location)
}

// pageError is a page that tells that something was refused.
type pageError struct {
	status int
	page   string
}

func (e *pageError) Error() string {
	return fmt.Sprintf("the page answers HTTP %d: %.200s", e.status, e.page)
}
