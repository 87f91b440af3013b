package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"licet/handlers/docs"
)

// commands are shell commands with curl, from an order to a removed device, for the page at /. They need a POSIX shell,
// curl and sed, and can be pasted one by one or all at once. docs/tutorials/curl.md has the same commands; a test
// compares them.
//
// They have no comments: an interactive zsh runs comments as commands.
const commands = `order=$(curl -sS "$LICET_URL/v1/orders" \
  -H "Authorization: Bearer $LICET_API_KEY" -H 'Content-Type: application/json' \
  -d '{"product_id":"editor","amount":4900,"currency":"USD"}'); printf '%s\n' "$order"
order_no=$(printf '%s\n' "$order" | sed 's/.*"order_no":"\([^"]*\)".*/\1/')

curl -sS -X PUT "$LICET_URL/v1/orders/$order_no/sandbox_payment" \
  -H "Authorization: Bearer $LICET_API_KEY"

order=$(curl -sS "$LICET_URL/v1/orders/$order_no" \
  -H "Authorization: Bearer $LICET_API_KEY"); printf '%s\n' "$order"
license_id=$(printf '%s\n' "$order" | sed 's/.*"license_id":"\([^"]*\)".*/\1/')
license_key=$(printf '%s\n' "$order" | sed 's/.*"license_key":"\([^"]*\)".*/\1/')

curl -sS "$LICET_URL/v1/licenses/activate" -H 'Content-Type: application/json' \
  -d '{"license_key":"'"$license_key"'","device_id":"laptop-1","device_name":"My laptop"}'

curl -sS "$LICET_URL/v1/licenses/$license_id" \
  -H "Authorization: Bearer $LICET_API_KEY"

curl -sS -X DELETE "$LICET_URL/v1/licenses/$license_id/devices/laptop-1" \
  -H "Authorization: Bearer $LICET_API_KEY"
`

// steps returns the six steps of commands, with titles.
func steps() []docs.Step {
	titles := []string{
		"Create an order", "Pay the order in the sandbox", "Look up the order: it has a license key",
		"Activate the license on a device", "Look up the license", "Remove the device",
	}
	var all []docs.Step
	for i, command := range strings.Split(strings.TrimSuffix(commands, "\n"), "\n\n") {
		all = append(all, docs.Step{Title: titles[i], Command: command})
	}
	return all
}

// readEnv returns the command that reads envFile into a shell.
func readEnv(path string) string { return ". " + shellWord(path) }

// quickStart returns the text that licet dev prints when it is ready, on a system of runtime.GOOS. The text and the log
// before it fit on a terminal of 24 lines. The text has no secret: commands read secrets from the file at path. profile
// reports whether a profile is in use, which would take precedence over the file. sandbox reports whether test mode
// pays in the sandbox.
func quickStart(url, path, system string, profile, sandbox bool) string {
	where, before, flag := access(path, system, profile)
	payments, verb, command := "sandbox payments", "Buy", "sandbox buy editor"
	if !sandbox {
		payments, verb, command = "payments through Stripe", "Grant", "licenses grant --product-id editor"
	}
	return fmt.Sprintf(`Licet is ready on %s, with %s.
Open this address in a browser for the first steps and the API reference.
The URL, the API key and the API secret are in the data directory, in
  %s

%s a license in another terminal%s, and activate its KEY:
%s  licet %s%s
  licet licenses activate KEY laptop-1%[8]s
  licet licenses list%[8]s

Ctrl-C stops the service.
`, url, payments, path, verb, where, before, command, flag)
}

// access returns how commands reach the service: in which directory, after which command, and with which flag. Commands
// find the file of the default data directory unless a profile is in use. Windows has no POSIX shell to read the file.
func access(path, system string, profile bool) (where, before, flag string) {
	found, err := filepath.Abs(filepath.Join(defaultDataDir, envFile))
	switch {
	case err == nil && found == path && !profile:
		return ", in this directory", "", ""
	case system == "windows":
		return "", "  licet profile set dev --from-env \"" + path + "\"\n", " --profile dev"
	default:
		return "", "  " + readEnv(path) + "\n", ""
	}
}

// shellWord quotes text so that a POSIX shell reads one word.
func shellWord(text string) string {
	plain := strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-") == ""
	if plain {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
