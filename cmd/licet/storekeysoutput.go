package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"licet/licensing"
	"licet/node/service"
)

// row is one member of what is printed, with a title where people read it.
type row struct {
	title, member string
	value         any
}

func createdRows(issued service.IssuedKey) []row {
	return append([]row{
		{"API KEY", "api_key", issued.Text},
		{"API SECRET", "api_secret", issued.Secret},
	}, append(keyRows(&issued.Key), row{"SCOPES", "scopes", issued.Key.Scopes})...)
}

func rotatedRows(issued service.IssuedKey) []row {
	return append([]row{{"API SECRET", "api_secret", issued.Secret}},
		append(keyRows(&issued.Key), row{"PREVIOUS GOOD UNTIL", "previous_secret_until", stamp(issued.Key.Previous.Until)})...)
}

func revokedRows(key *licensing.APIKey) []row {
	return append(keyRows(key), row{"REVOKED", "revoked_at", stamp(key.RevokedAt)})
}

func keyRows(key *licensing.APIKey) []row {
	return []row{
		{"ID", "id", key.ID},
		{"ACCOUNT", "account", key.Owner.AccountID},
		{"MODE", "mode", string(key.Owner.Mode)},
	}
}

// stamp writes a time as the API does; nil where there is none.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// show prints rows: under each other, or as one JSON object on a line. Where
// nobody reads it, it fails: the signal would end the process before it has
// said what becomes of a key that nobody knows.
func (c *keysConfig) show(stdout io.Writer, rows []row) error {
	signal.Ignore(syscall.SIGPIPE)
	if c.Output == "json" {
		text, err := jsonObject(rows)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s\n", text)
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\n", r.title, plain(r.value))
	}
	return table.Flush()
}

// showList prints keys: one a line, or as one JSON object on a line.
func (c *keysConfig) showList(stdout io.Writer, keys []licensing.APIKey, now time.Time) error {
	if c.Output == "json" {
		listed := []json.RawMessage{}
		for i := range keys {
			text, err := jsonObject(append(keyRows(&keys[i]), listedRows(&keys[i], now)...))
			if err != nil {
				return err
			}
			listed = append(listed, text)
		}
		return json.NewEncoder(stdout).Encode(map[string]any{"keys": listed})
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	titles := []string{"ID"}
	for _, r := range listedRows(&licensing.APIKey{}, now) {
		titles = append(titles, r.title)
	}
	fmt.Fprintln(table, strings.Join(titles, "\t"))
	for i := range keys {
		cells := []string{keys[i].ID}
		for _, r := range listedRows(&keys[i], now) {
			cells = append(cells, plain(r.value))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

func listedRows(key *licensing.APIKey, now time.Time) []row {
	return []row{
		{"NAME", "name", key.Name},
		{"STATUS", "status", string(key.Status(now))},
		{"SCOPES", "scopes", key.Scopes},
		{"SIGNED", "require_signature", key.RequireSignature},
		{"CREATED", "created_at", stamp(key.CreatedAt)},
		{"EXPIRES", "expires_at", stamp(key.ExpiresAt)},
		{"REVOKED", "revoked_at", stamp(key.RevokedAt)},
		{"LAST USED", "last_used_at", stamp(key.LastUsedAt)},
		{"MASTER KEY", "master_key", key.MasterID},
		{"PREVIOUS GOOD UNTIL", "previous_secret_until", stamp(key.Previous.Until)},
	}
}

// plain is a value as people read it.
func plain(value any) string {
	switch v := value.(type) {
	case nil:
		return "-"
	case []string:
		return strings.Join(v, ",")
	case bool:
		if v {
			return "required"
		}
		return "-"
	default:
		return fmt.Sprint(v)
	}
}

// jsonObject writes rows as an object whose members keep their order.
func jsonObject(rows []row) (json.RawMessage, error) {
	var members []string
	for _, r := range rows {
		value, err := json.Marshal(r.value)
		if err != nil {
			return nil, err
		}
		members = append(members, fmt.Sprintf("%q:%s", r.member, value))
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}"), nil
}
