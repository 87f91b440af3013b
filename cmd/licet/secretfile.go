package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"licet/payment/stripe"
)

const (
	// secretAge is how long secrets stay in use before their files are checked again.
	secretAge = time.Second
	// maxSecretFile bounds a file of secrets.
	maxSecretFile = 4 << 10
)

// stripeSecrets are the secrets of an account at Stripe. When their files change, the new secrets are used at once. It
// is safe for concurrent use.
type stripeSecrets struct {
	keyFile, webhookFile string // the second may be empty
	live                 bool
	log                  zerolog.Logger

	mu      sync.Mutex
	current stripe.Secrets
	files   [2]os.FileInfo // at the last read
	checked time.Time
}

// loadStripeSecrets reads the secrets in the files.
func loadStripeSecrets(keyFile, webhookFile string, live bool, log zerolog.Logger) (*stripeSecrets, error) {
	s := &stripeSecrets{keyFile: keyFile, webhookFile: webhookFile, live: live, log: log}
	files, err := s.stat()
	if err != nil {
		return nil, err
	}
	return s, s.read(files)
}

// get returns the secrets in use. If the files are unusable, the previous secrets stay in use.
func (s *stripeSecrets) get() stripe.Secrets {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.checked) < secretAge {
		return s.current
	}
	s.checked = now
	files, err := s.stat()
	if err == nil && !changed(s.files, files) {
		return s.current
	}
	if err == nil {
		err = s.read(files)
	}
	if err != nil {
		s.log.Error().Err(err).Msg("the new secrets of Stripe can't be used; the previous secrets stay in use")
		return s.current
	}
	s.log.Info().Str("file", s.keyFile).Msg("the secrets of Stripe were read again")
	return s.current
}

func (s *stripeSecrets) read(files [2]os.FileInfo) error {
	keys, err := readSecrets(s.keyFile)
	if err != nil {
		return err
	}
	if len(keys) > 1 {
		return fmt.Errorf("%s has %d lines: the secret key must be the only line", s.keyFile, len(keys))
	}
	secrets := stripe.Secrets{Key: strings.Join(keys, "")}
	if err := stripe.ValidateKey(secrets.Key, s.live); err != nil {
		return fmt.Errorf("%s: %w", s.keyFile, err)
	}
	if s.webhookFile != "" {
		if secrets.Webhook, err = readSecrets(s.webhookFile); err != nil {
			return err
		}
		if len(secrets.Webhook) == 0 {
			return fmt.Errorf("%s has no webhook secret: write the signing secret of the endpoint (whsec_…) into it, "+
				"or run licet payments connect stripe; to start without callbacks, name no file", s.webhookFile)
		}
		if err := secrets.Validate(s.live); err != nil {
			return fmt.Errorf("%s: %w", s.webhookFile, err)
		}
	}
	s.current, s.files = secrets, files
	return nil
}

// stat returns the state of both files; of the first file twice if there is no second.
func (s *stripeSecrets) stat() (files [2]os.FileInfo, err error) {
	for i, name := range []string{s.keyFile, s.webhookFile} {
		if name == "" {
			files[i] = files[0]
			continue
		}
		if files[i], err = os.Stat(name); err != nil && i == 1 {
			return files, fmt.Errorf("%w; licet payments connect stripe makes this file; to start without "+
				"callbacks, name no file", err)
		} else if err != nil {
			return files, noSecretKey(err)
		}
	}
	return files, nil
}

// noSecretKey adds what to do to an error of reading the file with the secret key.
func noSecretKey(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; save a secret or restricted key from Stripe's dashboard in this file, as its only "+
			"line", err)
	}
	return err
}

// readSecrets returns the lines of a file of secrets, without blank lines.
func readSecrets(name string) (lines []string, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := checkPrivate(file); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSecretFile {
		return nil, errors.New(name + " is too long for a file of secrets")
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, nil
}
