package migrate

import (
	"io"
	"net/url"
)

// Service is a service to read licenses from.
type Service struct {
	Name  string // of the command
	Title string
	// API is the URL to read from; capital letters stand for the reader's own values.
	API string
	// Token names the credential that the API takes.
	Token string
	// Mapping lists what becomes which column of an import.
	Mapping []Mapping
	// Exports reports whether the service also exports a CSV file.
	Exports bool

	perMinute int // how many requests its limits allow
	accept    string
	start     []string // the first requests, relative to the API's URL
	// read reads a response. asked is the request's URL; nil if the caller follows no next page.
	read func(body []byte, asked *url.URL) (page, error)
	// readCSV reads a file that the service exports; nil: the service exports none.
	readCSV func(in io.Reader, add func(page) error) error
}

// Mapping says which column of an import takes a value of the service.
type Mapping struct{ From, Column string }

// Services returns all services, by name.
func Services() []*Service {
	return []*Service{gumroad(), keygen(), lemonSqueezy(), polar()}
}
