package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// page is what a response has.
type page struct {
	licenses []license
	devices  []device
	next     []string // further requests, relative to the URL of this one
	total    int      // how many licenses the service has; 0: the response does not say
}

// license is a license of another service.
type license struct {
	id         string
	key        string // empty: a sale without a license
	product    string
	maxDevices int // 0: any number
	expires    time.Time
	state      string // bulk.Suspended or bulk.Revoked; empty: usable
	reason     string
	metadata   map[string]any
	without    []string // values that Licet has no place for
}

// device is a device of a license.
type device struct{ license, id string }

// errUnpublished reports a response that is not in the form that the service publishes.
var errUnpublished = errors.New("the response is not in the form that the service publishes")

// decode decodes a response.
func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: %w", errUnpublished, err)
	}
	return nil
}

// noted returns the names of the values that are set.
func noted(values map[string]bool) (names []string) {
	for name, set := range values {
		if set {
			names = append(names, name)
		}
	}
	return names
}

// pageAfter returns a request for the page after the current one, by the given parameter; nil after the last page.
func pageAfter(asked *url.URL, parameter string, current, last int) []string {
	if asked == nil || current >= last {
		return nil
	}
	query := asked.Query()
	query.Set(parameter, strconv.Itoa(current+1))
	return []string{"?" + query.Encode()}
}
