package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
	"licet/licensing"
	"licet/node/service"
)

// row is one printed value, with its title in a table and its name in JSON.
type row struct {
	title, name string
	value       any
}

// createdRows returns the rows of a created API key.
func createdRows(issued service.IssuedKey) []row {
	return append([]row{
		{"API KEY", "api_key", issued.Text},
		{"API SECRET", "api_secret", issued.Secret},
	}, append(keyRows(&issued.Key), row{"SCOPES", "scopes", issued.Key.Scopes})...)
}

// rotatedRows returns the rows of an API key with a new secret.
func rotatedRows(issued service.IssuedKey) []row {
	return append([]row{{"API SECRET", "api_secret", issued.Secret}},
		append(keyRows(&issued.Key),
			row{"PREVIOUS GOOD UNTIL", "previous_secret_until", timestamp(issued.Key.Previous.Until)})...)
}

// revokedRows returns the rows of a revoked API key.
func revokedRows(key *licensing.APIKey) []row {
	return append(keyRows(key), row{"REVOKED", "revoked_at", timestamp(key.RevokedAt)})
}

// keyRows returns the rows that identify an API key.
func keyRows(key *licensing.APIKey) []row {
	return []row{
		{"ID", "id", key.ID},
		{"ACCOUNT", "account_id", key.Owner.AccountID},
		{"MODE", "mode", string(key.Owner.Mode)},
	}
}

// timestamp returns a time in the form of the API, or nil for the zero time.
func timestamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// show prints rows as a table of two columns, or as one JSON object on one line. If the reader of the output is gone,
// show returns an error: SIGPIPE would otherwise end the process before it reports which secret is lost.
func (c *storeKeysConfig) show(stdout io.Writer, rows []row) error {
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

// showList prints API keys as licet keys list does. With --output json, showList prints the members of a page of the
// service's list, on one line, and for each API key also its master key: only operators may know the master key.
func (c *storeKeysConfig) showList(cmd *cobra.Command, keys []licensing.APIKey, now time.Time) error {
	listed := []json.RawMessage{}
	for i := range keys {
		text, err := jsonObject(listedRows(&keys[i], now))
		if err != nil {
			return err
		}
		listed = append(listed, text)
	}
	if c.Output == "json" {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"keys": listed, "next_cursor": nil})
	}
	return cli.Setup{Lookup: os.LookupEnv}.PrintKeys(cmd, listed)
}

// listedRows returns the rows of an API key in a list, in the form of the API.
func listedRows(key *licensing.APIKey, now time.Time) []row {
	previous := time.Time{}
	if key.Usable(now) && now.Before(key.Previous.Until) {
		previous = key.Previous.Until
	}
	return []row{
		{name: "id", value: key.ID},
		{name: "name", value: key.Name},
		{name: "status", value: string(key.Status(now))},
		{name: "scopes", value: key.Scopes},
		{name: "require_signature", value: key.RequireSignature},
		{name: "expires_at", value: timestamp(key.ExpiresAt)},
		{name: "created_at", value: timestamp(key.CreatedAt)},
		{name: "last_used_at", value: timestamp(key.LastUsedAt)},
		{name: "revoked_at", value: timestamp(key.RevokedAt)},
		{name: "previous_secret_until", value: timestamp(previous)},
		{name: "account_id", value: key.Owner.AccountID},
		{name: "mode", value: string(key.Owner.Mode)},
		{name: "master_key_id", value: key.MasterID},
	}
}

// plain returns the text of a value in a table.
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

// jsonObject returns rows as a JSON object whose members keep the order of rows.
func jsonObject(rows []row) (json.RawMessage, error) {
	var members []string
	for _, r := range rows {
		value, err := json.Marshal(r.value)
		if err != nil {
			return nil, err
		}
		members = append(members, fmt.Sprintf("%q:%s", r.name, value))
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}"), nil
}
