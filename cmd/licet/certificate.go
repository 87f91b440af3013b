package main

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// certificateAge is how long a certificate stays in use before its files are checked again.
const certificateAge = time.Second

// certificate is the certificate of a listener. When its files change, new connections get the new certificate;
// existing connections keep theirs. A certificate is safe for concurrent use.
type certificate struct {
	certFile, keyFile string
	log               zerolog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	files   [2]os.FileInfo // at the last read
	checked time.Time      // when the files were last checked
}

// loadCertificate returns the certificate in certFile and keyFile.
func loadCertificate(certFile, keyFile string, log zerolog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	files, err := c.stat()
	if err != nil {
		return nil, err
	}
	return c, c.read(files)
}

// config returns the TLS configuration of the listener. It offers HTTP/1.1 only: the server does not speak HTTP/2.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.get(time.Now()), nil
		},
	}
}

// get returns the certificate to present. If the files are unusable, such as a new certificate whose key is still
// missing, get returns the current certificate, and tries the files again later.
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
		c.log.Error().Err(err).Msg("the new TLS certificate can't be used; the previous certificate stays in use")
		return c.current
	}
	c.log.Info().Time("not_after", c.current.Leaf.NotAfter).Msg("the TLS certificate was replaced")
	return c.current
}

// read loads the certificate and its key.
func (c *certificate) read(files [2]os.FileInfo) error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.current, c.files = &pair, files
	return nil
}

// stat returns the state of both files.
func (c *certificate) stat() (files [2]os.FileInfo, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if files[i], err = os.Stat(name); err != nil {
			return files, err
		}
	}
	return files, nil
}

// changed reports whether a name refers to another file, or the file has other content. Names can be links whose
// targets change, as in a Kubernetes secret.
func changed(before, after [2]os.FileInfo) bool {
	for i := range before {
		b, a := before[i], after[i]
		if !os.SameFile(b, a) || b.Size() != a.Size() || !b.ModTime().Equal(a.ModTime()) {
			return true
		}
	}
	return false
}
