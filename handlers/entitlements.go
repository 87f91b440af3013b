package handlers

import (
	"errors"

	"licet/licensing"
)

// entitlements checks entitlements of a product, or, with nulls, of a license.
func (c *checks) entitlements(field string, in object, nulls bool) licensing.Entitlements {
	if c.describe(field, Limits{MaxProperties: licensing.MaxEntitlements}) || !in.given {
		return ""
	}
	parsed, err := licensing.ParseEntitlements(field, string(in.value), nulls)
	var refused *licensing.Error
	if errors.As(err, &refused) {
		for _, f := range refused.Fields {
			c.add(f.Field, f.Problem)
		}
	}
	return parsed
}

// ownEntitlements checks a license's own entitlements, or changes of them.
func (c *checks) ownEntitlements(field string, in object) licensing.Entitlements {
	own := c.entitlements(field, in, true)
	if problem := own.OwnProblem(); problem != "" {
		c.add(field, problem)
	}
	return own
}
