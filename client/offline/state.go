package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"licet/receipt"
)

// Store keeps one text between two starts of the program. The text holds the license key.
type Store interface {
	// Load returns the text that was saved last; nothing if there is none.
	Load() ([]byte, error)
	Save(text []byte) error
}

// state is the content of a Store.
type state struct {
	AccountID  string            `json:"account_id"` // empty in a state that an earlier version has stored
	Mode       string            `json:"mode"`
	LicenseKey string            `json:"license_key"`
	Documents  receipt.Documents `json:"documents"`
	Seen       receipt.Seen      `json:"seen"`
	Lists      listState         `json:"lists"`
	AirGap     airGap            `json:"air_gap"`
}

// listState is about the newest list of revocations that was accepted.
type listState struct {
	ETag  string `json:"etag"`
	Until int64  `json:"until"` // Unix seconds: when its max-age ends
}

// locked runs one call after the other, each with the state that is stored, and stores what the call has changed. A
// text that is no state counts as none: the program is not activated.
func (l *License) locked(call func(*state) error) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	text, err := l.cfg.Store.Load()
	if err != nil {
		return fmt.Errorf("offline: load the state: %w", err)
	}
	s := &state{}
	if json.Unmarshal(text, s) != nil {
		s = &state{}
	}
	if s.AccountID != "" && (s.AccountID != l.cfg.AccountID || s.Mode != l.cfg.Mode) {
		// The program was switched, such as from test to live: positions and times of the two are not comparable.
		s.Documents.Revocations, s.Lists, s.Seen = nil, listState{}, receipt.Seen{}
	}
	s.AccountID, s.Mode = l.cfg.AccountID, l.cfg.Mode
	err = call(s)
	changed, failed := json.Marshal(s)
	if failed == nil && !bytes.Equal(changed, text) {
		failed = l.cfg.Store.Save(changed)
	}
	if failed != nil {
		return errors.Join(err, fmt.Errorf("offline: save the state: %w", failed))
	}
	return err
}
