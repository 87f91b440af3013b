package migrate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"licet/cmd/licet/internal/bulk"
	"licet/internal/backoff"
)

const (
	partialSuffix = ".partial"
	maxResponse   = 64 << 20 // bytes
	// tries is how often a request is sent before Fetch gives up.
	tries       = 8
	maxPause    = 10 * time.Minute // the longest pause that a service may ask for
	answersIn   = 2 * time.Minute
	syncedEvery = time.Second
)

// Fetch is where and how to read licenses.
type Fetch struct {
	From      string // URL of the API
	Token     string
	PerMinute int                 // requests; 0: as many as the service allows
	Progress  func(responses int) // stored so far
}

// fetching is a running Fetch.
type fetching struct {
	Fetch
	service *Service
	base    *url.URL
	file    *os.File
	queue   []*url.URL // the requests that are left
	stored  int
	pace    *rate.Limiter
	client  *http.Client
}

// Fetch stores the responses of the service's API in a file, which appears when it is complete. After an error or a
// crash, the responses so far are in path.partial, and the same call continues after them.
func (s *Service) Fetch(ctx context.Context, path string, from Fetch) (err error) {
	base, err := parseAPI(from.From)
	if err != nil {
		return err
	}
	file, err := bulk.LockFile(path + partialSuffix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	perMinute := from.PerMinute
	if perMinute == 0 {
		perMinute = s.perMinute
	}
	f := &fetching{Fetch: from, service: s, base: base, file: file,
		pace:   rate.NewLimiter(rate.Every(time.Minute/time.Duration(perMinute)), 10),
		client: &http.Client{Timeout: answersIn, CheckRedirect: noRedirect}}
	defer f.client.CloseIdleConnections()
	for _, first := range s.start {
		if err := f.follow(base, first); err != nil {
			return err
		}
	}
	if err := f.resume(path); err != nil {
		return err
	}
	if err := f.rest(ctx); err != nil {
		if f.stored == 0 {
			return errors.Join(err, os.Remove(path+partialSuffix))
		}
		return &bulk.BrokenOffError{Where: fmt.Sprintf("after response %d, stored in %s", f.stored,
			path+partialSuffix), Cause: err}
	}
	return os.Rename(path+partialSuffix, path)
}

// parseAPI parses the URL of an API. The token travels with each request, so it must be encrypted.
func parseAPI(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("--from-api is %q: write a URL such as https://api.example.com/v1", text)
	}
	local := slices.Contains([]string{"127.0.0.1", "localhost", "::1"}, base.Hostname())
	if base.Scheme != "https" && (base.Scheme != "http" || !local) {
		return nil, fmt.Errorf("--from-api is %q: write https://, since each request carries the token", text)
	}
	base.Path = strings.TrimSuffix(base.Path, "/") + "/"
	return base, nil
}

// noRedirect refuses redirects, which would carry the token elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// follow adds a request, which a response to asked names.
func (f *fetching) follow(asked *url.URL, next string) error {
	to, err := asked.Parse(next)
	if err != nil {
		return fmt.Errorf("page %s links to a next page that is no URL: %w", asked, err)
	}
	if to.Scheme != f.base.Scheme || to.Host != f.base.Host {
		return fmt.Errorf("page %s links to a next page on another host, %s: the token must not be sent there",
			asked, to.Host)
	}
	if to.String() == asked.String() {
		return fmt.Errorf("page %s links to itself as the next page", to)
	}
	f.queue = append(f.queue, to)
	return nil
}

// resume reads what an earlier run has stored, and cuts off an incomplete line at its end. Each stored response leads
// to the same requests as when it came.
func (f *fetching) resume(path string) error {
	in := bufio.NewReaderSize(f.file, 1<<20)
	var whole int64
	for first := true; ; first = false {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil || !json.Valid(line) {
			break // a crash came between
		}
		if first {
			var b beginning
			if err := json.Unmarshal(line, &b); err != nil {
				return err
			}
			if err := b.belongs(f.service, path+partialSuffix); err != nil {
				return err
			}
			if b.From != f.base.String() {
				return fmt.Errorf("%s was read from %s: continue with that URL, or remove the file to start again",
					path+partialSuffix, b.From)
			}
		} else if err := f.add(line); err != nil {
			return fmt.Errorf("%s: %w", path+partialSuffix, err)
		}
		whole += int64(len(line))
	}
	if err := f.file.Truncate(whole); err != nil {
		return err
	}
	if _, err := f.file.Seek(whole, io.SeekStart); err != nil {
		return err
	}
	if whole > 0 {
		return nil
	}
	line, err := json.Marshal(beginning{f.service.Name, f.base.String()})
	if err != nil {
		return err
	}
	_, err = f.file.Write(append(line, '\n'))
	return err
}

// add takes the first request off the queue, which body answers, and adds the requests that follow.
func (f *fetching) add(body []byte) error {
	if len(f.queue) == 0 {
		return errors.New("the file has more responses than there are requests: remove it to start again")
	}
	asked := f.queue[0]
	p, err := f.service.read(body, asked)
	if err != nil {
		return fmt.Errorf("%s: %w", asked, err)
	}
	f.queue = f.queue[1:]
	for _, next := range p.next {
		if err := f.follow(asked, next); err != nil {
			return err
		}
	}
	f.stored++
	return nil
}

// rest sends the requests that are left and stores their responses.
func (f *fetching) rest(ctx context.Context) error {
	synced := time.Now()
	for len(f.queue) > 0 {
		if f.Progress != nil {
			f.Progress(f.stored)
		}
		body, err := f.get(ctx, f.queue[0])
		if err != nil {
			return errors.Join(err, f.file.Sync())
		}
		if err := f.add(body); err != nil {
			return errors.Join(err, f.file.Sync())
		}
		if _, err := f.file.Write(append(body, '\n')); err != nil {
			return err
		}
		if now := time.Now(); now.Sub(synced) >= syncedEvery {
			synced = now
			if err := f.file.Sync(); err != nil {
				return err
			}
		}
	}
	return f.file.Sync()
}

// get sends a request until it is answered, and returns the response in one line.
func (f *fetching) get(ctx context.Context, from *url.URL) ([]byte, error) {
	pause := backoff.Exponential{First: time.Second, Longest: time.Minute}
	for attempt := 0; ; attempt++ {
		if err := f.pace.Wait(ctx); err != nil {
			return nil, err
		}
		body, wait, err := f.ask(ctx, from)
		if err == nil || ctx.Err() != nil || wait < 0 || attempt == tries-1 {
			return body, err
		}
		if wait > maxPause {
			return nil, fmt.Errorf("%w; the service asks for a pause of %v", err, wait)
		}
		if wait > 0 {
			backoff.Sleep(ctx, wait)
		} else {
			pause.Wait(ctx, attempt)
		}
	}
}

// ask sends a request once. With an error, it returns how long the service asks to wait before the next try: 0 if the
// service does not say, and below 0 if a next try is of no use.
func (f *fetching) ask(ctx context.Context, from *url.URL) (line []byte, wait time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, -1, err
	}
	request.Header.Set("Authorization", "Bearer "+f.Token)
	request.Header.Set("Accept", f.service.accept)
	response, err := f.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, 0, err
	}
	switch status := response.StatusCode; {
	case status == http.StatusTooManyRequests || status >= 500:
		seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31)
		return nil, time.Duration(seconds) * time.Second, fmt.Errorf("%s answers %s", from, response.Status)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return nil, -1, fmt.Errorf("%s refuses the token (%s): it takes %s", from, response.Status, f.service.Token)
	case status != http.StatusOK:
		return nil, -1, fmt.Errorf("%s answers %s; the URL is like %s", from, response.Status, f.service.API)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return nil, -1, fmt.Errorf("%s does not answer in JSON: %w", from, err)
	}
	return compact.Bytes(), 0, nil
}
