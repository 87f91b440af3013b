package migrate

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// beginning is the first line of a file of Fetch.
type beginning struct {
	Service string `json:"licet_import"`
	From    string `json:"from"`
}

// belongs checks that a file of Fetch has responses of s.
func (b beginning) belongs(s *Service, path string) error {
	if b.Service != s.Name {
		return fmt.Errorf("%s was read from another service: use licet import %s", path, b.Service)
	}
	return nil
}

// pages calls add with the responses in a file, in order: the file is one of Fetch, has responses one after the other,
// or is a file that the service exports.
func (s *Service) pages(path string, add func(page) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	if first, err := firstByte(in); err != nil {
		return fmt.Errorf("%s is empty", path)
	} else if first != '{' {
		if s.readCSV == nil {
			return fmt.Errorf("%s must have responses of %s's API as JSON: read them with --from-api, or save them "+
				"with curl", path, s.Title)
		}
		if err := s.readCSV(in, add); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	for responses, number := json.NewDecoder(in), 0; ; number++ {
		var body json.RawMessage
		err := responses.Decode(&body)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s is not JSON: %w", path, err)
		}
		if number == 0 {
			var b beginning
			if err := json.Unmarshal(body, &b); err == nil && b.Service != "" {
				if err := b.belongs(s, path); err != nil {
					return err
				}
				continue
			}
		}
		p, err := s.read(body, nil)
		if err == nil {
			err = add(p)
		}
		if err != nil {
			return fmt.Errorf("%s: response %d: %w", path, number+1, err)
		}
	}
}

// firstByte returns the first byte that is not white space, and leaves it unread.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return b, in.UnreadByte()
	}
}
