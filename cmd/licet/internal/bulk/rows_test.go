package bulk

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// problemsOf reads a file and returns all problems of its rows.
func problemsOf(t *testing.T, text string) []string {
	t.Helper()
	table, problems, err := openTable(strings.NewReader(text), ',', false)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	r := &rules{table: table, after: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), seen: map[string]int32{},
		keys: map[string]int32{}}
	var all []string
	for {
		_, problems, err := r.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			all = append(all, p.String())
		}
	}
}

const (
	someKey = "LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1"
	header  = "license_key,product_id,quantity,max_devices,expires_at,metadata\n"
)

func TestBadCells(t *testing.T) {
	deep := strings.Repeat(`{""a"":`, 32) + "1" + strings.Repeat("}", 32)
	many := "{"
	for i := range 51 {
		many += `""m` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26)) + `"":1,`
	}
	many = strings.TrimSuffix(many, ",") + "}"
	for _, c := range []struct{ row, want string }{
		{",,,3,,", "product_id: must name the product"},
		{",ed itor,,,,", `product_id: is "ed itor": write 1 to 64 of the characters`},
		{"," + strings.Repeat("a", 65) + ",,,,", "product_id: is \"" + strings.Repeat("a", 40) + "…\""},
		{",editor,0,,,", `quantity: is "0": write an integer from 1 to 1000`},
		{",editor,1001,,,", "quantity"},
		{",editor,1.0,,,", "quantity"},
		{",editor,+1,,,", "quantity"},
		{",editor,\"1,000\",,,", "quantity"},
		{",editor,99999999999999999999,,,", "quantity"},
		{",editor,,-1,,", "max_devices: is \"-1\": write an integer from 0 to 1000000"},
		{",editor,,1000001,,", "max_devices"},
		{",editor,,,2031-01-01,", "expires_at: is \"2031-01-01\": write a time such as 2031-01-01T00:00:00Z"},
		{",editor,,,01.02.2031,", "expires_at"},
		{",editor,,,2031-01-01T0:00:00Z,", "expires_at"},
		{",editor,,,\"2031-01-01T00:00:00,5Z\",", "expires_at"},
		{",editor,,,2030-01-01T00:00:00Z,", "expires_at: must be in the future"},
		{",editor,,,,{", "metadata: must be a JSON object"},
		{",editor,,,,[]", "metadata: must be a JSON object"},
		{",editor,,,,null", "metadata"},
		{",editor,,,,\"{\"\"a\"\":1} x\"", "metadata"},
		{",editor,,,,\"{\"\"a\"\":1,\"\"a\"\":2}\"", "metadata"},
		{",editor,,,,\"{\"\"a\"\":\"\"\\ud800\"\"}\"", "metadata"},
		{",editor,,,,\"{\"\"\"\":1}\"", "metadata: must have member names of 1 to 40 characters"},
		{",editor,,,,\"" + many + "\"", "metadata: must have at most 50 members"},
		{",editor,,,,\"" + deep + "\"", "nests deeper"},
		{",editor,,,,\"{\"\"a\"\":\"\"" + strings.Repeat("x", 16<<10) + "\"\"}\"",
			"metadata: must have at most 16384 bytes"},
		{someKey + ",,2,,,", "quantity: must be empty in a row with license_key"},
		{"LIC-0PTYW,,,,,", "license_key: must be a license key"},
		{"LIC-UPTYW-9JYJV-7GEFV-QNZG1-G5CB1,,,,,", "license_key: must be"},
		{"L-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1,,,,,", "license_key: must be"},
		{"LIC0PTYW-9JYJV-7GEFV-QNZG1-G5CB1,,,,,", "license_key: must be"},
		{someKey + ",,,x,,", "max_devices"},
		{someKey + ",,,,soon,", "expires_at"},
		{someKey + ",,,,,1", "metadata"},
		{someKey + ",,,5,,\nlic-optyw-9jyjv-7gefv-qnzgi-g5cbl,,,6,,", "license_key: is also in line 2"},
	} {
		problems := problemsOf(t, header+c.row+"\n")
		line := "line 2, column "
		if strings.Contains(c.want, "also in line") {
			line = "line 3, column "
		}
		if len(problems) != 1 || !strings.HasPrefix(problems[0], line) || !strings.Contains(problems[0], c.want) {
			t.Errorf("%.60s: %q, want %q", c.row, problems, c.want)
		}
	}
	if all := problemsOf(t, header+",,0,x,y,z\n"); len(all) != 5 {
		t.Errorf("not every problem of a row is named: %q", all)
	}
}

func TestBadIDs(t *testing.T) {
	const id = "lic_77vwt5zc5zqn856r8rb6xh0hgc"
	for _, c := range []struct{ rows, want string }{
		{id + ",,,\n," + someKey + ",,\n" + id + "," + someKey + ",editor,\n",
			"line 4, column id: is also in line 2: only one row may change a license|" +
				"line 4, column license_key: is also in line 3: only one row may change a license"},
		{id + ",,editor,2\n", "line 2, column quantity: must be empty in a row with license_key or id"},
		{"lic_77vwt5zc5zqn856r8rb6xh0hg,,,\n", "line 2, column id: must be the id of a license such as lic_"},
		{"lic_77vwt5zc5zqn856r8rb6xh0hgu,,,\n", "line 2, column id: must be the id of a license"},
		{"LIC_77VWT5ZC5ZQN856R8RB6XH0HGC,,,\n", "line 2, column id: must be the id of a license"},
		{someKey + ",,,\n", "line 2, column id: must be the id of a license"},
		{"1,,editor,\n", "line 2, column id: must be the id of a license"},
		{id + ",LIC-1,,\n", "line 2, column license_key: must be a license key"},
	} {
		all := strings.Join(problemsOf(t, "id,license_key,product_id,quantity\n"+c.rows), "|")
		if !strings.HasPrefix(all, c.want) || strings.Count(all, "|") != strings.Count(c.want, "|") {
			t.Errorf("%s: %q, want %q", c.rows, all, c.want)
		}
	}
}

func TestGoodCells(t *testing.T) {
	for _, row := range []string{
		",editor,,,,",
		",ed.itor_-9,1000,1000000,2030-01-01T00:00:00.001Z,{}",
		", editor , 2 , 0 ,2031-01-01t00:00:00+02:00,\"{ \"\"a\"\" : { \"\"b\"\" : null } }\"",
		",'-editor,,,,",
		someKey + ",,,,,",
		someKey + ",not looked at!,,7,2001-01-01T00:00:00Z,\"{\"\"a\"\":null}\"",
		" lic-optyw-9jyjv-7gefv-qnzgi-g5cbl ,,,,,",
	} {
		if problems := problemsOf(t, header+row+"\n"); len(problems) > 0 {
			t.Errorf("%s: %q", row, problems)
		}
	}
}

func TestMetadataThatChanges(t *testing.T) {
	for _, c := range []struct {
		patch, present string
		want           bool
	}{
		{``, `{"a":1}`, false},
		{`{}`, `{"a":1}`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a": {"y":1, "x":[1,2]}}`, `{"a":{"x":[1,2],"y":1}}`, false},
		{`{"a":2}`, `{"a":1}`, true},
		{`{"c":1}`, `{"a":1}`, true},
		{`{"a":null}`, `{"a":1}`, true},
		{`{"c":null}`, `{"a":1}`, false},
		{`{"a":12345678901234567890}`, `{"a":12345678901234567891}`, true},
	} {
		got, err := object(c.patch).changes([]byte(c.present))
		if err != nil || len(got) > 0 != c.want {
			t.Errorf("%s on %s: %v %v", c.patch, c.present, got, err)
		}
	}
	only, err := object(`{"a":1,"b":2,"c":null}`).changes([]byte(`{"a":1,"d":4}`))
	if err != nil || len(only) != 1 || only["b"] != json.Number("2") {
		t.Errorf("%v, %v", only, err)
	}
}
