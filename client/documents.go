package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// Document is a signed document of an account and mode, as the service or a cache in front of the service sent it. This
// package does not verify documents: package receipt does.
type Document struct {
	Text      string
	ETag      string
	MaxAge    time.Duration // for how long the document need not be asked for again
	Unchanged bool          // the document still has the ETag of the request; Text is empty
}

// ReceiptKeySet returns the signed set of receipt keys of an account and mode. It needs no API key.
func (c *Client) ReceiptKeySet(ctx context.Context, accountID, mode string) (Document, error) {
	d, err := c.document(ctx, "GET /v1/accounts/{account_id}/{mode}/jwks.json", accountID, mode, nil, "")
	if err != nil {
		return d, err
	}
	var set struct {
		Signed string `json:"signed"`
	}
	if json.Unmarshal([]byte(d.Text), &set) != nil || set.Signed == "" {
		return Document{}, errUnreadable
	}
	d.Text = set.Signed
	return d, nil
}

// Revocations returns the signed list of receipts of an account and mode that are void before their end. With after,
// the epoch of a list that the program has, the list may be an increment to that list. With etag, the list may be
// Unchanged. It needs no API key.
func (c *Client) Revocations(ctx context.Context, accountID, mode string, after int64, etag string) (Document, error) {
	query := url.Values{}
	if after > 0 {
		query.Set("after", strconv.FormatInt(after, 10))
	}
	return c.document(ctx, "GET /v1/accounts/{account_id}/{mode}/revocations", accountID, mode, query, etag)
}

// printable matches what may stand in If-None-Match: ASCII without spaces and control characters.
var printable = regexp.MustCompile(`^[!-~]+$`)

var maxAgePart = regexp.MustCompile(`\bmax-age=(\d{1,9})`)

// document gets a document, which is no answer of the API; its errors are.
func (c *Client) document(
	ctx context.Context, route, accountID, mode string, query url.Values, etag string,
) (d Document, err error) {
	sent, err := newCall(route, []string{accountID, mode}, query)
	if err != nil {
		return d, err
	}
	if !printable.MatchString(etag) { // the stored state of a program may be damaged
		etag = ""
	}
	sent.etag = etag
	err = c.sendWithRetries(ctx, sent, func() error {
		response, text, err := c.roundTrip(ctx, sent)
		if err != nil {
			return sent.failed(err)
		}
		unchanged := response.StatusCode == http.StatusNotModified && etag != ""
		if response.StatusCode != http.StatusOK && !unchanged {
			if failure := readResponse(response, text).failure; failure != nil {
				return failure
			}
			return sent.failed(errors.Join(errUnreadable, errors.New(response.Status)))
		}
		d = Document{Text: string(text), ETag: response.Header.Get("ETag"), Unchanged: unchanged}
		if unchanged {
			d.Text, d.ETag = "", etag
		}
		if age := maxAgePart.FindStringSubmatch(response.Header.Get("Cache-Control")); age != nil {
			seconds, _ := strconv.Atoi(age[1]) // at most nine digits
			d.MaxAge = time.Duration(seconds) * time.Second
		}
		return nil
	})
	return d, err
}
