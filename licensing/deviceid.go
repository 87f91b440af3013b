package licensing

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxDeviceID is the greatest length of a device id, in Unicode code points.
const MaxDeviceID = 255

// DeviceIDProblem says what is wrong with a device id; empty if nothing is.
func DeviceIDProblem(id string) string {
	switch {
	case !utf8.ValidString(id):
		return "must be UTF-8"
	case id == "" || utf8.RuneCountInString(id) > MaxDeviceID:
		return fmt.Sprintf("must have 1 to %d characters", MaxDeviceID)
	case strings.ContainsFunc(id, unicode.IsControl):
		return "must not contain control characters"
	}
	return ""
}
