package service

import (
	"fmt"
	"io"
	"time"

	"github.com/oklog/ulid/v2"
)

// NewULID returns a new id. what names the object in an error message.
func NewULID(now time.Time, entropy io.Reader, what string) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), entropy)
	if err != nil {
		return "", fmt.Errorf("make the id of %s: %w", what, err)
	}
	return id.String(), nil
}
