package client

import "encoding/json"

// Entitlements are what a license lets its users do: a value for each code. A value is true, an integer or a string.
// A response contains no entitlement that has ended.
type Entitlements map[string]json.RawMessage

// Has reports whether the license has an entitlement, whatever its value.
func (e Entitlements) Has(code string) bool { return e[code] != nil }

// Int returns the value of an entitlement that is an integer. ok is false if the license has no such entitlement.
func (e Entitlements) Int(code string) (value int64, ok bool) {
	err := json.Unmarshal(e[code], &value)
	return value, err == nil
}

// Text returns the value of an entitlement that is a string. ok is false if the license has no such entitlement.
func (e Entitlements) Text(code string) (value string, ok bool) {
	err := json.Unmarshal(e[code], &value)
	return value, err == nil
}
