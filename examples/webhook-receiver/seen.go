package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
)

// seen remembers events by their ids, one a line in a file, so that one that comes
// twice is worked on once.
//
// A program with a database keeps the id there instead, in the transaction that
// does the work. Here the two are apart: one that dies between them does the work
// again.
type seen struct {
	mu   sync.Mutex // held while an event is worked on, so one comes after the other
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

// once does the work of an event that was not seen before. Where the work fails
// the event is not remembered, and is worked on when it comes again.
func (s *seen) once(id string, work func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] {
		return nil
	}
	if strings.ContainsAny(id, "\r\n") {
		return fmt.Errorf("an id of two lines: %q", id)
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
