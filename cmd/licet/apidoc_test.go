package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedRoutesRun runs all commands of docs/reference/api.md in one shell, as the page has them. Before each
// block it sells another license, with a device, or creates an unpaid order or an API key where the block needs one.
func TestDocumentedRoutesRun(t *testing.T) {
	t.Parallel()
	needTools(t, "curl")
	url, taken := countingReceiver(t)
	const (
		before = `
. ./licet-data/dev.env
licet products put editor --validity P1Y --self-service-deactivation > before.log
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
account_id=$(licet account show --output json | field account_id)
order_no=$(licet sandbox buy editor --output json | field order_no)
event_id=$(curl -sS "$LICET_URL/v1/orders/$order_no/events" -H "Authorization: Bearer $LICET_API_KEY" | field id)
`
		unpaid = `
order=$(licet orders create --product-id editor --price 49 --currency USD --output json)
order_no=$(printf '%s\n' "$order" | field order_no)
pay_url=$(printf '%s\n' "$order" | field pay_url)
`
		paid = `
order=$(licet sandbox buy editor --output json 2>> before.log)
order_no=$(printf '%s\n' "$order" | field order_no)
license_id=$(printf '%s\n' "$order" | field license_id)
license_key=$(printf '%s\n' "$order" | field license_key)
licet licenses activate "$license_key" laptop-1 >> before.log
`
		subscribed = `
licet products put team --billing P1M >> before.log
licet products put cloud --billing P1M >> before.log
order_no=$(licet sandbox buy cloud --output json 2>> before.log | field order_no)
`
		spare = `
key_id=$(licet keys create --name spare --scopes orders --output json | field id)
`
	)
	commands := 0
	page := "\n```sh" + before + "```\n"
	for _, block := range blocksOf(docPage(t, "reference/api.md"), "sh") {
		block = strings.ReplaceAll(block, "https://shop.example.com", url)
		if strings.Contains(block, "/subscription/portal") {
			continue // the sandbox has no cards; TestStripeSubscription asks for the page
		}
		fixture := paid
		if strings.Contains(block, "/subscription/") {
			fixture = subscribed
		} else if strings.Contains(block, "/cancel") || strings.Contains(block, "/sandbox") ||
			strings.Contains(block, "/payments") || strings.Contains(block, "$pay_url") {
			fixture = unpaid
		} else if strings.Contains(block, "$key_id") {
			fixture = spare
		}
		commands += strings.Count("\n"+block, "\ncurl ")
		page += "\n```sh" + fixture + block + "```\n"
	}
	_, out, _ := runDocumented(t, page)
	answers := regexp.MustCompile(`(?m)^(\{"code":0,|303 |openapi: |\{"status":"ready")`).FindAllString(out, -1)
	if commands < 40 || len(answers) != commands || strings.Contains(out, `{"code":4`) || taken.Load() == 0 {
		t.Errorf("%d commands, %d successes, %d messages came:\n%s", commands, len(answers), taken.Load(), out)
	}
}
