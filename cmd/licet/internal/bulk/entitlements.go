package bulk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"licet/client"
	"licet/licensing"
)

// entitlements parses the column entitlements: a license's own, or changes of them. nil: none.
func (c *cells) entitlements() object {
	text := c.text(entitlementsColumn)
	if text == "" {
		return nil
	}
	if _, _, err := memberNames(text); err != nil {
		c.bad(entitlementsColumn, "must be a JSON object, such as {\"export\":true}: %v", err)
		return nil
	}
	parsed, err := licensing.ParseEntitlements(entitlementsColumn, text, true)
	if refused := (*licensing.Error)(nil); errors.As(err, &refused) {
		c.bad(entitlementsColumn, "%s", refused.Fields[0].Problem)
		return nil
	}
	if problem := parsed.OwnProblem(); problem != "" {
		c.bad(entitlementsColumn, "%s", problem)
		return nil
	}
	if parsed == "" {
		return nil
	}
	return object(parsed)
}

// shown returns the entitlements of a license as an export shows them: codes and values in order, as an object with the
// end if they end.
func shown(l *client.License) object {
	if l.Entitlements == nil {
		return nil
	}
	e := maps.Clone(l.Entitlements)
	for code, end := range l.EntitlementEnds {
		e[code] = json.RawMessage(fmt.Sprintf(`{"value":%s,"expires_at":%q}`, e[code], licensing.FormatTime(end)))
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(e) // JSON values always encode
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// ended reports whether the value of an entitlement in a row is an object whose end has come. An export from before the
// end has such values: they change nothing.
func ended(value any, now time.Time) bool {
	object, _ := value.(map[string]any)
	text, _ := object["expires_at"].(string)
	end, ok := licensing.ParseTime(text)
	return ok && !end.After(now)
}
