package handlers

import (
	"encoding/base64"

	"licet/node/store"
)

// A cursor is opaque to callers: a version byte and the position, in base64
// for URLs. The version distinguishes formats.
const (
	cursorVersion = 1
	cursorBytes   = 1 + len(store.DeviceCursor{})
)

func formatCursor(at store.DeviceCursor) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{cursorVersion}, at[:]...))
}

// parseCursor parses a cursor of formatCursor, and nothing else: each position
// has one cursor.
func parseCursor(cursor string) (store.DeviceCursor, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) != cursorBytes || raw[0] != cursorVersion {
		return store.DeviceCursor{}, false
	}
	at := store.DeviceCursor(raw[1:])
	// The decoder skips line breaks.
	return at, formatCursor(at) == cursor
}

func cursorAnswer(at *store.DeviceCursor) *string {
	if at == nil {
		return nil
	}
	cursor := formatCursor(*at)
	return &cursor
}
