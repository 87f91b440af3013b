package docs

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

// Code is an error code of the service.
type Code struct {
	Code    int      `json:"code"`
	Reason  string   `json:"reason"`
	Status  int      `json:"status"` // of HTTP
	Meaning string   `json:"meaning"`
	Retry   string   `json:"retry"`             // whether sending the same request again is safe and may help
	Message string   `json:"message,omitempty"` // an example
	Routes  []string `json:"routes,omitempty"`  // the routes with the code, if they are few
}

//go:embed errors.json
var codesInJSON []byte

// group is the codes of one HTTP status.
type group struct {
	Status int
	Name   string
	Codes  []Code
}

// groups returns all codes, in order.
func groups() ([]group, error) {
	var codes []Code
	if err := json.Unmarshal(codesInJSON, &codes); err != nil {
		return nil, fmt.Errorf("errors.json: %w", err)
	}
	var all []group
	for _, c := range codes {
		if len(all) == 0 || all[len(all)-1].Status != c.Status {
			all = append(all, group{Status: c.Status, Name: http.StatusText(c.Status)})
		}
		last := &all[len(all)-1]
		last.Codes = append(last.Codes, c)
	}
	return all, nil
}

// placeInReference returns the fragment with which the viewer shows a route, such as POST /v1/orders.
func placeInReference(route string) string {
	method, pattern, _ := strings.Cut(route, " ")
	return "?route=" + strings.ToLower(method) + "-" + strings.NewReplacer("{", "-", "}", "-").Replace(pattern)
}

// About returns the meaning in HTML: as a sentence, with code for the texts between backticks.
func (c Code) About() template.HTML {
	var text strings.Builder
	for i, part := range strings.Split(strings.ToUpper(c.Meaning[:1])+c.Meaning[1:]+".", "`") {
		if i > 0 {
			text.WriteString([]string{"</code>", "<code>"}[i%2])
		}
		text.WriteString(template.HTMLEscapeString(part))
	}
	return template.HTML(text.String())
}
