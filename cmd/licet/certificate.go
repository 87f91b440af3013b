package main

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// certificateAge is how old what is known of the files may be.
const certificateAge = time.Second

// certificate is the certificate of the listener. It is read again once its
// files have changed, for the connections that come after that; those that are
// there keep what they have.
type certificate struct {
	certFile, keyFile string
	log               zerolog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	files   [2]os.FileInfo // as they were when they were last read
	checked time.Time
}

// loadCertificate reads the certificate and its key.
func loadCertificate(certFile, keyFile string, log zerolog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	files, err := c.stat()
	if err != nil {
		return nil, err
	}
	return c, c.read(files)
}

// config is for a listener. HTTP/2 is not offered, since it is not spoken.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.get(time.Now()), nil
		},
	}
}

// get gives the certificate to show. Files that can't be used, such as a new
// certificate whose key is not there yet, leave the present one in place and
// are tried again.
func (c *certificate) get(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.checked) < certificateAge {
		return c.current
	}
	c.checked = now
	files, err := c.stat()
	if err == nil && !changed(c.files, files) {
		return c.current
	}
	if err == nil {
		err = c.read(files)
	}
	if err != nil {
		c.log.Error().Err(err).Msg("the TLS certificate has changed and can't be used; the one before is kept")
		return c.current
	}
	c.log.Info().Time("not_after", c.current.Leaf.NotAfter).Msg("the TLS certificate was replaced")
	return c.current
}

func (c *certificate) read(files [2]os.FileInfo) error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.current, c.files = &pair, files
	return nil
}

func (c *certificate) stat() (files [2]os.FileInfo, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if files[i], err = os.Stat(name); err != nil {
			return files, err
		}
	}
	return files, nil
}

// changed tells whether a file is another one or has other content. Where
// names are links, as in a Kubernetes secret, the files behind them change.
func changed(before, after [2]os.FileInfo) bool {
	for i := range before {
		b, a := before[i], after[i]
		if !os.SameFile(b, a) || b.Size() != a.Size() || !b.ModTime().Equal(a.ModTime()) {
			return true
		}
	}
	return false
}
