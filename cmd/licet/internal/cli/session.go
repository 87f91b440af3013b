package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/cmd/licet/internal/terminal"
)

const defaultRetryFor = 15 * time.Second

// session is one run of a command that calls a service.
type session struct {
	ctx    context.Context
	cmd    *cobra.Command
	is     spec
	setup  Setup
	target target
	client *client.Client
	json   bool
	look   look
	stdout io.Writer
	stderr io.Writer
	waited atomic.Bool // the session has reported a retry
}

// open finds the service and returns a session with a client for it.
func (s Setup) open(cmd *cobra.Command, settings *Service, output string, is spec) (*session, error) {
	if variable := s.env("LICET_OUTPUT"); variable != "" && !cmd.Flags().Changed("output") {
		output = variable
	}
	if !slices.Contains(outputs, output) {
		return nil, BadUsage("--output is %q: write table or json", output)
	}
	t, err := s.find(settings, cmd.Flags())
	if err != nil {
		return nil, err
	}
	if err := t.check(is.scope == ""); err != nil {
		return nil, err
	}
	c := &session{
		ctx: cmd.Context(), cmd: cmd, is: is, setup: s, target: t,
		json: output == "json", look: s.look(cmd), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(),
	}
	return c, c.connect(t.sign)
}

// connect creates the client, which signs requests if sign is set and the secret is known.
func (c *session) connect(sign bool) error {
	options := append(c.setup.identity(), client.RetryFor(c.retryFor()), client.OnRetry(c.again))
	if sign && c.target.canSign() {
		options = append(options, client.WithSigning(c.target.keyID, c.target.secret))
	}
	made, err := client.New(c.target.url, c.target.apiKey, options...)
	if err != nil {
		return BadUsage("%s: %s", c.target.urlFrom, strings.TrimPrefix(err.Error(), "client: "))
	}
	c.close()
	c.client = made
	return nil
}

func (c *session) close() {
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
}

// again reports whether to retry a request. An unreachable service is reported at once instead.
func (c *session) again(err error, wait time.Duration) bool {
	if unreachable(err) {
		return false
	}
	if wait > 300*time.Millisecond && c.waited.CompareAndSwap(false, true) {
		fmt.Fprintf(c.stderr, "licet: %v; retrying for up to %v\n", err, c.retryFor())
	}
	return true
}

func (c *session) retryFor() time.Duration { return cmp.Or(c.setup.retryFor, defaultRetryFor) }

// question is a call of the client with the given options.
type question func(*client.Client, ...client.CallOption) error

// only drops the decoded response: the session prints the recorded response.
func only[T any](_ T, err error) error { return err }

// ask calls the service and returns the data of its response unchanged. If the service demands a signature and the
// secret is known, ask repeats the request with a signature: the refusal changed nothing.
func (c *session) ask(q question) (json.RawMessage, error) {
	var answer client.Response
	options := []client.CallOption{client.Record(&answer)}
	if f := c.cmd.Flags().Lookup("idempotency-key"); f != nil && f.Value.String() != "" {
		options = append(options, client.IdempotencyKey(f.Value.String()))
	}
	err := q(c.client, options...)
	if client.HasReason(err, client.ReasonSignatureRequired) && !c.target.sign && c.target.canSign() {
		c.target.sign = true
		if err := c.connect(true); err != nil {
			return nil, err
		}
		err = q(c.client, options...)
	}
	if err != nil {
		return nil, callError{err}
	}
	return answer.Data, nil
}

// callError is an error of a call, which explain turns into a message.
type callError struct{ error }

func (e callError) Unwrap() error { return e.error }

// show calls the service and prints the response.
func (c *session) show(q question) error {
	data, err := c.ask(q)
	if err != nil {
		return err
	}
	return c.print(data)
}

// print prints an object: as a table, or as JSON.
func (c *session) print(data json.RawMessage) error {
	if c.json {
		return c.write(append(slices.Clip(data), '\n'))
	}
	text, dropped, err := objectText(data, c.look)
	if err == nil {
		err = c.write([]byte(text))
	}
	if err == nil {
		sayDropped(c.stderr, dropped)
	}
	return err
}

// write prints complete lines in one write.
func (c *session) write(text []byte) error {
	if _, err := c.stdout.Write(text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// confirm asks for confirmation on a terminal, unless --yes is set. Without a terminal it does not ask.
func (c *session) confirm(format string, args ...any) error {
	yes, _ := c.cmd.Flags().GetBool("yes")
	if yes || !terminal.Is(c.cmd.InOrStdin()) {
		return nil
	}
	return terminal.Confirm(c.ctx, c.cmd.InOrStdin(), c.stderr, fmt.Sprintf(format, args...))
}

// yesFlag adds the flag that skips confirm.
func yesFlag(cmd *cobra.Command) { cmd.Flags().Bool("yes", false, "do not ask for confirmation") }

// changed returns the value of a flag that was set, or nil.
func changed[T any](c *session, flag string, value T) *T {
	if !c.cmd.Flags().Changed(flag) {
		return nil
	}
	return &value
}

// metadata and entitlements parse the flags of these names.
func metadata(text string) (any, error) { return jsonFlag("metadata", `{"seat":"3B"}`, text) }

func entitlements(text string) (any, error) {
	return jsonFlag("entitlements", `{"export":true,"projects":10}`, text)
}

// jsonFlag parses a flag with a JSON object, or with @ and the name of a file that contains one.
func jsonFlag(flag, example, text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		read, err := os.ReadFile(path)
		if err != nil {
			return nil, BadUsage("--%s: %w", flag, err)
		}
		text = string(read)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return nil,
			BadUsage("--%s must be a JSON object such as %s, or @ and the name of a file with one", flag, example)
	}
	return json.RawMessage(text), nil
}

// moment parses a flag with a time. An empty text is the zero time.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, BadUsage("--%s is %q: write a time such as 2031-01-31T00:00:00Z", flag, text)
	}
	return at, nil
}
