package cli

import (
	"strings"
	"testing"
)

// TestCompletionFromService completes arguments and flags with what the account of the API key has.
func TestCompletionFromService(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	key := u.grant(1)[0]
	u.must("products", "put", "editor", "--name", "Aurora Editor")
	u.must("licenses", "activate", key, "laptop-1", "--device-name", "My laptop")
	order := u.asJSON("orders", "create", "--product-id", "editor", "--amount", "1", "--currency",
		"USD")["order_no"].(string)
	endpoint := u.asJSON("webhooks", "create", "https://shop.example.com/licet")["id"].(string)
	keyID := u.env["LICET_API_KEY_ID"]
	const fileless = ":36\n" // no file names, in this order
	f := func(line, want string) {
		t.Helper()
		if text := u.must(append([]string{"__complete"}, strings.Split(line, " ")...)...); text != want {
			t.Errorf("%q is completed by\n%swant\n%s", line, text, want)
		}
	}
	const editor = "editor\tAurora Editor\nmany\n" + fileless // the latest first
	f("products get ", editor)
	f("sandbox buy ", editor)
	f("orders list --product-id ", editor)
	f("licenses grant --product-id ", editor)
	id, _ := u.asJSON("licenses", "get", key)["id"].(string)
	license := id + "\tactivated, many\n" + fileless
	f("licenses get ", license)
	f("licenses revoke ", license)
	f("licenses revoke LIC-1 LIC-2 ", license)
	f("licenses activate ", key+"\tactivated, many\n"+fileless) // an id activates nothing
	f("licenses remove-device "+id+" ", "laptop-1\tMy laptop\n"+fileless)
	f("orders get ", order+"\tunpaid, editor\n"+fileless)
	f("licenses list --order-no ", order+"\tunpaid, editor\n"+fileless)
	f("webhooks test ", endpoint+"\thttps://shop.example.com/licet\n"+fileless)
	if text := u.must("__complete", "keys", "revoke", ""); !strings.HasPrefix(text, keyID+"\t") {
		t.Errorf("API keys are completed by\n%s", text)
	}
	f("products get editor ", ":4\n") // no more arguments
	f("licenses import ", ":0\n")     // a file
	f("import polar ", ":0\n")
	f("events get ", fileless)

	// Without an answer, a key or a service there is nothing, and no message on standard output.
	u.env["LICET_API_KEY"] = "lk_test_wrong"
	f("products get ", fileless)
	delete(u.env, "LICET_API_KEY")
	f("products get ", fileless)
	u.env["LICET_URL"] = "http://127.0.0.1:1"
	u.env["LICET_API_KEY"] = "lk_test_wrong"
	f("products get ", fileless)
	delete(u.env, "LICET_URL")
	delete(u.env, "LICET_API_KEY")
	f("products get ", fileless)
}
