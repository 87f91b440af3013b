package apidoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"licet/handlers"
	"licet/handlers/docs"
	"licet/licensing"
)

// fewRoutes is how many routes the page about an error code names.
const fewRoutes = 6

// ErrorCodes returns the error codes for the page of package docs, as JSON. The examples come from the golden files in
// a folder.
func ErrorCodes(goldenFiles string) ([]byte, error) {
	routes := make(map[licensing.Reason][]string)
	for _, r := range handlers.Routes() {
		for _, refusal := range r.Refusals {
			routes[refusal.Reason] = append(routes[refusal.Reason], r.Method+" "+r.Pattern)
		}
	}
	var codes []docs.Code
	texts := meanings()
	for _, refusal := range handlers.Refusals() {
		c := docs.Code{
			Code: refusal.Code, Reason: string(refusal.Reason), Status: refusal.Status, Meaning: texts[refusal.Reason],
			Retry: advice(refusal), Message: exampleMessage(goldenFiles, refusal.Code),
		}
		if c.Meaning == "" {
			return nil, fmt.Errorf("codes.go has no row of %s", refusal.Reason)
		}
		if named := routes[refusal.Reason]; len(named) <= fewRoutes {
			c.Routes = slices.Sorted(slices.Values(named))
		}
		codes = append(codes, c)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	err := encoder.Encode(codes)
	return text.Bytes(), err
}

// advice says whether sending the same request again is safe and may help.
func advice(r handlers.Refusal) string {
	switch {
	case r.Reason == licensing.ReasonOutcomeUnknown:
		return "Only if repeating is harmless, or with the same Idempotency-Key. Look up first what happened."
	case r.RetryAfter:
		return "Yes: send the same request again after the seconds of Retry-After."
	case r.Status == http.StatusInternalServerError:
		return "No. Report the request id to the operator of the service."
	default:
		return "No: the same request fails again until something else changes."
	}
}

// exampleMessage returns the message of the first golden file with a code, such as 40901.txt; empty if there is none.
// It skips files whose request or response is not in JSON.
func exampleMessage(goldenFiles string, code int) string {
	names, err := filepath.Glob(filepath.Join(goldenFiles, strconv.Itoa(code)+"*.txt"))
	if err != nil {
		return ""
	}
	for _, name := range names {
		example, err := readGolden(goldenFiles, strings.TrimSuffix(filepath.Base(name), ".txt"))
		if err != nil || example.response == nil {
			continue
		}
		var response struct {
			Message string `yaml:"message"`
		}
		if example.response.Decode(&response) == nil {
			return response.Message
		}
	}
	return ""
}
