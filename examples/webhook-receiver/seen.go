package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
)

// seen stores the ids of processed events in a file, one a line, so that a repeated event is processed once. seen is
// safe for concurrent use.
//
// A program with a database stores the id in the transaction that does the work. Here the two are separate: if the
// program dies between them, it processes the event again.
type seen struct {
	mu   sync.Mutex // held while an event is processed, so events come one after the other
	file *os.File
	ids  map[string]bool
}

func openSeen(path string) (*seen, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s := &seen{file: file, ids: map[string]bool{}}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		s.ids[lines.Text()] = true
	}
	if err := lines.Err(); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// once runs work for an event that was not seen before, and returns its error. If work fails, once does not store the
// event, so the next delivery runs work again.
func (s *seen) once(id string, work func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] {
		return nil
	}
	if strings.ContainsAny(id, "\r\n") {
		return fmt.Errorf("the event id %q contains a line break", id)
	}
	if err := work(); err != nil {
		return err
	}
	if _, err := s.file.WriteString(id + "\n"); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.ids[id] = true
	return nil
}

func (s *seen) close() error { return s.file.Close() }
