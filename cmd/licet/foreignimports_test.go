package main

import (
	"fmt"
	"strings"
	"testing"

	"licet/cmd/licet/internal/migrate/migratetest"
)

// TestDocumentedForeignImportsRun runs all commands of the guides that import from other services, with an API here in
// place of each service's own.
func TestDocumentedForeignImportsRun(t *testing.T) {
	t.Parallel()
	const uuid = "70af414f-df05-4bb6-a4ef-3cd52ffc5e8b"
	for service, guide := range map[string]struct {
		page, api, product string
	}{
		"keygen":       {"import-keygen.md", "https://api.keygen.sh/v1/accounts/ACCOUNT", uuid},
		"lemonsqueezy": {"import-lemonsqueezy.md", "https://api.lemonsqueezy.com/v1", "4711"},
		"polar":        {"import-polar.md", "https://api.polar.sh/v1", uuid},
		"gumroad":      {"import-gumroad.md", "https://api.gumroad.com/v2", "edt"},
	} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			needTools(t, "curl")
			sold := make([]migratetest.License, 120)
			for i := range sold {
				sold[i] = migratetest.License{ID: fmt.Sprint(i + 1), Key: fmt.Sprintf("KEY-%05d", i),
					Product: guide.product, MaxDevices: 3}
			}
			if service != "gumroad" {
				sold[0].Devices = []string{"device-0-a", "device-0-b", "device-0-c"}
			}
			fake, stop := migratetest.New(service, sold)
			defer stop()
			page := docPage(t, "guides/"+guide.page)
			if !strings.Contains(page, guide.api) {
				t.Fatalf("%s does not name %s", guide.page, guide.api)
			}
			page = strings.ReplaceAll(page, guide.api, fake.URL)
			setup := "```sh\n" + `. ./licet-data/dev.env
cat > sales.csv <<'END'
Purchase ID,Product ID,License Key
a==,edt,AAAAAAAA-11111111
END
` + "```\n"
			for _, token := range []string{"admin-token", "api-key", "organization-access-token", "access-token"} {
				page = strings.Replace(page, "LICET_IMPORT_TOKEN="+token+"\n",
					"LICET_IMPORT_TOKEN="+migratetest.Token+"\n", 1)
			}
			_, out, _ := runDocumented(t, setup+page)
			n := 120
			if service == "gumroad" {
				n = 1
			}
			for _, part := range []string{"Nothing was sent", fmt.Sprintf("granted (%d license", n), `"code":0`} {
				if !strings.Contains(out, part) {
					t.Errorf("it did not print %q, but\n%s", part, out)
				}
			}
		})
	}
}
