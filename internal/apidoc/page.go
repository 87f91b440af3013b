package apidoc

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"licet/handlers"
	"licet/internal/apidoc/openapi"
	"licet/licensing"
)

// apiPage makes the generated parts of docs/reference/api.md. A part stands between a line such as <!-- routes --> and
// the line <!-- end -->:
//
//	routes               the table of routes
//	codes                the table of codes
//	POST /v1/orders      a route, its inputs and its refusals; routes with the same inputs stand with commas between
//	response Order       the members of a schema
type apiPage struct {
	document *openapi.Document
	routes   map[string]handlers.Route // by method and pattern
	requests map[string]bool           // the schemas of bodies of requests
	shown    map[string]bool           // the routes that have a part of their own
}

// Page returns a page with its generated parts made anew. Every route of the API needs a part.
func Page(document *openapi.Document, text string) (string, error) {
	p := &apiPage{document, make(map[string]handlers.Route), make(map[string]bool), make(map[string]bool)}
	for _, r := range handlers.Routes() {
		p.routes[r.Method+" "+r.Pattern] = r
		p.requests[nameOf(r.Request)] = r.MediaType != ""
	}
	var made strings.Builder
	for text != "" {
		before, rest, found := strings.Cut(text, "<!-- ")
		made.WriteString(before)
		if !found {
			break
		}
		name, rest, _ := strings.Cut(rest, " -->\n")
		_, after, closed := strings.Cut(rest, "<!-- end -->\n")
		if !closed {
			return "", fmt.Errorf("the part %s has no end", name)
		}
		part, err := p.part(name)
		if err != nil {
			return "", err
		}
		made.WriteString("<!-- " + name + " -->\n" + part + "<!-- end -->\n")
		text = after
	}
	for name, r := range p.routes {
		if r.Auth != handlers.NoAuth && !p.shown[name] {
			return "", fmt.Errorf("the page has no part <!-- %s -->", name)
		}
	}
	return made.String(), nil
}

// part returns the text of a part.
func (p *apiPage) part(name string) (string, error) {
	switch schema, isSchema := strings.CutPrefix(name, "response "); {
	case name == "routes":
		return routeTable(), nil
	case name == "codes":
		return codeTable()
	case isSchema:
		return p.members(schema)
	default:
		return p.ofRoutes(strings.Split(strings.Join(strings.Fields(name), " "), ", "))
	}
}

// routeTable returns the table of routes.
func routeTable() string {
	rows := [][]string{{"Route", "Scope", "Body limit", "What it does"}}
	texts := operations()
	for _, r := range handlers.Routes() {
		name, limit := r.Method+" "+r.Pattern, "–"
		if r.MediaType != "" {
			limit = fmt.Sprintf("%d KiB", r.BodyLimit>>10)
		}
		text := texts[name]
		rows = append(rows, []string{"`" + name + "`", access(&r), limit,
			"[" + text.summary + "](#" + text.section + ")"})
	}
	return table(rows)
}

// access returns which credentials a route needs.
func access(r *handlers.Route) string {
	switch r.Auth {
	case handlers.RequiredAuth:
		return "`" + strings.Join(r.Scopes, "` and `") + "`"
	case handlers.OptionalAuth:
		return "open"
	default:
		return "none"
	}
}

// codeTable returns the table of codes.
func codeTable() (string, error) {
	rows := [][]string{{"Code", "Reason", "When", "Retryable"}}
	texts := meanings()
	for _, refusal := range handlers.Refusals() {
		text := texts[refusal.Reason]
		if text == "" {
			return "", fmt.Errorf("codes.go has no row of %s", refusal.Reason)
		}
		rows = append(rows, []string{
			fmt.Sprint(refusal.Code), "`" + string(refusal.Reason) + "`", text, retryable(refusal),
		})
	}
	return table(rows), nil
}

// retryable returns whether sending the same request again is safe and may help.
func retryable(r handlers.Refusal) string {
	switch {
	case r.Reason == licensing.ReasonOutcomeUnknown:
		return "if repeating is harmless"
	case r.RetryAfter:
		return "yes"
	default:
		return "no"
	}
}

// ofRoutes returns the text about routes with the same inputs.
func (p *apiPage) ofRoutes(names []string) (string, error) {
	var heads, inputs []string
	var refusals []int
	for _, name := range names {
		r, known := p.routes[name]
		if !known {
			return "", fmt.Errorf("the page has a part of %s, which is no route", name)
		}
		p.shown[name] = true
		scope := "scope " + access(&r)
		if r.Auth != handlers.RequiredAuth {
			scope = access(&r)
		} else if len(r.Scopes) > 1 {
			scope = "scopes " + access(&r)
		}
		heads = append(heads, "`"+name+"` – "+scope)
		own, err := p.inputs(&r)
		if err != nil {
			return "", err
		}
		inputs = append(inputs, own)
		for _, refusal := range r.Refusals {
			if !shared(refusal) {
				refusals = append(refusals, refusal.Code)
			}
		}
	}
	if len(slices.Compact(inputs)) > 1 {
		return "", fmt.Errorf("the routes %v have different inputs", names)
	}
	text := strings.Join(heads, "\\\n") + "\n\n" + inputs[0]
	if slices.Sort(refusals); len(refusals) > 0 {
		codes := strings.Trim(fmt.Sprint(slices.Compact(refusals)), "[]")
		text += "Refusals: " + strings.ReplaceAll(codes, " ", ", ") + ".\n"
	}
	return strings.TrimRight(text, "\n") + "\n", nil
}

// shared reports whether requests to most routes may be refused for a reason, whatever the route does.
func shared(r handlers.Refusal) bool {
	switch r.Status {
	case http.StatusUnauthorized, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusTooManyRequests, http.StatusRequestHeaderFieldsTooLarge,
		http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	switch r.Code {
	case 40000, 40300, 40309, 40400, 40900, 42200, 42201:
		return true
	}
	return false
}

// inputs returns the tables of the query and of the body of a route.
func (p *apiPage) inputs(r *handlers.Route) (string, error) {
	var text string
	rows := [][]string{{"Query", "Type", "Limits", "Meaning"}}
	for _, q := range (*p.document.Paths.Get(r.Pattern).Place(r.Method)).Parameters {
		if q.In == "query" {
			rows = append(rows, row(q.Name, q.Schema, false, q.Description))
		}
	}
	if len(rows) > 1 {
		text = table(rows) + "\n"
	}
	if r.MediaType == "" {
		return text, nil
	}
	members, err := p.members(nameOf(r.Request))
	if members != "" {
		members += "\n"
	}
	return text + members, err
}

// members returns a table of the members of a schema; empty for none.
func (p *apiPage) members(schema string) (string, error) {
	of := p.document.Components.Schemas.Get(schema)
	if of == nil {
		return "", fmt.Errorf("the document has no schema %s", schema)
	}
	rows := [][]string{{"Member", "Type", "Limits", "Meaning"}}
	if !p.requests[schema] {
		rows = [][]string{{"Member", "Type", "Meaning"}}
	}
	for name, member := range of.Properties.All() {
		meaning := description(schema, name)
		if p.requests[schema] {
			rows = append(rows, row(name, member, slices.Contains(of.Required, name), meaning))
			continue
		}
		typ := typeInWords(member)
		if member.Ref == "" && slices.Contains(member.Type, "null") {
			typ += " or null"
		}
		rows = append(rows, []string{"`" + name + "`", typ, meaning})
	}
	if len(rows) == 1 {
		return "", nil
	}
	return table(rows), nil
}

// row returns the cells about a member or a parameter.
func row(name string, of *openapi.Schema, required bool, meaning string) []string {
	limits := limitsInWords(of)
	if required {
		limits = append([]string{"required"}, limits...)
	}
	return []string{"`" + name + "`", typeInWords(of), strings.Join(limits, "; "), meaning}
}

// table returns a table in Markdown, whose first row is the head.
func table(rows [][]string) string {
	var b strings.Builder
	for i, cells := range rows {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	return b.String()
}
