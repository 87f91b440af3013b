package bulk

import (
	"bytes"
	"encoding/json"
	"errors"

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

// shown returns the entitlements of a license as an export shows them: codes and values in order, without their ends.
func shown(e client.Entitlements) object {
	if e == nil {
		return nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(e) // JSON values always encode
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
